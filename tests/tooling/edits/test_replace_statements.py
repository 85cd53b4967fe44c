"""Statements that are replaced in a function: known by their tokens, whatever the rest of the function is."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from edit_bench import edit_from, plan_on
from patchstack.edits import Edit, Status
from patchstack.edits.model import Outcome
from patchstack.errors import ManifestError
from patchstack.tree.cxx_digest import code_digest
from patchstack.tree.text import digest

HOST = b"""\
namespace at::native {

Tensor shade(const Tensor& input, int64_t axis) {
  // Where it is counted from.
  const auto last = axis < 0 ? axis + input.dim() : axis;
  check(last);
  if (input.numel() == 0) {
    prepare(input);
    return input;
  }
  prepare(input);
  return run(input, last);
}

Tensor other(const Tensor& input, int64_t axis) {
  check(last);
  return input;
}

} // namespace at::native
"""
OLD = b"  // Where it is counted from.\n  const auto last = axis < 0 ? axis + input.dim() : axis;\n  check(last);\n"
NEW = b"  const auto last = wrapped(axis, input.dim());\n"


def edit(old: bytes = OLD, new: bytes = NEW, statements: int = 2, function: str = "shade") -> Edit:
    entry = (
        f"{{kind: replace-statements, path: a.mm, fragment: new, definition: {{function: {function}}}, "
        f"statements: {statements}, replaces: ['{code_digest(old)}']}}"
    )
    return edit_from(entry, {"a.mm": new})


def planned(source: bytes, **named: Any) -> Outcome:
    return plan_on(edit(**named), source)


def test_they_go_with_the_comment_above_and_the_rest_stays() -> None:
    assert planned(HOST).after == HOST.replace(OLD, NEW)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"  return run(input, last);", b"  return run_faster(input, last);"),
        (b"axis + input.dim() : axis;", b"axis + input.dim()\n                             : axis;"),
        (b"  // Where it is counted from.\n", b"  // From the end.\n"),
        (b"Tensor shade(const Tensor& input, ", b"Tensor shade(const Tensor& input, Mode mode, "),
    ],
)
def test_what_upstream_changes_around_them_or_in_their_layout_does_not_matter(old: bytes, new: bytes) -> None:
    outcome = planned(HOST.replace(old, new, 1))
    assert outcome.status is Status.APPLIES
    assert NEW in (outcome.after or b"")


def test_statements_that_upstream_changed_are_a_conflict_and_nothing_is_lost() -> None:
    outcome = planned(HOST.replace(b"check(last);\n  if", b"check_all(last);\n  if"))
    assert (outcome.status, outcome.after) == (Status.CONFLICT, None)
    assert outcome.conflict is not None
    assert "0 runs of statements in shade are what the series knows, expected 1" in str(outcome.conflict)


def test_a_statement_that_stands_twice_in_the_function_is_a_conflict() -> None:
    outcome = planned(HOST, old=b"prepare(input);", new=b"  prepare_all(input);\n", statements=1)
    assert outcome.status is Status.CONFLICT
    assert outcome.conflict is not None
    assert outcome.conflict.matches == (8, 11)


def test_the_same_statements_in_another_function_do_not_count() -> None:
    outcome = planned(HOST, old=b"  check(last);\n", new=b"  check_all(last);\n", statements=1)
    after = HOST.replace(b"check(last);\n  if", b"check_all(last);\n  if")
    assert outcome.after == after


def test_what_is_there_already_needs_nothing() -> None:
    assert planned(HOST.replace(OLD, NEW)).status is Status.SATISFIED


def test_added_statements_are_not_added_again() -> None:
    new = b"  prepare(input);\n  count(input);\n"
    old = b"  return run(input, last);\n"
    wider = planned(HOST, old=old, new=new + old, statements=1)
    assert wider.after == HOST.replace(old, new + old)
    assert planned(wider.after or b"", old=old, new=new + old, statements=1).status is Status.SATISFIED


def test_a_signature_is_replaced_without_the_body() -> None:
    old, new = (
        b"Tensor shade(const Tensor& input, int64_t axis) {\n",
        b"Tensor shade(const Tensor& input, int axis) {\n",
    )
    changed = HOST.replace(b"check(last);\n  if", b"check_all(last);\n  if")
    assert planned(changed, old=old, new=new, statements=0).after == changed.replace(old, new)


def test_a_function_that_is_not_there_is_named_with_the_nearest() -> None:
    outcome = planned(HOST, function="shades")
    assert outcome.conflict is not None
    assert "function shade" in str(outcome.conflict)


@pytest.mark.parametrize("count", ["-1", "two"])
def test_a_number_of_statements_that_is_none_is_refused(count: str) -> None:
    entry = f"{{kind: replace-statements, path: a.mm, fragment: new, definition: {{function: f}}, statements: {count}}}"
    with pytest.raises(ManifestError, match="'statements' is no number"):
        edit_from(entry, {"a.mm": NEW})


PYTHON = textwrap.dedent("""\
    import os

    LIMIT = 3


    class TestTint:
        def test_shade(self):
            # Twice.
            for n in range(2):
                self.check(n)
            self.done()

        def test_other(self):
            self.done()
    """).encode()


def python_planned(source: bytes, old: str, new: str, statements: int, definition: str) -> Outcome:
    entry = (
        f"{{kind: replace-statements, path: a.py, fragment: new, {definition} statements: {statements}, "
        f"replaces: ['{digest(old.encode())}']}}"
    )
    return plan_on(edit_from(entry, {"a.py": new.encode()}), source)


METHOD = "definition: [{class: TestTint}, {function: test_shade}],"


def test_statements_of_a_method_are_replaced() -> None:
    old, new = "        self.done()\n", "        self.done()\n        self.seen()\n"
    outcome = python_planned(PYTHON, old, new, 1, METHOD)
    assert outcome.after == PYTHON.replace(old.encode(), new.encode(), 1)
    assert python_planned(outcome.after or b"", old, new, 1, METHOD).status is Status.SATISFIED


def test_statements_of_the_module_are_replaced() -> None:
    assert python_planned(PYTHON, "LIMIT = 3\n", "LIMIT = 4\n", 1, "").after == PYTHON.replace(b"= 3", b"= 4")


def test_python_statements_that_upstream_changed_are_a_conflict() -> None:
    outcome = python_planned(PYTHON.replace(b"= 3", b"= 5"), "LIMIT = 3\n", "LIMIT = 4\n", 1, "")
    assert (outcome.status, outcome.after) == (Status.CONFLICT, None)


def after_member(source: bytes, where: str) -> Outcome:
    entry = f"{{kind: place-fragment, path: a.py, fragment: new, {where}}}"
    return plan_on(edit_from(entry, {"a.py": b"    def test_new(self):\n        self.done()\n"}), source)


def test_a_member_is_placed_behind_another() -> None:
    outcome = after_member(PYTHON, "in: [{class: TestTint}], after: test_shade")
    new = b"    def test_new(self):\n        self.done()\n\n"
    assert outcome.after == PYTHON.replace(b"    def test_other", new + b"    def test_other")
    assert after_member(outcome.after or b"", "in: [{class: TestTint}], after: test_shade").status is Status.SATISFIED


def test_a_member_to_stand_behind_that_is_not_there_is_named_with_the_nearest() -> None:
    outcome = after_member(PYTHON, "in: [{class: TestTint}], after: test_shades")
    assert outcome.conflict is not None
    assert "0 members match" in str(outcome.conflict)
    assert "test_shade" in str(outcome.conflict)


def test_a_definition_is_placed_behind_one_of_the_module() -> None:
    entry = "{kind: place-fragment, path: a.py, fragment: new, after: LIMIT}"
    outcome = plan_on(edit_from(entry, {"a.py": b"def shade():\n    return LIMIT\n"}), PYTHON)
    assert outcome.after == PYTHON.replace(b"LIMIT = 3\n", b"LIMIT = 3\n\n\ndef shade():\n    return LIMIT\n")
