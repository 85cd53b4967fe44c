"""``apply-stack --resolve``: a conflict is answered by hand once, and the series knows the answer from then on."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from patchstack.series import load_series
from resolve_lab import HOST, NOTES, TEST, TITLES, Resolving, forget_bases, put_in, rename_anchor


def test_a_lost_anchor_is_answered_once_and_its_new_place_is_learned(resolving: Resolving) -> None:
    forget_bases(resolving.folder)
    rename_anchor(resolving)
    found = resolving.meets_a_conflict()
    worktree = Path(found["worktree"])
    assert worktree.is_relative_to(resolving.cache)
    assert [(one["path"], one["beside"]) for one in found["files"]] == [(HOST, f"{HOST}.tint_backward_mps.fragment")]
    assert "tint_backward_mps" in (worktree / "aten/src/ATen/native/native_functions.yaml").read_text()  # it fits
    assert resolving.place.git("status", "--porcelain") == ""
    put_in(resolving, found)
    done = resolving.goes_on()
    assert [change["title"] for change in done["changes"]] == list(TITLES)
    assert done["moved"]
    (learned,) = done["resolve"]["learned"]
    assert learned == (
        f"tint_backward: {HOST}: 'tint_backward_mps' has one more place: after function tint_on_mps in at::native"
    )
    assert "+          - after: {function: tint_on_mps" in done["resolve"]["diff"]
    assert done["resolve"]["verified"] == [resolving.place.git("rev-parse", "main"), resolving.old]
    assert "tint_on_mps" in resolving.place.git("show", f"stack/mine:{HOST}")
    resolving.require_no_trace()
    resolving.require_learned()


def test_text_that_both_sides_changed_stands_between_markers_with_its_base(resolving: Resolving) -> None:
    place = resolving.place
    place.commit("Number", place.replaced(NOTES, "Line 7 of", "Line seven of"))
    found = resolving.meets_a_conflict()
    assert found["change"] == "test_tint_backward"
    text = (Path(found["worktree"]) / NOTES).read_text()
    for line in ("<<<<<<< main", "||||||| base", "=======", ">>>>>>> test_tint_backward"):
        assert text.count(f"\n{line}\n") == 1
    assert "Line seven of the notes.\n||||||| base\nLine 7 of the notes.\n=======\nThe seventh" in text
    assert "test_backward" in (Path(found["worktree"]) / TEST).read_text()
    assert TITLES[0] in place.git("-C", found["worktree"], "log", "-1", "--format=%s")


@pytest.mark.parametrize("what", ["nothing", "markers", "beside"])
def test_a_result_that_is_none_is_one_sentence(resolving: Resolving, what: str) -> None:
    place = resolving.place
    if what == "beside":
        forget_bases(resolving.folder)
        rename_anchor(resolving)
        found = resolving.meets_a_conflict()
        resolving.edit(found["worktree"], TEST, "class TestTint", "# Mine.\nclass TestTint")
        assert "nothing was edited" in resolving.refused("resolve", "--continue")
        return
    place.commit("Number", place.replaced(NOTES, "Line 7 of", "Line seven of"))
    found = resolving.meets_a_conflict()
    said = "nothing was edited"
    if what == "markers":
        resolving.edit(found["worktree"], NOTES, "<<<<<<< main\n", "")
        said = f"{NOTES}:8: a conflict marker is left"
    before = place.git("for-each-ref")
    assert said in resolving.refused("resolve", "--continue")
    assert place.git("for-each-ref") == before


def test_abort_leaves_no_trace(resolving: Resolving) -> None:
    place = resolving.place
    place.commit("Number", place.replaced(NOTES, "Line 7 of", "Line seven of"))
    refs, manifest = place.git("for-each-ref"), (resolving.folder / "series.yaml").read_text()
    resolving.meets_a_conflict()
    assert "is under way" in resolving.refused("--onto", "main", "--series", str(resolving.folder), "--resolve")
    assert resolving.ok("resolve", "--abort")["aborted"]
    resolving.require_no_trace()
    assert (place.git("for-each-ref"), (resolving.folder / "series.yaml").read_text()) == (refs, manifest)
    assert "nothing is being resolved" in resolving.refused("resolve", "--continue")
    assert "nothing is being resolved" in resolving.refused("resolve", "--abort")


def test_one_conflict_after_the_other_and_the_checkout_is_left_alone(resolving: Resolving) -> None:
    place = resolving.place
    forget_bases(resolving.folder)
    rename_anchor(resolving)
    text = (place.path / TEST).read_text().replace("class TestTint(", "class TestTintOnMPS(")
    place.commit("Rename the test", {TEST: text})
    (place.path / NOTES).write_text("Work of mine.\n")
    put_in(resolving, resolving.meets_a_conflict())
    code, out, _ = resolving.run("resolve", "--continue")
    assert (code, "change test_tint_backward waits for you" in out) == (3, True)
    worktree = next((resolving.cache / "resolve").iterdir())
    assert not list(worktree.rglob("*Tint.mm.*"))
    assert "tint_backward_mps" in (worktree / HOST).read_text()
    fragment = (worktree / f"{TEST}.test_backward.fragment").read_text()
    resolving.edit(str(worktree), TEST, "2)\n", f"2)\n\n{fragment}")
    done = resolving.goes_on()
    assert len(done["resolve"]["learned"]) == 2
    assert "edits of their own where test_tint.py defines TestTintOnMPS" in done["resolve"]["learned"][1]
    assert (place.path / NOTES).read_text() == "Work of mine.\n"
    place.git("checkout", "-q", NOTES)
    resolving.require_no_trace()
    resolving.require_learned()


def test_a_merged_text_is_for_trees_like_the_new_one(resolving: Resolving) -> None:
    forget_bases(resolving.folder)
    rename_anchor(resolving)
    found = resolving.meets_a_conflict()
    put_in(resolving, found)
    resolving.edit(found["worktree"], HOST, "  return grad;\n", "  return on(grad);\n")
    done = resolving.goes_on()
    (learned,) = done["resolve"]["learned"]
    assert "'tint_backward_mps' has another text where Tint.mm defines" in learned
    first, second = (e for e in load_series(str(resolving.folder)).changes[0].edits if e.path == HOST)
    assert (len(first.only_where), second.only_where) == (1, ())
    resolving.require_no_trace()
    resolving.require_learned()


def test_other_lines_of_a_document_are_one_more_diff(resolving: Resolving) -> None:
    place = resolving.place
    place.commit("Number", place.replaced(NOTES, "Line 7 of", "Line seven of"))
    found = resolving.meets_a_conflict()
    text = (Path(found["worktree"]) / NOTES).read_text()
    start, end = text.index("<<<<<<<"), text.index(">>>>>>> test_tint_backward\n") + len(">>>>>>> test_tint_backward\n")
    (Path(found["worktree"]) / NOTES).write_text(f"{text[:start]}The line seven of the notes.\n{text[end:]}")
    (learned,) = resolving.goes_on()["resolve"]["learned"]
    assert learned == f"test_tint_backward: {NOTES}: one more diff, for trees that lack the lines of the others"
    assert "The line seven of" in place.git("show", f"stack/mine:{NOTES}")
    assert len(list((resolving.folder / "diffs").rglob("*.diff"))) == 2
    resolving.require_no_trace()
    resolving.require_learned()


def test_what_cannot_be_learned_is_said_and_the_branch_has_it(resolving: Resolving) -> None:
    place = resolving.place
    theirs = "2)\n\n    def test_backward(self):\n        pass\n"
    place.commit("Test it", place.replaced(TEST, "2)\n", theirs))
    found = resolving.meets_a_conflict()
    assert [one["path"] for one in found["files"]] == [TEST]
    (Path(found["worktree"]) / TEST).write_text(
        (place.path / TEST).read_text().replace("        pass\n", "        self.assertTrue(backward(2))\n")
    )
    manifest = (resolving.folder / "series.yaml").read_text()
    code, out, _ = resolving.run("resolve", "--continue")
    assert code == 0
    assert f"not learned: test_tint_backward: {TEST}: no place or condition tells this tree" in out
    assert "backward(2)" in place.git("show", f"stack/mine:{TEST}")
    assert (resolving.folder / "series.yaml").read_text() == manifest
    resolving.require_no_trace()


@pytest.mark.parametrize("option", ["--dry-run", "--checkout"])
def test_options_that_a_resolve_cannot_carry_are_refused(resolving: Resolving, option: str) -> None:
    code, _, err = resolving.run("--onto", "main", "--series", resolving.folder, "--resolve", option)
    assert (code, f"--resolve does not go with {option}" in err) == (2, True)


def test_without_a_conflict_resolve_changes_nothing_about_a_run(resolving: Resolving) -> None:
    assert resolving.apply("--resolve")["resolve"]["worktree"] is None
    resolving.require_no_trace()


def _conflict_in_the_notes(resolving: Resolving) -> Path:
    """The worktree of a conflict that is answered."""
    place = resolving.place
    place.commit("Number", place.replaced(NOTES, "Line 7 of", "Line seven of"))
    worktree = Path(resolving.meets_a_conflict()["worktree"])
    lines = (place.path / NOTES).read_text().replace("Line seven of", "The line seven of")
    (worktree / NOTES).write_text(lines)
    return worktree


def test_hooks_and_line_endings_of_the_user_have_no_say(resolving: Resolving) -> None:
    place = resolving.place
    hook = place.path / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch HOOKED\nexit 1\n")
    hook.chmod(0o755)
    place.git("config", "core.autocrlf", "true")
    place.git("config", "core.hooksPath", str(hook.parent))
    worktree = _conflict_in_the_notes(resolving)
    assert (worktree / NOTES).read_bytes().count(b"\r") == 0
    assert (worktree / HOST).read_bytes().count(b"\r") == 0
    assert not (worktree / "HOOKED").exists()
    assert resolving.goes_on()["moved"]
    assert "\r" not in place.git("show", f"stack/mine:{NOTES}")


def test_a_branch_that_cannot_be_moved_keeps_the_answer_until_it_can(resolving: Resolving) -> None:
    place = resolving.place
    worktree = _conflict_in_the_notes(resolving)
    place.git("checkout", "-q", "stack/mine")
    assert "switch --detach" in resolving.refused("resolve", "--continue")
    assert worktree.is_dir()
    place.git("checkout", "-q", "main")
    assert resolving.goes_on()["moved"]
    resolving.require_no_trace()
    resolving.require_learned()


def test_a_worktree_that_is_gone_is_said_and_aborted(resolving: Resolving) -> None:
    shutil.rmtree(_conflict_in_the_notes(resolving))
    assert "the worktree of the resolve is gone" in resolving.refused("resolve", "--continue")
    resolving.ok("resolve", "--abort")
    resolving.require_no_trace()


def test_what_no_series_can_say_is_refused_and_the_worktree_waits(resolving: Resolving) -> None:
    worktree = _conflict_in_the_notes(resolving)
    (worktree / "CMakeLists.txt").unlink()
    assert "no edit takes a whole file away" in resolving.refused("resolve", "--continue")
    resolving.place.git("-C", str(worktree), "checkout", "-q", "HEAD", "--", "CMakeLists.txt")
    (worktree / "stray.txt").write_text("Mine.\n")
    assert resolving.goes_on()["resolve"]["not_taken"] == ["stray.txt"]
    assert "stray.txt" not in resolving.place.files_of("stack/mine")


def test_a_file_that_was_added_with_git_is_taken(resolving: Resolving) -> None:
    worktree = _conflict_in_the_notes(resolving)
    (worktree / "ops/More.h").write_text("struct More {};\n")
    resolving.place.git("-C", str(worktree), "add", "ops/More.h")
    done = resolving.goes_on()["resolve"]
    assert (done["not_taken"], list(done["not_learned"])) == ([], ["test_tint_backward"])
    assert "ops/More.h" in resolving.place.files_of("stack/mine")


def test_what_else_was_edited_is_for_trees_like_the_new_one(resolving: Resolving) -> None:
    forget_bases(resolving.folder)
    rename_anchor(resolving)
    found = resolving.meets_a_conflict()
    put_in(resolving, found)
    worktree = Path(found["worktree"])
    (worktree / "ops/More.h").write_text("struct More {};\n")
    resolving.place.git("-C", str(worktree), "add", "ops/More.h")
    resolving.edit(str(worktree), "CMakeLists.txt", "set(B 2)\n", "set(B 3)\n")
    done = resolving.goes_on()["resolve"]
    assert done["not_learned"] == {}
    assert [said.partition(" where ")[0] for said in done["learned"][1:]] == [
        "tint_backward: CMakeLists.txt: more edits",
        "tint_backward: ops/More.h: more edits",
    ]
    resolving.require_no_trace()
    resolving.require_learned()


@pytest.mark.parametrize("command", ["--continue", "--abort"])
def test_the_command_may_be_typed_in_the_worktree(resolving: Resolving, command: str) -> None:
    worktree = _conflict_in_the_notes(resolving)
    code, out, err = resolving.run("resolve", command, "--json", "--repo", worktree / "docs")
    assert code == 0, err
    if command == "--continue":
        assert json.loads(out)["repository"] == str(resolving.place.path)
    resolving.require_no_trace()


def test_a_damaged_state_is_said_and_cleared_by_abort(resolving: Resolving) -> None:
    (resolving.place.path / ".git" / "apply-stack" / "resolve.json").write_text('{"aim": 1')
    code, _, err = resolving.run("resolve", "--continue")
    assert (code, "the state of the resolve cannot be read" in err, err.count("\n")) == (4, True, 1)
    resolving.ok("resolve", "--abort")
    resolving.require_no_trace()
