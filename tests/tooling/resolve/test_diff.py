"""``apply-stack diff``: what a series gives on two trees, and what its working changes make of the branch."""

from __future__ import annotations

import pytest

from resolve_lab import HOST, NOTES, TEST, TITLES, Resolving


def test_two_trees_on_which_the_series_does_the_same(resolving: Resolving) -> None:
    place = resolving.place
    place.commit("Speak of it", place.replaced(NOTES, "Line 20 of", "The twentieth line of"))
    refs = place.git("for-each-ref")
    found = resolving.ok("diff", resolving.old, "main", "--series", resolving.folder)
    assert [(one["is"], one["title"]) for one in found["commits"]] == [("same", title) for title in TITLES]
    assert (found["old"]["onto"], found["new"]["onto"]) == (resolving.old, place.git("rev-parse", "main"))
    code, out, _ = resolving.run("diff", resolving.old, "main", "--series", resolving.folder)
    assert (code, "the commits are the same" in out) == (0, True)
    assert place.git("for-each-ref") == refs


def test_working_changes_of_the_series_are_shown_beside_the_branch(resolving: Resolving) -> None:
    file = resolving.folder / "overlay" / HOST
    file.write_text(file.read_text().replace("return grad;", "return grad * 2;"))
    (resolving.folder / "test_tint_backward.md").write_text("Another word.\n")
    found = resolving.ok("diff", "--series", resolving.folder)
    assert [one["is"] for one in found["commits"]] == ["differs", "differs"]
    assert "    ++  return grad * 2;" in found["range_diff"].split("\n")
    assert "    +    Another word." in found["range_diff"].split("\n")
    tip = resolving.place.git("rev-parse", "stack/mine")
    assert (found["old"]["tip"], found["new"]["tip"] == tip) == (tip, False)


def test_a_branch_as_the_series_makes_it_is_the_same(resolving: Resolving) -> None:
    found = resolving.ok("diff", "--series", resolving.folder)
    assert [one["is"] for one in found["commits"]] == ["same", "same"]
    assert found["old"]["tip"] == found["new"]["tip"]


def test_a_tree_on_which_the_series_does_not_apply_is_named(resolving: Resolving) -> None:
    resolving.place.commit("Rename", {TEST: "class TestOther:\n    pass\n"})
    said = resolving.refused("diff", resolving.old, "main", "--series", str(resolving.folder))
    assert "main: change 'test_tint_backward' does not apply" in said


@pytest.mark.parametrize("trees", [("main",), ("main", "nowhere"), ("main", "main", "main")])
def test_what_is_no_pair_of_commits_is_a_usage_error(resolving: Resolving, trees: tuple[str, ...]) -> None:
    code, _, err = resolving.run("diff", *trees, "--series", resolving.folder)
    assert (code, err.count("\n")) == (2, 1)
