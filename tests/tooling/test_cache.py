"""The cache holds nothing that cannot be made again: damage and lack of space cost time, and nothing else."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from patchstack.cache import cache_dir, made_folder, read_entry, replacing, write_entry, write_whole
from patchstack.errors import ExitCode, TreeError

PLACE = Path("plans", "ab", "entry.json")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATCHSTACK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_what_is_remembered_is_found_again() -> None:
    write_entry(PLACE, {"a": [1]})
    assert read_entry(PLACE) == {"a": [1]}
    assert read_entry(Path("plans", "other.json")) is None


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[" * 100_000], ids=["none", "cut", "bytes", "deep"])
def test_a_damaged_entry_is_none(cache: Path, content: bytes) -> None:
    write_entry(PLACE, 1)
    (cache / PLACE).write_bytes(content)
    assert read_entry(PLACE) is None


@pytest.mark.parametrize("name", ["a file", "a file/below", "n" * 300])
def test_a_folder_that_cannot_be_made_is_one_sentence_and_nothing_is_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "a file").write_text("")
    monkeypatch.setenv("PATCHSTACK_CACHE", str(tmp_path / name))
    with pytest.raises(TreeError, match="the cache folder cannot be used") as caught:
        cache_dir()
    assert caught.value.where == str(tmp_path / name)
    assert caught.value.exit_code is ExitCode.TREE
    write_entry(PLACE, 1)
    assert read_entry(PLACE) is None


def test_without_a_home_folder_the_error_says_how_to_name_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("no home")

    monkeypatch.delenv("PATCHSTACK_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    with pytest.raises(TreeError, match="PATCHSTACK_CACHE=FOLDER"):
        cache_dir()


def test_an_entry_that_cannot_be_finished_leaves_no_file_behind(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "replace", full)
    write_entry(PLACE, 1)
    assert list((cache / PLACE.parent).iterdir()) == []


def test_a_file_is_there_whole_or_as_it_was(tmp_path: Path) -> None:
    place = tmp_path / "new" / "file.txt"
    write_whole(place, "first")
    with contextlib.suppress(KeyError), replacing(place) as unfinished:
        unfinished.write_text("half")
        assert place.read_text() == "first"
        raise KeyError
    assert (place.read_text(), [*place.parent.iterdir()]) == ("first", [place])
    with replacing(place):
        pass  # what was not written replaces nothing
    assert place.read_text() == "first"


def test_two_writers_of_one_file_do_not_write_to_the_same_unfinished_one(tmp_path: Path) -> None:
    with replacing(tmp_path / "file") as one, replacing(tmp_path / "file") as other:
        assert one != other


def test_a_folder_is_made_once_and_appears_whole(tmp_path: Path) -> None:
    folder = tmp_path / "made"

    def fill(unfinished: Path) -> None:
        assert not folder.exists()
        (unfinished / "file").write_text("text")

    def fail(unfinished: Path) -> None:
        (unfinished / "half").write_text("text")
        raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space left"):
        made_folder(tmp_path / "other", fail)
    assert made_folder(folder, fill) == made_folder(folder, fail) == folder
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")] == ["made", "made/file"]
