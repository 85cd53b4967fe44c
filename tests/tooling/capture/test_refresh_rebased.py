"""``apply-stack refresh`` after ``git rebase -i``, and of a series that has texts for several kinds of trees."""

from __future__ import annotations

import os
import subprocess

import pytest

from patchstack.series import load_series
from resolve_lab import FUNCTIONS, HOST, NOTES, TEST, TITLES, Resolving, forget_bases, put_in, rename_anchor


def _rebase(resolving: Resolving, script: str) -> None:
    """``git rebase -i`` of the branch, whose list of commits a sed script edits."""
    place = resolving.place
    place.git("checkout", "-q", "stack/mine")
    editors = {"GIT_SEQUENCE_EDITOR": f"sed -i -e '{script}'", "GIT_EDITOR": "true"}
    subprocess.run(
        ["git", "rebase", "-q", "-i", "main"],
        cwd=place.path,
        env={**os.environ, **editors},
        check=True,
        capture_output=True,
    )


def _refreshed(resolving: Resolving) -> dict[str, object]:
    """The report of a refresh after which the series gives the trees of the branch."""
    wanted = resolving.branch_files()
    resolving.place.git("checkout", "-q", "main")
    found = resolving.ok("refresh", "--series", resolving.folder)
    resolving.apply("--branch", "again")
    assert resolving.branch_files("again") == wanted
    assert isinstance(found, dict)
    return found


def _titles(resolving: Resolving) -> list[str]:
    return [change.title for change in load_series(str(resolving.folder)).changes]


def test_reordered_commits_are_reordered_changes(resolving: Resolving) -> None:
    _rebase(resolving, "1{h;d};2{G}")
    found = _refreshed(resolving)
    assert (found["rewritten"], found["dropped"]) == ({}, [])
    assert _titles(resolving) == [TITLES[1], TITLES[0]]


def test_a_squashed_commit_takes_the_edits_of_the_other(resolving: Resolving) -> None:
    _rebase(resolving, "2s/^pick/fixup/")
    found = _refreshed(resolving)
    assert (found["rewritten"], found["dropped"]) == ({"tint_backward": [NOTES, TEST]}, ["test_tint_backward"])
    assert _titles(resolving) == [TITLES[0]]
    assert not (resolving.folder / "test_tint_backward.md").exists()


def test_a_split_commit_is_a_change_more(resolving: Resolving) -> None:
    place = resolving.place
    _rebase(resolving, "1s/^pick/edit/")
    words = place.git("log", "-1", "--format=%B")
    place.git("reset", "-q", "HEAD~1")
    place.git("add", FUNCTIONS)
    place.git("commit", "-q", "-m", words)
    place.git("add", HOST)
    place.git("commit", "-q", "-m", "[MPS] Write tint_backward_mps")
    place.git("rebase", "--continue")
    found = _refreshed(resolving)
    assert found["dropped"] == []
    assert _titles(resolving) == [TITLES[0], "[MPS] Write tint_backward_mps", TITLES[1]]
    edits = [sorted({edit.path for edit in change.edits}) for change in load_series(str(resolving.folder)).changes]
    assert edits == [[FUNCTIONS], [HOST], [NOTES, TEST]]


@pytest.fixture
def two_texts(resolving: Resolving) -> Resolving:
    """The first change has a text for trees with the renamed function, and is on such a tree."""
    forget_bases(resolving.folder)
    rename_anchor(resolving)
    found = resolving.meets_a_conflict()
    put_in(resolving, found)
    resolving.edit(found["worktree"], HOST, "  return grad;\n", "  return on(grad);\n")
    assert resolving.goes_on()["resolve"]["learned"]
    return resolving


def _amend_first(resolving: Resolving, old: str, new: str) -> None:
    place = resolving.place
    place.git("checkout", "-q", "stack/mine~1")
    place.commit(place.git("log", "-1", "--format=%B"), place.replaced(HOST, old, new), amend=True)
    place.git("cherry-pick", "stack/mine")
    place.git("branch", "-f", "stack/mine", "HEAD")


def test_an_amendment_goes_into_the_text_for_its_kind_of_tree(two_texts: Resolving) -> None:
    _amend_first(two_texts, "return on(grad);", "return on(grad) * 2;")
    found = _refreshed(two_texts)
    assert found["rewritten"] == {"tint_backward": [HOST]}
    texts = (two_texts.folder / "overlay" / HOST).read_text()
    assert ("return on(grad) * 2;" in texts, "return grad;" in texts) == (True, True)
    two_texts.require_learned()


def test_an_amendment_outside_the_texts_is_for_its_kind_of_tree_too(two_texts: Resolving) -> None:
    _amend_first(two_texts, "  check(out);\n", "  check(out);\n  check(self);\n")
    found = _refreshed(two_texts)
    assert found["rewritten"] == {"tint_backward": [HOST]}
    (added,) = (e for e in load_series(str(two_texts.folder)).changes[0].edits if "mps_lines" in e.describe())
    assert [condition.marker.name for condition in added.only_where] == ["at::native::tint_on_mps"]
    two_texts.require_learned()


def test_an_amendment_for_trees_that_no_condition_tells_is_refused(two_texts: Resolving) -> None:
    place, manifest = two_texts.place, (two_texts.folder / "series.yaml").read_text()
    place.git("checkout", "-q", "--detach", two_texts.old)
    place.git("branch", "-f", "main", two_texts.old)
    two_texts.apply("--force")
    _amend_first(two_texts, "  check(out);\n", "  check(out);\n  check(self);\n")
    place.git("checkout", "-q", "--detach", "main")
    said = two_texts.refused("refresh", "--series", str(two_texts.folder))
    assert "has other texts for other trees" in said
    assert (two_texts.folder / "series.yaml").read_text() == manifest
