"""The edit kind apply-diff: hunks where their lines stand exactly once, else a merge, else a conflict."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchstack.edits import Rung, Status
from patchstack.edits.apply_diff import ApplyDiff
from patchstack.errors import ManifestError
from patchstack.planning.three_way import with_merge
from patchstack.series import load_series
from patchstack.tree.git import Repository, Tree
from patchstack.tree.hunks import (
    Hunk,
    HunkError,
    LineChange,
    line_changes,
    make_hunks,
    read_hunks,
    split_lines,
    write_hunks,
)
from patchstack.tree.text import apply_splices

PATH = "docs/notes.md"
BEFORE = b"".join(b"line %d\n" % number for number in range(1, 21))
HUNK = Hunk(b"line 4\nline 5\nline 6\n", b"line 4\nfive\nline 6\n", 4)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Repository]:
    path = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", path], check=True)
    with Repository.open(path) as repository:
        yield repository


def _tree(repository: Repository, text: bytes, path: str = PATH) -> Tree:
    empty = repository.git("hash-object", "-w", "-t", "tree", "--stdin", stdin=b"").decode().strip()
    return Tree(repository, empty, {path: text})  # type: ignore[arg-type]


def _edit(*hunks: Hunk, base: tuple[str, ...] = ()) -> ApplyDiff:
    return ApplyDiff(path=PATH, hunks=hunks, base=base)


def test_a_hunk_lands_where_its_lines_stand_once_wherever_that_is(repository: Repository) -> None:
    outcome = _edit(HUNK).plan(_tree(repository, b"new\n" * 30 + BEFORE))
    assert outcome.rung is Rung.CONTEXT
    assert outcome.after == b"new\n" * 30 + BEFORE.replace(b"line 5\n", b"five\n")
    assert outcome.matches == (34,)


def test_of_several_diffs_the_first_that_applies_is_taken(repository: Repository) -> None:
    other = Hunk(b"line 4\nline V\nline 6\n", b"line 4\nfive\nline 6\n", 4)
    edit = ApplyDiff(path=PATH, hunks=(HUNK,), others=((other,),))
    after = BEFORE.replace(b"line 5\n", b"five\n")
    for text in (BEFORE, BEFORE.replace(b"line 5\n", b"line V\n")):
        assert edit.plan(_tree(repository, text)).after == after
    assert edit.plan(_tree(repository, after)).status is Status.SATISFIED
    refused = edit.plan(_tree(repository, BEFORE.replace(b"line 5\n", b"line X\n")))
    assert refused.conflict == _edit(HUNK).plan(_tree(repository, BEFORE.replace(b"line 5\n", b"line X\n"))).conflict


def _write_series(folder: Path, diffs: str) -> None:
    (folder / "a.md").write_text("Words.\n")
    edit = f"{{kind: apply-diff, path: {PATH}, {diffs}}}"
    change = f"  - {{id: a, title: A, message: a.md, upstream: [], edits: [{edit}]}}\n"
    (folder / "series.yaml").write_text(f"format: 1\nchanges:\n{change}")
    (folder / "overlay").mkdir()


@pytest.mark.parametrize(
    ("diffs", "said"),
    [("[]", "'diffs' is empty"), ("[../a.diff]", "leaves the folder"), ("[a.diff]", "cannot be read")],
)
def test_a_list_of_diffs_that_cannot_be_is_one_sentence(tmp_path: Path, diffs: str, said: str) -> None:
    _write_series(tmp_path, f"diffs: {diffs}")
    with pytest.raises(ManifestError, match=said):
        load_series(str(tmp_path))


@pytest.mark.parametrize("linked", ["diffs", "diffs/one.diff"])
def test_a_diff_behind_a_symbolic_link_is_refused(tmp_path: Path, linked: str) -> None:
    elsewhere, folder = tmp_path / "elsewhere", tmp_path / "mine"
    elsewhere.mkdir()
    (elsewhere / "one.diff").write_text("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n")
    (folder / linked).parent.mkdir(parents=True)
    (folder / linked).symlink_to(elsewhere / "one.diff" if linked.endswith(".diff") else elsewhere)
    _write_series(folder, "diff: diffs/one.diff")
    with pytest.raises(ManifestError, match=f"{linked}' is a symbolic link"):
        load_series(str(folder))


@pytest.mark.parametrize(("text", "places"), [(BEFORE * 2, 2), (BEFORE.replace(b"line 6", b"line six"), 0)])
def test_lines_that_stand_nowhere_or_twice_are_a_conflict_with_their_number(
    repository: Repository, text: bytes, places: int
) -> None:
    outcome = _edit(HUNK).plan(_tree(repository, text))
    assert outcome.status is Status.CONFLICT
    assert outcome.conflict is not None
    assert f"stand at {places} places, expected 1" in outcome.conflict.problem
    assert len(outcome.matches) == places


def test_a_part_of_a_line_is_no_match(repository: Repository) -> None:
    text = BEFORE.replace(b"line 4", b"a line 4")
    assert _edit(HUNK).plan(_tree(repository, text)).status is Status.CONFLICT


def test_hunks_that_are_there_need_nothing_and_some_of_them_stop(repository: Repository) -> None:
    other = Hunk(b"line 15\n", b"fifteen\n", 15)
    once = BEFORE.replace(b"line 5\n", b"five\n")
    assert _edit(HUNK).plan(_tree(repository, once)).status is Status.SATISFIED
    assert _edit(HUNK, other).plan(_tree(repository, once)).status is Status.DIFFERENT


def test_lines_added_at_the_end_are_seen_to_be_there(repository: Repository) -> None:
    add = Hunk(b"line 20\n", b"line 20\nline 21\n", 20)
    after = _edit(add).plan(_tree(repository, BEFORE)).after
    assert after == BEFORE + b"line 21\n"
    assert _edit(add).plan(_tree(repository, after)).status is Status.SATISFIED


def test_where_the_context_changed_git_merges_from_the_recorded_blob(repository: Repository) -> None:
    blob = repository.git("hash-object", "-w", "--stdin", stdin=BEFORE).decode().strip()
    hunk = Hunk(b"line 2\nline 3\nline 4\nline 5\n", b"line 2\nline 3\nline 4\nfive\n", 2)
    tree = _tree(repository, BEFORE.replace(b"line 2\n", b"two\n"))
    edit = _edit(hunk, base=(blob,))
    refused = edit.plan(tree)
    assert refused.status is Status.CONFLICT
    merged = with_merge(edit, tree, refused, ())
    assert merged.rung is Rung.THREE_WAY
    assert merged.after == BEFORE.replace(b"line 2\n", b"two\n").replace(b"line 5\n", b"five\n")


def test_a_merge_that_would_define_a_name_twice_is_refused(repository: Repository) -> None:
    base = b"int a();\n\n" + b"// text\n" * 9 + b"int z() { return 0; }\n"
    blob = repository.git("hash-object", "-w", "--stdin", stdin=base).decode().strip()
    hunk = Hunk(base, base + b"int b() { return 1; }\n", 1)
    edit = ApplyDiff(path="a/B.mm", hunks=(hunk,), base=(blob,))
    text = b"int b() { return 1; }\n" + base.replace(b"int a();", b"long a();")
    tree = _tree(repository, text, "a/B.mm")
    outcome = with_merge(edit, tree, edit.plan(tree), ())
    assert outcome.after is None
    assert outcome.conflict is not None
    assert "b would be there twice" in outcome.conflict.merge


LINES = st.lists(st.sampled_from([b"a", b"b", b"c", b"{", b"}", b"", b"\r"]), max_size=12)


@given(LINES, LINES, st.booleans(), st.booleans(), st.integers(0, 3))
def test_hunks_of_any_two_texts_survive_being_written_and_give_the_second_text(
    old: list[bytes], new: list[bytes], old_ends: bool, new_ends: bool, context: int
) -> None:
    texts = [b"\n".join(lines) + b"\n" * (ends and bool(lines)) for lines, ends in ((old, old_ends), (new, new_ends))]
    before, after = map(split_lines, texts)
    if before == after:
        return
    head = next(
        (n for n, (x, y) in enumerate(zip(before, after, strict=False)) if x != y), min(len(before), len(after))
    )
    change = LineChange(head, len(before), head, len(after))
    hunks = make_hunks(before, after, [change], context)
    assert read_hunks(write_hunks(PATH, hunks)) == tuple(hunks)
    (hunk,) = hunks
    (place,) = hunk.places(texts[0])
    assert apply_splices(texts[0], [hunk.splice(place)]) == texts[1]


def test_git_applies_what_is_write_hunks(tmp_path: Path) -> None:
    after = BEFORE.replace(b"line 5\n", b"five\n").replace(b"line 9\n", b"").removesuffix(b"\n")
    (tmp_path / "old").write_bytes(BEFORE)
    (tmp_path / "new").write_bytes(after)
    diff = subprocess.run(
        ["git", "diff", "--no-index", "-U0", "old", "new"], cwd=tmp_path, capture_output=True, check=False
    ).stdout
    hunks = make_hunks(split_lines(BEFORE), split_lines(after), line_changes(diff), 3)
    (tmp_path / "d").write_bytes(write_hunks("old", hunks))
    subprocess.run(["git", "apply", "d"], cwd=tmp_path, check=True)
    assert (tmp_path / "old").read_bytes() == after


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"nothing\n", "no hunk"),
        (b"@@ -1,2 +1,2 @@\n a\n", "not as many lines"),
        (b"@@ -1 +1 @@\n-a\n+b\nrest\n", "a hunk ends here"),
    ],
)
def test_a_text_that_is_no_diff_is_refused_with_its_line(text: bytes, problem: str) -> None:
    with pytest.raises(HunkError, match=problem):
        read_hunks(text)
