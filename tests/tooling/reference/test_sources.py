from __future__ import annotations

import base64
import dataclasses
import hashlib
import importlib.machinery
import importlib.util
import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from patchstack.errors import TreeError
from patchstack.reference.artefacts import DEBIAN_FOLDER, WHEEL_FOLDER
from patchstack.reference.build import build_spec
from patchstack.reference.model import Artefact, DebianOrigin, ReferenceSpec, WheelOrigin
from patchstack.reference.sources import files_of_tarball, find_installed
from patchstack.tree.git.model import GitTreeHash

from .conftest import EXPECTED, MEMBERS, TinyRelease


@pytest.fixture
def tarball(tmp_path: Path) -> Path:
    place = tmp_path / "pytorch_9.9.0.orig.tar.xz"
    with tarfile.open(place, "w:xz") as archive:
        for name, data, mode in [
            ("pytorch-v9.9.0/setup.py", b"setup\r\n", 0o644),
            ("pytorch-v9.9.0/.gitignore", b"build/\n", 0o644),
            ("pytorch-v9.9.0/build/kept.txt", b"ignored by .gitignore\n", 0o644),
            ("pytorch-v9.9.0/tools/run.sh", b"#!/bin/sh\n", 0o755),
        ]:
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(data), mode
            archive.addfile(member, io.BytesIO(data))
        link = tarfile.TarInfo("pytorch-v9.9.0/docs/link")
        link.type, link.linkname = tarfile.SYMTYPE, "../setup.py"
        archive.addfile(link)
    return place


def debian_spec(spec: ReferenceSpec, tarball: Path) -> ReferenceSpec:
    artefact = Artefact(tarball.name, hashlib.sha256(tarball.read_bytes()).hexdigest())
    return dataclasses.replace(spec, artefact=artefact, origin=DebianOrigin("trixie", "pytorch", "9.9.0-1"))


def test_a_source_tarball_keeps_links_executable_files_and_ignored_files(
    tiny: TinyRelease, tarball: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DEBIAN_FOLDER, str(tarball.parent))
    tree = build_spec(debian_spec(tiny.spec, tarball), tiny.surroundings)
    entries = subprocess.run(
        ["git", "ls-tree", "-r", "main"], cwd=tree.path, check=True, capture_output=True, text=True
    ).stdout
    assert [(line.split()[0], line.partition("\t")[2]) for line in entries.splitlines()] == [
        ("100644", ".gitignore"),
        ("100644", "build/kept.txt"),
        ("120000", "docs/link"),
        ("100644", "setup.py"),
        ("100755", "tools/run.sh"),
    ]
    assert (tree.path / "docs/link").read_bytes() == b"setup\r\n"


def test_a_broken_tarball_is_one_clear_error(tarball: Path) -> None:
    whole = tarball.read_bytes()
    tarball.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(TreeError, match="not a readable tarball"):
        list(files_of_tarball(tarball))


@pytest.fixture
def installed(tiny: TinyRelease, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tiny release as an installer leaves it; returns its site-packages. The specification accepts it."""
    site = tmp_path / "site-packages"
    rows = []
    for member, data in {**MEMBERS, "torch/__init__.py": b""}.items():
        name = member.replace("9.9.0", "9.9.1+cpu")
        place = site / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{len(data)}\n")
    (site / "torch-9.9.1+cpu.dist-info" / "RECORD").write_text("".join(rows), encoding="utf-8")
    found = importlib.machinery.ModuleSpec("torch", None, origin=str(site / "torch" / "__init__.py"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: found if name == "torch" else None)
    origin = WheelOrigin(platform="macosx_14_0_arm64", python="3.11", accepts_installed=True)
    tiny.spec = dataclasses.replace(tiny.spec, origin=origin)
    return site


def tree_of(path: Path) -> GitTreeHash:
    done = subprocess.run(["git", "rev-parse", "main^{tree}"], cwd=path, check=True, capture_output=True, text=True)
    return GitTreeHash(done.stdout.strip())


def test_an_installed_torch_of_the_minor_version_is_laid_out_without_the_wheel(
    tiny: TinyRelease, installed: Path
) -> None:
    tree = build_spec(tiny.spec, tiny.surroundings, offline=True)
    assert tree.version == "9.9.1+cpu"
    assert {name: (tree.path / name).read_bytes() for name in EXPECTED} == EXPECTED
    assert tiny.fetched == 0


def test_an_installed_file_that_was_edited_is_refused_by_name(tiny: TinyRelease, installed: Path) -> None:
    (installed / "torchgen" / "model.py").write_bytes(b"MODEL = 2\n")
    with pytest.raises(TreeError, match=r"torchgen/model\.py: the installed torch was changed") as caught:
        build_spec(tiny.spec, tiny.surroundings)
    assert caught.value.expected.startswith("sha256=")
    assert list((tiny.cache / "reference").glob("*-9.9-*")) == []


def test_an_installed_torch_with_other_files_than_the_pinned_wheel_is_said_to_be_one(
    tiny: TinyRelease, installed: Path
) -> None:
    other = build_spec(tiny.spec, tiny.surroundings)
    assert any("not those of the pinned wheel" in note for note in other.notes)
    same = dataclasses.replace(tiny.spec, source_tree=tree_of(other.path))
    assert not any("not those of" in note for note in build_spec(same, tiny.surroundings).notes)


def test_a_tree_from_an_installed_torch_with_the_pinned_files_serves_where_no_torch_is_installed(
    tiny: TinyRelease, installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = dataclasses.replace(tiny.surroundings, cache=tmp_path / "elsewhere")
    pinned = dataclasses.replace(tiny.spec, source_tree=tree_of(build_spec(tiny.spec, elsewhere).path))
    tree = build_spec(pinned, tiny.surroundings)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert build_spec(pinned, tiny.surroundings, offline=True) == tree


def test_installed_and_downloaded_torch_give_the_same_commit(
    tiny: TinyRelease, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (installed / "torch" / "__init__.py").unlink()
    record = installed / "torch-9.9.1+cpu.dist-info" / "RECORD"
    record.write_text("".join(line for line in record.open(encoding="utf-8") if "__init__" not in line), "utf-8")
    from_installed = build_spec(tiny.spec, tiny.surroundings)
    monkeypatch.setenv(WHEEL_FOLDER, str(tiny.wheel.parent))
    from_wheel = build_spec(tiny.spec, tiny.surroundings)
    assert from_wheel.path != from_installed.path
    assert from_wheel.commit == from_installed.commit


def test_another_minor_version_does_not_serve(tiny: TinyRelease, installed: Path) -> None:
    assert find_installed("9.9") is not None
    assert find_installed("9.1") is None
    assert find_installed("9.90") is None
