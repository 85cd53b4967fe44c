"""``apply-stack capture``: commits become a series that gives their very bytes again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from capture_lab import Checkout, run
from documents import document
from patchstack.capture.folder import draft, publish
from patchstack.capture.run import capture
from patchstack.edits.cxx_edit import CxxEdit
from patchstack.errors import PatchstackError, UsageError
from patchstack.series import load_series
from patchstack.tree.git import Repository

FUNCTIONS = "aten/src/ATen/native/native_functions.yaml"
HOST, HEADER, TEST, NOTES = "ops/Tint.mm", "ops/Tint.h", "test/test_tint.py", "docs/tint.md"


def _kinds(place: Checkout, repository: Repository, folder: Path, **options: Any) -> list[tuple[str, str]]:
    found = capture(repository, "main..HEAD", folder, **options)
    return [(choice.edit.path, choice.edit.kind) for change in found.changes for choice in change.choices]


def _two_commits(place: Checkout) -> None:
    place.git("checkout", "-q", "-b", "work")
    backward = "Tensor tint_backward_mps(const Tensor& grad) {\n  return grad;\n}\n"
    files = place.replaced(
        FUNCTIONS, "    CPU: tint_backward_cpu\n", "    CPU: tint_backward_cpu\n    MPS: tint_backward_mps\n"
    )
    files |= place.replaced(HOST, "\n} // namespace", f"\n{backward}\n}} // namespace")
    files |= {"ops/Shade.h": "#pragma once\nstruct Shade {\n  float value;\n};\n"}
    place.commit("[MPS] Add tint_backward\n\nThe gradient.\n\nCo-authored-by: B <b@example.org>", files)
    files = place.replaced(TEST, "2)\n", "2)\n\n    def test_backward(self):\n        self.assertTrue(backward())\n")
    files |= place.replaced(NOTES, "Line 7 of", "The seventh line of")
    place.commit("[MPS] Test tint_backward", files)


def test_two_commits_become_a_series_that_gives_the_same_trees(
    place: Checkout, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _two_commits(place)
    folder = tmp_path / "mine"
    code, out, _ = run(capsys, "capture", "main..HEAD", "--series", folder, "--repo", place.path)
    assert code == 0, out
    series = load_series(str(folder))
    assert [change.id for change in series.changes] == ["tint_backward", "test_tint_backward"]
    assert [change.title for change in series.changes] == ["[MPS] Add tint_backward", "[MPS] Test tint_backward"]
    assert series.changes[0].body == "The gradient.\n"
    assert [person.email for person in series.changes[0].co_authors] == ["b@example.org"]
    code, out, err = run(
        capsys, "--onto", "main", "--series", folder, "--repo", place.path, "--branch", "again", "--json"
    )
    assert code == 0, err
    for theirs, ours in (("work~1", "again~1"), ("work", "again")):
        assert place.files_of(theirs) == place.files_of(ours)


def test_each_hunk_gets_the_most_durable_kind_that_gives_its_bytes(
    place: Checkout, opened: Repository, tmp_path: Path
) -> None:
    _two_commits(place)
    assert _kinds(place, opened, tmp_path / "mine") == [
        (FUNCTIONS, "add-dispatch-key"),
        ("ops/Shade.h", "create-file"),
        (HOST, "place-fragment"),
        (NOTES, "apply-diff"),
        (TEST, "place-fragment"),
    ]


@pytest.mark.parametrize(
    ("path", "old", "new", "kind"),
    [
        (HOST, "  check(out);\n", "  check(out);\n  check(self);\n", "place-fragment"),
        (HOST, "value * 2", "value * 3", "replace-definition"),
        (HOST, "#include <ops/Tint.h>\n", "#include <ops/Shade.h>\n#include <ops/Tint.h>\n", "place-fragment"),
        (HEADER, "  float value_ = 1;\n", "  float value_ = 1;\n  bool dark_ = false;\n", "place-fragment"),
        (HEADER, "float value() const;", "double value() const;", "replace-statements"),
        (HEADER, "void tint_all();\n", "", "replace-statements"),
        (HEADER, "#pragma once\n", "#pragma once\n#define TINTS 2\n", "replace-statements"),
        (TEST, '    "other": [1],\n', '    "other": [1],\n    "third": [2],\n', "add-python-entry"),
        (TEST, '    "tint": None,\n', "", "remove-python-entry"),
        (TEST, "tint(1), 2", "tint(1), 3", "replace-definition"),
        (TEST, "\n\nSKIPS = {", "\nMORE = 1\nSKIPS = {", "replace-statements"),
        ("CMakeLists.txt", "add(tint)", "add(tint shade)", "apply-diff"),
        (FUNCTIONS, "autogen: tint_backward.out", "autogen: tint_backward.two", "replace-statements"),
        (FUNCTIONS, "  autogen: tint", "  tags: core\n  autogen: tint", "place-fragment"),
    ],
)
def test_one_hunk(
    place: Checkout, opened: Repository, tmp_path: Path, path: str, old: str, new: str, kind: str
) -> None:
    place.git("checkout", "-q", "-b", "work")
    place.commit("Change a line", place.replaced(path, old, new))
    assert _kinds(place, opened, tmp_path / "mine") == [(path, kind)]


def test_lines_of_a_function_are_named_after_it(place: Checkout, opened: Repository, tmp_path: Path) -> None:
    place.git("checkout", "-q", "-b", "work")
    place.commit("Check more", place.replaced(HOST, "  check(out);\n", "  check(out);\n  check(self);\n"))
    capture(opened, "main..HEAD", tmp_path / "mine")
    ((edit,),) = (change.edits for change in load_series(str(tmp_path / "mine")).changes)
    assert isinstance(edit, CxxEdit)
    assert edit.fragment.name == "tint_mps_lines"


HELPERS = """\
namespace at::native {

static int one(int a) {
  return a;
}

// Twice.
static int two(int a) {
  return one(a) + one(a);
}

int other(int a) {
  return a;
}

int three(int a) {
  return two(a) + one(a);
}

} // namespace at::native
"""


@pytest.mark.parametrize("below", ["int other(", "int another("])
def test_helpers_that_a_commit_takes_out_go_behind_what_used_them(
    place: Checkout, opened: Repository, tmp_path: Path, below: str
) -> None:
    place.commit("Helpers", {"ops/help.mm": HELPERS})
    place.git("checkout", "-q", "-b", "work")
    helpers = HELPERS[HELPERS.index("static int one") : HELPERS.index("int other")]
    text = HELPERS.replace(helpers, "").replace("two(a) + one(a)", "a + a + a").replace("int other(", below)
    place.commit("Need no helpers", {"ops/help.mm": text})
    found = capture(opened, "main..HEAD", tmp_path / "mine")
    kinds = [choice.edit.kind for choice in found.changes[0].choices]
    assert kinds[-1] == "remove-unused-definition"
    assert "apply-diff" not in kinds
    assert sum(choice.hunks for choice in found.changes[0].choices) == 2


def test_what_later_commits_do_to_text_of_earlier_ones_is_kept_apart(
    place: Checkout, opened: Repository, tmp_path: Path
) -> None:
    _two_commits(place)
    place.commit("Return a copy", place.replaced(HOST, "return grad;", "return grad.clone();"))
    place.commit("Widen the shade", place.replaced("ops/Shade.h", "float value", "double value"))
    found = capture(opened, "main..HEAD", tmp_path / "mine")
    assert [change.needs for change in found.changes] == [
        (),
        (),
        ("tint_backward",),
        ("tint_backward",),
    ]


def test_a_series_that_exists_is_extended_and_keeps_its_letters(
    place: Checkout, opened: Repository, tmp_path: Path
) -> None:
    _two_commits(place)
    folder = tmp_path / "mine"
    capture(opened, "main..HEAD~1", folder)
    manifest = folder / "series.yaml"
    before = manifest.read_text().replace("changes:\n", "# My own words.\nchanges:\n")
    manifest.write_text(before)
    found = capture(opened, "HEAD~1..HEAD", folder)
    assert [change.identity for change in found.changes] == ["test_tint_backward"]
    assert manifest.read_text().replace("\n", "").find("# My own words.changes:") > 0
    assert [change.id for change in load_series(str(folder)).changes] == ["tint_backward", "test_tint_backward"]


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("delete", "docs/tint.md: no edit takes a whole file away"),
        ("binary", "docs/picture.bin: a binary file"),
        ("latin", "the name of a file is not UTF-8, so that no manifest can have it; found 'docs/t"),
        ("feed", "the path 'docs/a\\nb.md' has a character that cannot be printed"),
        ("slash", "has a backslash; expected '/' between the parts"),
        ("mode", "CMakeLists.txt: a change of mode or kind"),
        ("link", "docs/link: a change of mode or kind cannot be captured; found a symbolic link"),
        ("crlf", "docs/new.md: a file with CR LF"),
    ],
)
def test_what_no_edit_can_say_is_refused_by_name_and_nothing_is_written(
    place: Checkout, tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str, said: str
) -> None:
    place.git("checkout", "-q", "-b", "work")
    if what == "delete":
        place.git("rm", "-q", NOTES)
    elif what == "mode":
        (place.path / "CMakeLists.txt").chmod(0o755)
    elif what == "link":
        os.symlink("tint.md", place.path / "docs/link")
    elif what == "latin":
        Path(os.fsdecode(os.fsencode(place.path) + b"/docs/t\xefnt.md")).write_text("text\n")
    files = {
        "binary": {"docs/picture.bin": b"\0\1"},
        "crlf": {"docs/new.md": b"a\r\nb\r\n"},
        "feed": {"docs/a\nb.md": b"a\n"},
        "slash": {"docs/a\\b.md": b"a\n"},
    }.get(what, {})
    place.commit("Do something", files)
    code, _, err = run(capsys, "capture", "main..HEAD", "--series", tmp_path / "mine", "--repo", place.path)
    assert (code, said in err) == (3, True), err
    assert sorted(file.name for file in tmp_path.iterdir()) == ["checkout"]


@pytest.mark.parametrize(
    ("message", "problem"), [(b"", "the commit has no message"), (b"caf\xe9\n", "the message is not UTF-8")]
)
def test_a_message_that_no_series_can_have_is_refused(
    place: Checkout, opened: Repository, tmp_path: Path, message: bytes, problem: str
) -> None:
    place.git("checkout", "-q", "-b", "work")
    (place.path / NOTES).write_text("Other notes.\n")
    (tmp_path / "message").write_bytes(message)
    commit = ("-c", "i18n.commitEncoding=latin1", "commit", "-q", "-a", "--allow-empty-message", "-F")
    place.git(*commit, str(tmp_path / "message"))
    with pytest.raises(PatchstackError, match=problem):
        capture(opened, "main..HEAD", tmp_path / "mine")


def test_a_schema_line_that_changes_is_announced(place: Checkout, opened: Repository, tmp_path: Path) -> None:
    place.git("checkout", "-q", "-b", "work")
    place.commit("Add an argument", place.replaced(FUNCTIONS, "tint(Tensor self)", "tint(Tensor self, int by=1)"))
    (change,) = capture(opened, "main..HEAD", tmp_path / "mine").changes
    assert (
        "the schema of tint changes from 'tint(Tensor self) -> Tensor' to 'tint(Tensor self, int by=1)"
        in change.notes[0]
    )
    assert "validate-stack --only fc-window" in change.notes[0]


def test_a_dry_run_writes_nothing(place: Checkout, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _two_commits(place)
    command = ("capture", "main..HEAD", "--series", tmp_path / "mine", "--repo", place.path, "--dry-run", "--json")
    code, out, _ = run(capsys, *command)
    assert code == 0
    assert document(out)["written"] is False
    assert not (tmp_path / "mine").exists()


@pytest.mark.parametrize("commits", ["main", "main..main", "nowhere..HEAD"])
def test_a_range_that_is_none_is_a_usage_error(opened: Repository, tmp_path: Path, commits: str) -> None:
    with pytest.raises(UsageError, match=r"BASE\.\.HEAD"):
        capture(opened, commits, tmp_path / "mine")


@pytest.mark.parametrize("name", ["../../x", "a b", "-x", "A"])
def test_a_name_that_is_no_id_is_refused_and_nothing_is_written(place: Checkout, tmp_path: Path, name: str) -> None:
    _two_commits(place)
    (tmp_path / "a").mkdir()
    with Repository.open(place.path) as repository, pytest.raises(UsageError, match="cannot be an id"):
        capture(repository, "main..HEAD", tmp_path / "a" / "mine", name=name)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a", "checkout"]
    assert list((tmp_path / "a").iterdir()) == []


def test_a_folder_that_cannot_be_written_is_a_usage_error(opened: Repository, place: Checkout) -> None:
    _two_commits(place)
    with pytest.raises(UsageError, match="nothing can be written beside the series"):
        capture(opened, "main..HEAD", Path("/proc/mine"))


@pytest.mark.parametrize("command", [["capture", "main..HEAD"], ["refresh"], ["diff"]])
def test_a_second_series_is_refused_where_a_command_takes_one(
    place: Checkout, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    both = ["--series", tmp_path / "mine", "--series", tmp_path / "yours"]
    code, _, err = run(capsys, *command, *both, "--repo", place.path)
    assert (code, "--series is given 2 times" in err) == (2, True), err


def test_a_folder_with_something_else_is_refused(place: Checkout, opened: Repository, tmp_path: Path) -> None:
    _two_commits(place)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("x")
    with pytest.raises(PatchstackError, match="holds something that is no series"):
        capture(opened, "main..HEAD", tmp_path / "mine")


def test_a_folder_is_exchanged_as_a_whole(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "old").write_text("x")
    with draft(folder) as copy:
        (copy / "old").unlink()
        (copy / "new").write_text("y")
        assert (folder / "old").exists()
        publish(copy, folder)
        assert sorted(os.listdir(folder)) == ["new", "overlay"]
    assert os.listdir(tmp_path) == ["mine"]


def test_include_lines_become_an_edit_each_with_further_places(
    place: Checkout, opened: Repository, tmp_path: Path
) -> None:
    place.git("checkout", "-q", "-b", "work")
    lines = "#include <ops/Hue.h>\n#include <ops/Shade.h>\n"
    place.commit("Include more", place.replaced(HOST, "#include <ops/Tint.h>\n", f"{lines}#include <ops/Tint.h>\n"))
    capture(opened, "main..HEAD", tmp_path / "mine")
    edits = load_series(str(tmp_path / "mine")).changes[0].edits
    assert [edit.describe() for edit in edits] == [
        "add 'Hue_include' into include block ops/Tint.h",
        "add 'Shade_include' into include block ops/Tint.h",
    ]
    assert [str(place) for place in getattr(edits[0], "others")] == ["into include block ops/Common.h"]  # noqa: B009


def test_a_fragment_lands_beside_its_other_neighbour_where_the_first_one_was_renamed(
    place: Checkout, opened: Repository, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place.git("checkout", "-q", "-b", "work")
    more = "float more(float value) {\n  return value;\n}\n\n"
    place.commit("Add more", place.replaced(HOST, "Tensor tint_mps", f"{more}Tensor tint_mps"))
    capture(opened, "main..HEAD", tmp_path / "mine")
    place.git("checkout", "-q", "-b", "newer", "main")
    place.commit("Rename", place.replaced(HOST, "tint_of(", "shade_of("))
    command = ("--onto", "newer", "--series", tmp_path / "mine", "--repo", place.path, "--branch", "again")
    code, _, err = run(capsys, *command)
    assert code == 0, err
    assert f"}}\n\n{more}Tensor tint_mps" in place.git("show", f"again:{HOST}")


def test_a_new_series_applies_as_it_is(place: Checkout, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "my-op"
    assert run(capsys, "new", folder)[0] == 0
    assert [change.id for change in load_series(str(folder)).changes] == ["my_op"]
    code, _, err = run(capsys, "--onto", "main", "--series", folder, "--repo", place.path)
    assert code == 0, err
    assert place.git("show", "stack/my-op:docs/my_op.md") == "# my_op"
    code, _, err = run(capsys, "new", folder)
    assert (code, "the folder is not empty" in err) == (2, True)
