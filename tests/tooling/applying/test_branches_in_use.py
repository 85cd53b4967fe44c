"""A branch that a worktree is busy with is not pulled from under it; --checkout brings the files along."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from checkouts import Checkout
from checkouts.lab import write_series
from checkouts.snapshot import Snapshot
from checkouts.sources import METAL, OVERLAY

NOTES = "docs/fade.md"


@pytest.fixture
def stacked(checkout: Checkout) -> Checkout:
    """A checkout with the stack, and a revised series that would move the branch."""
    checkout.run().require()
    series = checkout.lab.series
    (series / "overlay" / NOTES).write_text("Fading, revised.\n")
    return checkout


def checked_out_here(checkout: Checkout) -> None:
    checkout.git("switch", "-q", checkout.branch)


def checked_out_in_another_worktree(checkout: Checkout) -> None:
    checkout.git("worktree", "add", "-q", str(checkout.lab.root / "linked"), checkout.branch)


def being_rebased_here(checkout: Checkout) -> None:
    checkout.git("switch", "-q", checkout.branch)
    checkout.git("rebase", "-q", "-i", "main", env={"GIT_SEQUENCE_EDITOR": "sed -i.bak 1s/pick/edit/"})
    assert checkout.try_git("symbolic-ref", "-q", "HEAD").returncode


def being_rebased_in_another_worktree(checkout: Checkout) -> None:
    linked = checkout.lab.root / "linked"
    checkout.git("worktree", "add", "-q", str(linked), checkout.branch)
    checkout.lab.git(linked, "rebase", "-q", "-i", "main", env={"GIT_SEQUENCE_EDITOR": "sed -i.bak 1s/pick/edit/"})


def being_rebased_along_with_another_branch(checkout: Checkout) -> None:
    checkout.git("switch", "-q", "-c", "topic", checkout.branch)
    checkout.commit("On top", {"topic.txt": "topic\n"})
    editor = {"GIT_SEQUENCE_EDITOR": "sed -i.bak 1s/pick/edit/"}
    checkout.git("rebase", "-q", "-i", "--update-refs", "main", env=editor)


def being_bisected(checkout: Checkout) -> None:
    checkout.git("switch", "-q", checkout.branch)
    checkout.git("bisect", "start", checkout.branch, "main~1")


BUSY: dict[Callable[[Checkout], None], str] = {
    checked_out_here: "checked out in",
    checked_out_in_another_worktree: "checked out in",
    being_rebased_here: "being rebased in",
    being_rebased_in_another_worktree: "being rebased in",
    being_rebased_along_with_another_branch: "being rebased in",
    being_bisected: "being bisected in",
}


@pytest.mark.parametrize("occupy", BUSY, ids=lambda occupy: occupy.__name__.replace("_", " "))
@pytest.mark.parametrize("force", [False, True], ids=["", "with force"])
def test_a_busy_branch_is_not_moved(stacked: Checkout, occupy: Callable[[Checkout], None], force: bool) -> None:
    occupy(stacked)
    with stacked.branch_kept():
        stacked.run(*(["--force"] if force else [])).refused(3, BUSY[occupy], "--branch NAME")


@pytest.mark.parametrize("occupy", BUSY, ids=lambda occupy: occupy.__name__.replace("_", " "))
def test_a_busy_branch_that_is_the_stack_already_is_none_of_its_owners_concern(
    checkout: Checkout, occupy: Callable[[Checkout], None]
) -> None:
    checkout.run().require()
    occupy(checkout)
    with checkout.branch_kept():
        assert checkout.run("--json").require().json["moved"] is False


def test_a_worktree_that_is_gone_does_not_keep_its_branch(stacked: Checkout) -> None:
    checked_out_in_another_worktree(stacked)
    stacked.git("worktree", "remove", str(stacked.lab.root / "linked"))
    stacked.run().require()
    assert stacked.complete()


# --checkout


def is_clean_at_the_tip(checkout: Checkout) -> bool:
    here = checkout.git("symbolic-ref", "HEAD") == f"refs/heads/{checkout.branch}"
    return here and checkout.git("status", "--porcelain") == "" and checkout.complete()


def test_checkout_switches_a_clean_worktree_to_the_new_branch(checkout: Checkout) -> None:
    checkout.run("--checkout").require()
    assert is_clean_at_the_tip(checkout)
    assert (checkout.path / NOTES).read_text() == OVERLAY[NOTES]


def test_checkout_brings_the_files_of_the_current_branch_along(stacked: Checkout) -> None:
    checked_out_here(stacked)
    stacked.run("--checkout").require()
    assert is_clean_at_the_tip(stacked)
    assert (stacked.path / NOTES).read_text() == "Fading, revised.\n"


def test_checkout_of_what_is_there_already_changes_no_file(stacked: Checkout) -> None:
    stacked.run("--checkout").require()
    before = Snapshot.of(stacked.path, leave_out=[".git"])
    stacked.run("--checkout").require()
    before.require_same(Snapshot.of(stacked.path, leave_out=[".git"]))


def test_checkout_works_from_a_detached_head_and_keeps_untracked_files(stacked: Checkout) -> None:
    stacked.git("switch", "-q", "--detach", "main~1")
    (stacked.path / "mine.txt").write_text("mine\n")
    stacked.run("--checkout").require()
    assert (stacked.path / "mine.txt").read_text() == "mine\n"
    assert stacked.git("status", "--porcelain") == "?? mine.txt"


def test_checkout_in_a_linked_worktree_leaves_the_main_one_alone(stacked: Checkout) -> None:
    linked = stacked.lab.root / "linked"
    stacked.git("worktree", "add", "-q", "--detach", str(linked))
    there = dataclasses.replace(stacked, path=linked)
    before = Snapshot.of(stacked.path, leave_out=[".git"])
    there.run("--checkout").require()
    before.require_same(Snapshot.of(stacked.path, leave_out=[".git"]))
    assert is_clean_at_the_tip(there)
    assert stacked.git("symbolic-ref", "HEAD") == "refs/heads/main"


def test_checkout_honours_a_sparse_checkout(checkout: Checkout) -> None:
    checkout.git("sparse-checkout", "set", "docs")
    checkout.run("--checkout").require()
    assert (checkout.path / NOTES).exists()
    assert not (checkout.path / METAL).exists()
    assert checkout.git("status", "--porcelain") == ""


def with_a_staged_change(checkout: Checkout) -> None:
    (checkout.path / "windows.txt").write_text("changed\n")
    checkout.git("add", "-A")


def with_an_unstaged_change(checkout: Checkout) -> None:
    (checkout.path / METAL).write_text("changed\n")


def with_a_deleted_file(checkout: Checkout) -> None:
    (checkout.path / "README.md").unlink()


def in_the_middle_of_a_merge(checkout: Checkout) -> None:
    checkout.git("switch", "-q", "-c", "topic", "main~1")
    checkout.commit("Topic", {"README.md": "another text\n"})
    assert checkout.try_git("merge", "main").returncode


def in_the_middle_of_a_bisect(checkout: Checkout) -> None:
    checkout.git("bisect", "start", "main", "main~1")


def with_an_untracked_file_in_the_way(checkout: Checkout) -> None:
    (checkout.path / "docs").mkdir()
    (checkout.path / NOTES).write_text("mine\n")


def with_an_ignored_file_in_the_way(checkout: Checkout) -> None:
    (checkout.git_dir / "info").mkdir(exist_ok=True)
    (checkout.git_dir / "info" / "exclude").write_text("docs\n")
    with_an_untracked_file_in_the_way(checkout)


def with_the_index_locked(checkout: Checkout) -> None:
    (checkout.git_dir / "index.lock").write_bytes(b"")


REFUSED: dict[Callable[[Checkout], None], str] = {
    with_a_staged_change: "not committed",
    with_an_unstaged_change: "not committed",
    with_a_deleted_file: "not committed",
    in_the_middle_of_a_merge: "a merge is under way",
    in_the_middle_of_a_bisect: "a bisect is under way",
    with_an_untracked_file_in_the_way: NOTES,
    with_an_ignored_file_in_the_way: NOTES,
    with_the_index_locked: "index.lock",
}


@pytest.mark.parametrize("prepare", REFUSED, ids=lambda prepare: prepare.__name__.replace("_", " "))
def test_checkout_refuses_before_any_branch_is_written(checkout: Checkout, prepare: Callable[[Checkout], None]) -> None:
    prepare(checkout)
    with checkout.branch_kept():
        checkout.run("--checkout").refused(3, REFUSED[prepare], "without --checkout")


def test_an_untracked_file_is_in_the_way_of_the_current_branch_too(stacked: Checkout) -> None:
    checked_out_here(stacked)
    (stacked.lab.series / "overlay" / "mine.txt").write_text("the series' own\n")
    manifest = stacked.lab.series / "series.yaml"
    manifest.write_text(manifest.read_text() + "      - kind: create-file\n        path: mine.txt\n")
    (stacked.path / "mine.txt").write_text("mine\n")
    with stacked.branch_kept():
        stacked.run("--checkout").refused(3, "mine.txt", "nothing was written to any branch")
    assert (stacked.path / "mine.txt").read_text() == "mine\n"


def test_a_bare_repository_has_nothing_to_check_out(checkout: Checkout) -> None:
    bare = checkout.lab.clone(checkout, "bare.git", "--bare")
    with bare.branch_kept():
        bare.run("--checkout").refused(4, "bare repository")


def test_a_failing_post_checkout_hook_is_told_and_spoils_nothing(checkout: Checkout) -> None:
    hook = checkout.git_dir / "hooks" / "post-checkout"
    hook.parent.mkdir()
    hook.write_text("#!/bin/sh\necho no >&2\nexit 1\n")
    hook.chmod(0o755)
    result = checkout.run("--checkout", "--json").require()
    assert any("post-checkout hook failed" in warning for warning in result.json["warnings"])
    assert is_clean_at_the_tip(checkout)


def test_a_run_killed_between_branch_and_files_is_finished_by_the_next(stacked: Checkout) -> None:
    checked_out_here(stacked)
    other = dataclasses.replace(stacked, branch="stack/other")
    other.run("--branch", "stack/other").require()
    stacked.git("update-ref", "-m", "apply-stack: regenerate", f"refs/heads/{stacked.branch}", other.tip())
    assert stacked.git("status", "--porcelain") != ""
    stacked.run("--checkout").require()
    assert is_clean_at_the_tip(stacked)
    assert (stacked.path / NOTES).read_text() == "Fading, revised.\n"


def test_the_series_may_change_between_a_killed_run_and_the_next(stacked: Checkout) -> None:
    test_a_run_killed_between_branch_and_files_is_finished_by_the_next(stacked)
    stacked.git("read-tree", "-m", "-u", stacked.branch, f"{stacked.branch}@{{1}}")
    write_series(stacked.lab.series, {f"overlay/{NOTES}": ("Fading", "Once more: fading")})
    stacked.run("--checkout").require()
    assert is_clean_at_the_tip(stacked)
    assert (stacked.path / NOTES).read_text().startswith("Once more")
