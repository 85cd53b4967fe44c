from __future__ import annotations

import dataclasses
import hashlib
import sys
from pathlib import Path

import pytest

from patchstack.errors import TreeError
from patchstack.reference.artefacts import WHEEL_FOLDER, fetch_artefact
from patchstack.reference.build import build_spec
from patchstack.reference.model import Artefact, Progress, ReferenceSpec

from .conftest import TinyRelease


def downloads(tiny: TinyRelease) -> list[str]:
    return sorted(place.name for place in (tiny.cache / "downloads").iterdir())


def forget_tree(tiny: TinyRelease) -> None:
    """Make the next build need the artefact again, as a new stand-in does."""
    tiny.add_stand_in("test/again.py", b"\n")


def test_a_download_with_another_digest_is_refused_and_not_kept(tiny: TinyRelease) -> None:
    expected = tiny.spec.artefact.sha256
    tiny.wheel.write_bytes(tiny.wheel.read_bytes() + b"tampered")
    with pytest.raises(TreeError) as caught:
        build_spec(tiny.spec, tiny.surroundings)
    assert tiny.spec.artefact.filename in caught.value.where
    assert caught.value.expected == f"SHA-256 {expected}"
    assert len(caught.value.found) == 64
    assert caught.value.found != expected
    assert downloads(tiny) == []


def test_a_download_that_broke_off_half_way_is_started_again(tiny: TinyRelease) -> None:
    def half(spec: ReferenceSpec, folder: Path, progress: Progress) -> None:
        (folder / spec.artefact.filename).write_bytes(tiny.wheel.read_bytes()[:200])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_spec(tiny.spec, dataclasses.replace(tiny.surroundings, fetch=half))
    left_by_a_kill = tiny.cache / "downloads" / f"{tiny.wheel.name}.part-0123"
    left_by_a_kill.mkdir()
    (left_by_a_kill / tiny.wheel.name).write_bytes(b"half")
    tree = build_spec(tiny.spec, tiny.surroundings)
    assert tree.path.is_dir()
    assert [name.rsplit(".", 1)[-1] for name in downloads(tiny)] == ["whl", "verified"]


def test_a_finished_download_is_not_fetched_again_and_not_hashed_again(tiny: TinyRelease) -> None:
    build_spec(tiny.spec, tiny.surroundings)
    forget_tree(tiny)
    said: list[str] = []
    build_spec(tiny.spec, tiny.surroundings, progress=said.append)
    assert tiny.fetched == 1
    assert not any("SHA-256" in step for step in said)


@pytest.mark.parametrize("offline", [False, True])
def test_a_damaged_file_in_the_cache_is_noticed(tiny: TinyRelease, offline: bool) -> None:
    build_spec(tiny.spec, tiny.surroundings)
    cached = tiny.cache / "downloads" / tiny.wheel.name
    cached.write_bytes(b"damaged")
    forget_tree(tiny)
    if offline:
        with pytest.raises(TreeError, match="not the one that is pinned"):
            build_spec(tiny.spec, tiny.surroundings, offline=True)
    else:
        assert build_spec(tiny.spec, tiny.surroundings).stand_ins == ("test/again.py",)
        assert cached.read_bytes() == tiny.wheel.read_bytes()


def test_offline_without_the_file_says_how_to_get_it(tiny: TinyRelease) -> None:
    with pytest.raises(TreeError, match=r"offline \(next: python -m patchstack.reference 9\.9\)"):
        build_spec(tiny.spec, tiny.surroundings, offline=True)
    assert tiny.fetched == 0


def test_the_users_own_copy_is_used_in_place_without_network(
    tiny: TinyRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(WHEEL_FOLDER, str(tiny.wheel.parent))
    assert build_spec(tiny.spec, tiny.surroundings, offline=True).path.is_dir()
    assert tiny.fetched == 0
    assert not any(name.endswith(".whl") for name in downloads(tiny))


def test_the_users_own_copy_is_verified_too_and_never_deleted(
    tiny: TinyRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(WHEEL_FOLDER, str(tiny.wheel.parent))
    tiny.wheel.write_bytes(b"another wheel")
    with pytest.raises(TreeError, match="not the one that is pinned"):
        build_spec(tiny.spec, tiny.surroundings)
    assert tiny.wheel.read_bytes() == b"another wheel"


def test_an_empty_own_folder_is_an_error_not_a_download(
    tiny: TinyRelease, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(WHEEL_FOLDER, str(tmp_path))
    with pytest.raises(TreeError, match="no such file in the folder given by the environment"):
        build_spec(tiny.spec, tiny.surroundings)
    assert tiny.fetched == 0


def test_a_download_that_brings_another_file_is_an_error_that_names_both(tiny: TinyRelease) -> None:
    def other(spec: ReferenceSpec, folder: Path, progress: Progress) -> None:
        (folder / "torch-9.9.0-other.whl").write_bytes(b"")

    with pytest.raises(TreeError, match=rf"expected {tiny.wheel.name}, found torch-9\.9\.0-other\.whl"):
        build_spec(tiny.spec, dataclasses.replace(tiny.surroundings, fetch=other))


def test_a_file_that_is_no_wheel_is_one_clear_error(tiny: TinyRelease) -> None:
    tiny.wheel.write_bytes(b"not a zip file")
    pinned = Artefact(tiny.wheel.name, hashlib.sha256(b"not a zip file").hexdigest())
    with pytest.raises(TreeError, match="not a readable wheel"):
        build_spec(dataclasses.replace(tiny.spec, artefact=pinned), tiny.surroundings)


def test_a_failing_pip_is_quoted_with_the_command_to_run_by_hand(
    tiny: TinyRelease, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = tmp_path / "python"
    failing.write_text("#!/bin/sh\necho 'ERROR: no route to the index' >&2\nexit 1\n")
    failing.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(failing))
    with pytest.raises(TreeError, match="found ERROR: no route to the index") as caught:
        build_spec(tiny.spec, dataclasses.replace(tiny.surroundings, fetch=fetch_artefact))
    assert "pip download" in caught.value.next_command
    assert "--platform macosx_14_0_arm64 torch==9.9.0" in caught.value.next_command


def test_a_digest_that_is_no_digest_cannot_be_pinned() -> None:
    with pytest.raises(ValueError, match="not a SHA-256 digest"):
        Artefact("a.whl", "abc")
