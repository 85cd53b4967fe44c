"""Several series on one branch: each keeps its ids and its pull requests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from capture_lab import Checkout, place, run
from documents import document

__all__ = ["place"]

HOST, NOTES = "ops/Tint.mm", "docs/tint.md"


def _captured(
    place: Checkout, folder: Path, title: str, files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A series of one change, which is on no branch."""
    place.git("checkout", "-q", "--detach", "main")
    place.commit(title, files)
    code, _, err = run(capsys, "capture", "main..HEAD", "--series", folder, "--repo", place.path)
    assert code == 0, err
    place.git("checkout", "-q", "main")


@pytest.fixture
def two(place: Checkout, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The options that name two series."""
    words = list[str]()
    for name, title, path, old in (("one", "Check it", HOST, "  check(out);\n"), ("two", "Say it", NOTES, "Line 7")):
        _captured(place, tmp_path / name, title, place.replaced(path, old, f"{old}// "), capsys)
        words += ["--series", str(tmp_path / name)]
    return words


def test_two_series_are_stacked_and_recorded_each_under_its_name(
    place: Checkout, two: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "--onto", "main", *two, "--repo", place.path, "--json")
    assert code == 0, err
    assert document(out)["branch"] == "stack/one+two"
    assert place.git("log", "--reverse", "--format=%s", "main..stack/one+two").split("\n") == ["Check it", "Say it"]
    record = (place.path / ".git" / "apply-stack" / "made.jsonl").read_text().split("\n")
    made = [json.loads(line) for line in record if line]
    assert [(one["series"], one["change"]) for one in made] == [("one", "check_it"), ("two", "say_it")]


def test_each_series_keeps_its_trailers(place: Checkout, two: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    command = ("--onto", "main", *two, "--repo", place.path)
    assert run(capsys, *command)[0] == 0
    place.git("checkout", "-q", "stack/one+two")
    tip = place.git("rev-parse", "HEAD")
    place.git("checkout", "-q", "--detach", "main")
    for number, commit in ((7, f"{tip}~1"), (8, tip)):
        tree, words = place.git("rev-parse", f"{commit}^{{tree}}"), place.git("log", "-1", "--format=%B", commit)
        pull = f"ghstack-source-id: {tree}\nPull-Request: https://github.com/pytorch/pytorch/pull/{number}"
        place.git("reset", "-q", "--hard", place.git("commit-tree", tree, "-p", "HEAD", "-m", f"{words}\n\n{pull}"))
    place.git("branch", "-f", "stack/one+two", "HEAD")
    place.git("checkout", "-q", "main")
    place.commit("Upstream goes on", place.replaced(NOTES, "Line 20", "Line XX"))
    code, _, err = run(capsys, *command)
    assert code == 0, err
    bodies = [place.git("log", "-1", "--format=%B", f"stack/one+two{up}") for up in ("~1", "")]
    assert [body.rpartition("/")[2] for body in bodies] == ["7", "8"]


def test_a_shared_id_is_one_sentence(
    place: Checkout, tmp_path: Path, two: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    _captured(place, tmp_path / "three", "Say it!", place.replaced(NOTES, "Line 9", "// 9"), capsys)
    command = ("--onto", "main", *two, "--series", tmp_path / "three", "--repo", place.path)
    code, _, err = run(capsys, *command)
    assert (code, err.count("\n")) == (2, 1)
    assert "series 'three' and series 'two' have a change of the same id 'say_it'" in err


def test_a_resolve_takes_one_series(place: Checkout, two: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "--onto", "main", *two, "--repo", place.path, "--resolve")
    assert (code, "--resolve does not go with several --series" in err) == (2, True)


def test_an_amendment_goes_into_the_series_of_its_commit_and_the_others_are_left_alone(
    place: Checkout, two: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, "--onto", "main", *two, "--repo", place.path)[0] == 0
    place.git("checkout", "-q", "stack/one+two~1")
    place.commit(
        "Check it", place.replaced(HOST, "  check(out);\n// ", "  check(out);\n  check(again);\n// "), amend=True
    )
    place.git("cherry-pick", "stack/one+two")
    place.git("branch", "-f", "stack/one+two", "HEAD")

    def refreshed(name: str) -> dict[str, Any]:
        command = ("refresh", "--series", tmp_path / name, "--from", "stack/one+two", "--repo", place.path, "--json")
        code, out, err = run(capsys, *command)
        assert code == 0, err
        found: dict[str, Any] = document(out)
        return found

    first = refreshed("one")
    assert [one["change"] for one in first["commits"]] == ["check_it"]
    assert first["rewritten"] == {"check_it": [HOST]}
    second = refreshed("two")
    assert (second["diff"], second["rewritten"]) == ("", {})
    assert run(capsys, "--onto", "main", *two, "--branch", "again", "--repo", place.path)[0] == 0
    assert place.files_of("again") == place.files_of("stack/one+two")
