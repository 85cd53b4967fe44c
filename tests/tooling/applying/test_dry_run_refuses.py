"""A dry run ends as the run would: the same exit code and the same sentence, and nothing is written."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from checkouts import Checkout

from .test_branches_in_use import BUSY

NOTES = "docs/fade.md"
Spoil = Callable[[Checkout], None]


def stack_then_revise(checkout: Checkout) -> None:
    checkout.run().require()
    (checkout.lab.series / "overlay" / NOTES).write_text("Fading, revised.\n")


def holds_foreign_commits(checkout: Checkout) -> None:
    checkout.git("switch", "-q", "-c", checkout.branch)
    checkout.commit("Mine", {"mine.txt": "mine\n"})
    checkout.git("switch", "-q", "main")


def is_a_symbolic_ref(checkout: Checkout) -> None:
    checkout.git("branch", "other")
    checkout.git("symbolic-ref", f"refs/heads/{checkout.branch}", "refs/heads/other")


def is_a_folder_of_branches(checkout: Checkout) -> None:
    checkout.git("branch", f"{checkout.branch}/inner")


def has_nobody_to_sign_for_it(checkout: Checkout) -> None:
    (checkout.lab.home / ".gitconfig").write_text("")


def is_built_on_a_commit_of_the_end_of_time(checkout: Checkout) -> None:
    tree = checkout.git("rev-parse", "main^{tree}")
    date = {"GIT_COMMITTER_DATE": "@18446744073709551 +0000"}
    checkout.git("update-ref", "refs/heads/main", checkout.git("commit-tree", tree, "-m", "Late", env=date))
    checkout.git("reset", "-q", "--hard")


REFUSED: dict[Spoil, tuple[int, str]] = {
    holds_foreign_commits: (3, "commit(s) that apply-stack did not make"),
    is_a_symbolic_ref: (3, "symbolic ref"),
    is_a_folder_of_branches: (3, "cannot be a branch and a folder"),
    has_nobody_to_sign_for_it: (4, "identity"),
    is_built_on_a_commit_of_the_end_of_time: (4, "date"),
}


@pytest.mark.parametrize("spoil", REFUSED, ids=lambda spoil: spoil.__name__.replace("_", " "))
def test_a_dry_run_refuses_a_branch_that(checkout: Checkout, spoil: Spoil) -> None:
    spoil(checkout)
    with checkout.nothing_written():
        told = checkout.run("--dry-run").refused(*REFUSED[spoil])
    assert checkout.run().refused(*REFUSED[spoil]) == told


@pytest.mark.parametrize("occupy", BUSY, ids=lambda occupy: occupy.__name__.replace("_", " "))
def test_a_dry_run_refuses_a_busy_branch_that_would_move(checkout: Checkout, occupy: Spoil) -> None:
    stack_then_revise(checkout)
    occupy(checkout)
    with checkout.nothing_written():
        told = checkout.run("--dry-run").refused(3, BUSY[occupy])
    assert checkout.run().refused(3, BUSY[occupy]).partition(" (next:")[0] == told.partition(" (next:")[0]


def test_a_busy_branch_that_is_the_stack_already_is_no_reason(checkout: Checkout) -> None:
    checkout.run().require()
    checkout.git("switch", "-q", checkout.branch)
    with checkout.nothing_written():
        checkout.run("--dry-run").require()
    checkout.run().require()


def test_with_force_a_dry_run_takes_a_branch_of_somebody_elses_as_the_run_does(checkout: Checkout) -> None:
    holds_foreign_commits(checkout)
    with checkout.nothing_written():
        checkout.run("--dry-run", "--force").require()
    checkout.run("--force").require()


def test_where_nothing_is_left_to_apply_no_branch_is_a_reason(checkout: Checkout) -> None:
    checkout.run().require()
    checkout.git("branch", "landed", checkout.branch)
    checkout.git("branch", "-f", checkout.branch, "main")
    holds_foreign = checkout.commit("Mine", {"mine.txt": "mine\n"})
    checkout.git("branch", "-f", checkout.branch, holds_foreign)
    for more in ([], ["--dry-run"]):
        assert "nothing left to apply" in checkout.run(*more, onto="landed").require().out
