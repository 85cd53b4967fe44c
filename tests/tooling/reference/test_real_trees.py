"""The real releases: they are what they say, and their own torchgen runs on them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from patchstack.reference import ReferenceTree, build_reference
from references import require_reference
from skips import cannot

pytestmark = pytest.mark.needs_reference

GENERATED = "torch/csrc/inductor/aoti_torch/generated"


def git(tree: ReferenceTree, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=tree.path, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize(
    ("name", "release_tree"),
    [
        ("2.11", "fcb23cdcc7bc0ec7a4e95ec173569a57e474cc2f"),
        ("2.13", "4dd5be5ca31ab253d8e87b14dee037237f4a3c62"),
        ("2.6", "44a139f8fbcb45f6fb69c5959bc612be3d620833"),
    ],
)
def test_the_releases_files_have_the_same_tree_id_on_every_machine(name: str, release_tree: str) -> None:
    tree = require_reference(name)
    if any("not those of the pinned wheel" in note for note in tree.notes):
        pytest.skip(cannot("this build of torch installs other files than the pinned wheel"))
    assert git(tree, "rev-parse", f"{tree.release_commit}^{{tree}}").strip() == release_tree
    assert git(tree, "rev-parse", "main").strip() == tree.commit


@pytest.mark.parametrize("name", ["2.11", "2.13", "2.6"])
def test_stand_ins_are_all_that_the_second_commit_changes(name: str) -> None:
    tree = require_reference(name)
    added = git(tree, "diff", "--name-status", tree.release_commit, "main").splitlines()
    assert sorted(added) == sorted(f"A\t{path}" for path in tree.stand_ins)


@pytest.mark.parametrize("name", ["2.11", "2.13"])
def test_no_header_keeps_the_packaging_wrapper(name: str) -> None:
    tree = require_reference(name)
    found = subprocess.run(
        ["git", "grep", "-l", "-E", "^#(if|endif).*TORCH_STABLE_ONLY.*TORCH_TARGET_VERSION", tree.release_commit,
         "--", "*.h", "*.cuh", "*.hpp"],
        cwd=tree.path, check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert found.stdout == ""


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["2.11", "2.13"])
def test_the_trees_own_torchgen_regenerates_the_stored_c_shims_byte_for_byte(name: str, tmp_path: Path) -> None:
    tree = require_reference(name)
    scratch, output = tmp_path / "tree", tmp_path / "output"
    _export(tree, scratch, "torchgen", "aten/src/ATen/native", "aten/src/ATen/templates", "tools/autograd", GENERATED)
    output.mkdir()
    stored = {place.name: place.read_bytes() for place in (scratch / GENERATED).glob("c_shim_*.h")}
    command = [
        sys.executable, "-m", "torchgen.gen", "--update-aoti-c-shim", "--generate", "sources",
        "--backend-whitelist", "MPS", "--install-dir", str(output), "--aoti-install-dir", str(output / "aoti"),
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(scratch), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=scratch, env=environment, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    made = {place.name: place.read_bytes() for place in (output / "aoti").rglob("c_shim_*.h")}
    in_place = {place.name: place.read_bytes() for place in (scratch / GENERATED).glob("c_shim_*.h")}
    assert "c_shim_mps.h" in stored
    assert {**in_place, **made} == stored
    assert set(made) == set(stored)


@pytest.mark.parametrize("name", ["2.11", "2.13", "2.6"])
def test_a_tree_that_is_there_is_found_in_silence(name: str) -> None:
    tree = require_reference(name)
    said: list[str] = []
    assert build_reference(name, progress=said.append, offline=True) == tree
    assert said == []


def _export(tree: ReferenceTree, folder: Path, *paths: str) -> None:
    folder.mkdir()
    archive = subprocess.run(
        ["git", "archive", "--format=tar", "main", *paths], cwd=tree.path, check=True, capture_output=True
    ).stdout
    subprocess.run(["tar", "-x"], cwd=folder, input=archive, check=True)
