"""``apply-stack refresh``: a series follows the commits of its branch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from capture_lab import FILES, Checkout, run
from documents import document
from patchstack.series import load_series

HOST, TEST, NOTES = "ops/Tint.mm", "test/test_tint.py", "docs/tint.md"
FUNCTIONS = "aten/src/ATen/native/native_functions.yaml"
BACKWARD = "Tensor tint_backward_mps(const Tensor& grad) {\n  return grad;\n}\n"


class Life:
    """A series in a folder of its own, applied to ``main`` as the branch ``stack/mine``, which is checked out."""

    def __init__(self, place: Checkout, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.place, self.folder, self._capsys = place, folder, capsys
        place.git("checkout", "-q", "-b", "work")
        key = ("    CPU: tint_backward_cpu\n", "    CPU: tint_backward_cpu\n    MPS: tint_backward_mps\n")
        files = place.replaced(FUNCTIONS, *key) | place.replaced(
            HOST, "\n} // namespace", f"\n{BACKWARD}\n}} // namespace"
        )
        place.commit(
            "[MPS] Add tint_backward\n\nThe gradient.", files | {"ops/Shade.h": "struct Shade {\n  int a;\n};\n"}
        )
        test = place.replaced(TEST, "2)\n", "2)\n\n    def test_backward(self):\n        self.assertTrue(backward())\n")
        place.commit("[MPS] Test tint_backward", test | place.replaced(NOTES, "Line 7 of", "The seventh line of"))
        self.ok("capture", "main..HEAD", "--series", folder)
        self.apply()
        place.git("checkout", "-q", "stack/mine")

    def ok(self, *arguments: Any) -> Any:
        code, out, err = run(self._capsys, *arguments, "--repo", self.place.path, "--json")
        assert code == 0, err
        return document(out)

    def fails(self, *arguments: Any) -> tuple[int, str]:
        code, _, err = run(self._capsys, *arguments, "--repo", self.place.path)
        return code, err

    def apply(self, *more: str) -> Any:
        return self.ok("--onto", "main", "--series", self.folder, *more)

    def refresh(self, *more: str) -> Any:
        return self.ok("refresh", "--series", self.folder, *more)

    def manifest(self) -> str:
        return (self.folder / "series.yaml").read_text()

    def require_same_as_branch(self) -> None:
        """The series, applied anew, gives the trees of the branch, and needs no ``--force`` for it."""
        wanted = [self.place.files_of(c) for c in self.place.git("rev-list", "main..stack/mine").split("\n")]
        self.apply("--branch", "again")
        assert [self.place.files_of(c) for c in self.place.git("rev-list", "main..again").split("\n")] == wanted
        self.place.git("checkout", "-q", "--detach")
        self.apply()
        assert [self.place.files_of(c) for c in self.place.git("rev-list", "main..stack/mine").split("\n")] == wanted


@pytest.fixture
def life(place: Checkout, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Life:
    return Life(place, tmp_path / "mine", capsys)


def test_a_branch_as_it_was_made_changes_nothing(life: Life) -> None:
    before = life.manifest()
    found = life.refresh()
    assert (found["diff"], found["rewritten"], life.manifest()) == ("", {}, before)


def test_an_amended_function_changes_its_fragment_and_nothing_else_of_the_series(life: Life) -> None:
    place, before = life.place, life.manifest()
    place.git("checkout", "-q", "stack/mine~1")
    place.commit(
        place.git("log", "-1", "--format=%B"), place.replaced(HOST, "return grad;", "return grad * 2;"), amend=True
    )
    place.git("cherry-pick", "stack/mine")
    place.git("branch", "-f", "stack/mine", "HEAD")
    code, said = life.fails("--onto", "main", "--series", life.folder)
    assert (code, "apply-stack refresh" in said) == (3, True)
    assert "--force (drops 1 changed line of theirs" in said  # the commit above it is the same again
    found = life.refresh()
    assert found["rewritten"] == {"tint_backward": [HOST]}
    assert "+  return grad * 2;" in found["diff"].split("\n")
    assert life.manifest() == before
    life.require_same_as_branch()


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({NOTES: "One line.\n"}, "drops 29 changed lines of theirs"),  # 29 go, of which the change itself has one
        ({TEST: "class TestTint(TestCase):\n    pass\n"}, "drops 9 changed lines of theirs"),
        ({NOTES: FILES[NOTES]}, "drops 2 changed lines of theirs"),  # they do without what the change did there
        ({}, "drops no line of files, their messages"),
    ],
)
def test_force_says_how_many_lines_it_would_lose(life: Life, files: dict[str, str], said: str) -> None:
    life.place.commit(f"{life.place.git('log', '-1', '--format=%s')}\n\nIn words of my own.", files, amend=True)
    code, complaint = life.fails("--onto", "main", "--series", life.folder)
    assert (code, said in complaint) == (3, True), complaint


def test_a_dry_run_shows_the_difference_and_writes_nothing(life: Life) -> None:
    place = life.place
    place.commit(place.git("log", "-1", "--format=%B"), place.replaced(TEST, "backward())", "backward(2))"), amend=True)
    before = (life.folder / "overlay" / TEST).read_bytes()
    assert "backward(2)" in life.refresh("--dry-run")["diff"]
    assert (life.folder / "overlay" / TEST).read_bytes() == before


def test_an_amendment_outside_the_texts_is_captured_anew_and_comments_stay(life: Life) -> None:
    place = life.place
    (life.folder / "series.yaml").write_text(life.manifest().replace("changes:\n", "# Mine.\nchanges:\n"))
    files = place.replaced(NOTES, "Line 20 of", "The twentieth line of") | {"ops/New.h": "int a();\n"}
    place.commit("[MPS] Test tint_backward, and say so\n\nIn the notes.", files, amend=True)
    found = life.refresh("--match", f"{place.git('rev-parse', 'HEAD')}=test_tint_backward")
    assert found["rewritten"] == {"test_tint_backward": [NOTES, "ops/New.h", "message"]}
    change = load_series(str(life.folder)).changes[1]
    assert (change.title, change.body) == ("[MPS] Test tint_backward, and say so", "In the notes.\n")
    assert "# Mine.\n" in life.manifest()
    life.require_same_as_branch()


def test_new_dropped_and_reordered_commits_are_what_they_are(life: Life) -> None:
    place = life.place
    place.git("checkout", "-q", "main")
    place.git("cherry-pick", "stack/mine")
    place.commit("Explain the colours", place.replaced(NOTES, "Line 12 of", "The twelfth line of"))
    place.git("branch", "-f", "stack/mine", "HEAD")
    place.git("checkout", "-q", "stack/mine")
    place.git("branch", "-f", "main", "main~2")
    found = life.refresh()
    assert found["dropped"] == ["tint_backward"]
    assert [change.id for change in load_series(str(life.folder)).changes] == [
        "test_tint_backward",
        "explain_the_colours",
    ]
    life.require_same_as_branch()


def test_two_commits_that_would_be_one_change_are_asked_about(life: Life) -> None:
    place = life.place
    title = place.git("log", "-1", "--format=%s")
    place.commit(title, place.replaced(NOTES, "Line 12 of", "The twelfth line of"))
    code, said = life.fails("refresh", "--series", life.folder)
    assert code == 3
    assert "2 commits would be the change test_tint_backward" in said
    assert "--match" in said


def test_a_series_that_was_edited_too_is_not_overwritten(life: Life) -> None:
    place, file = life.place, life.folder / "overlay" / TEST
    file.write_text(file.read_text().replace("backward())", "backward(7))"))
    place.commit(place.git("log", "-1", "--format=%B"), place.replaced(TEST, "backward())", "backward(2))"), amend=True)
    code, said = life.fails("refresh", "--series", life.folder)
    assert code == 3
    assert "was edited in the series since the branch was made" in said
    assert "backward(7)" in file.read_text()


def test_a_branch_that_nothing_is_known_of_asks_for_its_base(life: Life) -> None:
    life.place.git("checkout", "-q", "--orphan", "alone")
    life.place.commit("Alone", {})
    code, said = life.fails("refresh", "--series", life.folder, "--from", "alone")
    assert (code, "--base REF" in said) == (2, True)


@pytest.fixture
def stacked(life: Life, tmp_path: Path) -> Path:
    """A second series on top of the first, both on the branch ``both``, which is checked out; its folder."""
    place, upper = life.place, tmp_path / "upper"
    place.commit("Explain the colours", place.replaced(NOTES, "Line 12 of", "The twelfth line of"))
    place.commit("Explain the tints", place.replaced(NOTES, "Line 20 of", "The twentieth line of"))
    life.ok("capture", "HEAD~2..HEAD", "--series", upper)
    life.apply("--series", str(upper), "--branch", "both")
    place.git("checkout", "-q", "both")
    return upper


@pytest.mark.parametrize("name", ["mine", "upper"])
def test_a_branch_of_two_series_changes_neither_as_it_was_made(
    life: Life, stacked: Path, tmp_path: Path, name: str
) -> None:
    found = life.ok("refresh", "--series", tmp_path / name, "--from", "both")
    assert (found["diff"], found["dropped"], len(found["commits"])) == ("", [], 2)


def test_an_amended_and_a_new_commit_of_the_upper_series_go_to_it_alone(life: Life, stacked: Path) -> None:
    place, before = life.place, life.manifest()
    place.commit("Explain the tints", place.replaced(NOTES, "The twentieth line of", "The line 20 of"), amend=True)
    place.commit("Explain line 24", place.replaced(NOTES, "Line 24 of", "The line 24 of"))
    lower = life.ok("refresh", "--series", life.folder, "--from", "both")
    assert (lower["diff"], life.manifest()) == ("", before)
    assert len(life.ok("refresh", "--series", stacked, "--from", "both")["commits"]) == 3
    titles = [change.title for change in load_series(str(stacked)).changes]
    assert titles == ["Explain the colours", "Explain the tints", "Explain line 24"]
    life.apply("--series", str(stacked), "--branch", "again")
    assert place.git("rev-parse", "again^{tree}") == place.git("rev-parse", "both^{tree}")


def test_a_new_commit_between_two_series_is_asked_about(life: Life, stacked: Path) -> None:
    place = life.place
    place.git("checkout", "-q", "both~2")
    place.commit("Explain line 24", place.replaced(NOTES, "Line 24 of", "The line 24 of"))
    between = place.git("rev-parse", "HEAD")
    place.git("cherry-pick", "both~1", "both")
    place.git("branch", "-f", "both", "HEAD")
    code, said = life.fails("refresh", "--series", stacked, "--from", "both")
    assert (code, "lies between this series and 'mine'" in said, f"--match {between[:12]}=" in said) == (3, True, True)
    found = life.ok("refresh", "--series", stacked, "--from", "both", "--match", f"{between}=")
    assert found["commits"][0]["title"] == "Explain line 24"
