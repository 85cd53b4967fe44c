"""Ops that are named to the gate "op-run", and those that it finds."""

from __future__ import annotations

from stackproof.gates.op_run.touched import not_found


def test_an_op_that_is_named_and_not_found_in_the_stack_is_a_note() -> None:
    notes = not_found(["digamma.out", "digamma", "_cdist_backward"], {"_cdist_backward": None})
    assert [(one.message.partition(":")[0], one.rule, one.fails) for one in notes] == [("digamma", "not-found", False)]


def test_nothing_is_said_of_ops_that_are_all_found() -> None:
    assert not_found(["_cdist_backward", "digamma.out"], {"_cdist_backward": None, "digamma": None}) == []
