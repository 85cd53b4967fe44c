from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path

import pytest

from patchstack.errors import TreeError
from patchstack.reference import SPECS, progress, reference_wheel
from patchstack.reference.__main__ import main
from patchstack.reference.artefacts import DEBIAN_FOLDER, WHEEL_FOLDER
from patchstack.reference.model import Artefact
from references import require_reference


@pytest.mark.needs_reference
def test_the_command_prints_path_and_commit_and_keeps_notes_apart(capsys: pytest.CaptureFixture[str]) -> None:
    tree = require_reference("2.11")
    assert main(["2.11", "--offline"]) == 0
    said = capsys.readouterr()
    assert said.out == f"{tree.path} {tree.commit}\n"
    assert said.err.splitlines() == [f"note: {note}" for note in tree.notes]


def test_what_cannot_be_built_ends_with_the_status_of_an_unusable_tree(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(WHEEL_FOLDER, raising=False)
    assert main(["2.11", "--offline", "--cache", str(tmp_path)]) == 4
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("error: torch-2.11.0")


@pytest.mark.needs_reference
def test_one_tree_that_cannot_be_built_does_not_keep_the_others_from_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    require_reference("2.11")
    monkeypatch.setenv(DEBIAN_FOLDER, str(tmp_path))
    monkeypatch.setitem(SPECS, "2.6", dataclasses.replace(SPECS["2.6"], notes=("not built yet",)))
    assert main(["2.6", "2.11", "--offline"]) == 4
    assert "pytorch-2.11-" in capsys.readouterr().out


def test_the_advice_of_a_missing_wheel_brings_that_wheel(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = tmp_path / "torch-9.9.0-macosx.whl"
    wheel.write_bytes(b"kernels")
    spec = SPECS["2.13"]
    artefact = Artefact(wheel.name, hashlib.sha256(b"kernels").hexdigest())
    monkeypatch.setitem(SPECS, "2.13", dataclasses.replace(spec, artefact=artefact))
    monkeypatch.delenv(WHEEL_FOLDER, raising=False)
    cache = tmp_path / "cache"
    with pytest.raises(TreeError) as caught:
        reference_wheel("2.13", cache=cache, offline=True)
    program, module, name, *arguments = caught.value.next_command.split()
    assert (program, module, name) == ("python", "-m", "patchstack.reference")
    monkeypatch.setenv(WHEEL_FOLDER, str(tmp_path))  # instead of a download
    assert main([*arguments, "--cache", str(cache)]) == 0
    assert capsys.readouterr().out == f"{wheel}\n"


def test_nothing_asked_for_is_a_usage_error() -> None:
    with pytest.raises(SystemExit) as caught:
        main([])
    assert caught.value.code == 2


def test_a_name_of_no_release_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["newest", "--cache", str(tmp_path)]) == 2
    assert "newest: no such reference tree; expected one of 2.11, 2.13, 2.14, 2.6" in capsys.readouterr().err


def test_progress_is_quiet_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    progress.for_this_terminal()("working")
    progress.on_standard_error("seen")
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "seen\n")
