from __future__ import annotations

import hashlib
import os
import zipfile
from pathlib import Path

import pytest

from patchstack.errors import TreeError
from patchstack.reference import SPECS, ReferenceTree, build_reference, is_known, reference_wheel
from patchstack.reference.__main__ import main
from patchstack.reference.artefacts import WHEEL_FOLDER
from references import require_reference

METAL = "aten/src/ATen/native/mps/kernels/GridSampler.metal"
BEFORE = "- func: grid_sampler_2d_backward(Tensor g) -> Tensor\n  dispatch:\n    CPU: f\n\n- func: other() -> Tensor\n"
AFTER = BEFORE.replace("    CPU: f\n", "    CPU: f\n    MPS: f_mps\n")
OTHERS_MPS = BEFORE + "  dispatch:\n    MPS: other_mps\n"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all the wheels that pip reaches."""
    folder = tmp_path / "index"
    folder.mkdir()
    for name in [name for name in os.environ if name.startswith("PIP_")] + [WHEEL_FOLDER]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def put(folder: Path, version: str, yaml: str = BEFORE) -> Path:
    """A wheel of that release, small but whole."""
    place = folder / f"torch-{version}-cp311-cp311-macosx_14_0_arm64.whl"
    members = {
        "torchgen/packaged/ATen/native/native_functions.yaml": yaml,
        "torchgen/model.py": f"RELEASE = '{version}'\n",
        f"torch-{version}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n",
        f"torch-{version}.dist-info/WHEEL": "Wheel-Version: 1.0\nTag: cp311-cp311-macosx_14_0_arm64\n",
        f"torch-{version}.dist-info/RECORD": "",
    }
    with zipfile.ZipFile(place, "w") as archive:
        for member, text in members.items():
            archive.writestr(zipfile.ZipInfo(member, (2030, 1, 2, 3, 4, 4)), text)
    return place


def metal(name: str) -> bytes:
    """The stand-in of a pinned tree."""
    import patchstack.reference.standins as standins

    return (standins.STAND_INS / name / METAL).read_bytes()


def said_of(tree: ReferenceTree) -> str:
    return " ".join(tree.notes)


def test_any_release_that_pip_reaches_is_a_tree_and_stays_one_without_pip(index: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    put(index, "9.8.0")
    wheel = put(index, "9.8.1")
    tree = build_reference("9.8", cache=cache)
    assert (tree.name, tree.version) == ("9.8", "9.8.1")
    assert (tree.path / "torchgen/model.py").read_text() == "RELEASE = '9.8.1'\n"
    assert "no .mm, .metal or .cpp files of ATen" in said_of(tree)
    wheel.unlink()
    put(index, "9.8.2")
    assert build_reference("9.8", cache=cache, offline=True) == tree
    found = reference_wheel("9.8", cache=cache, offline=True)
    assert found.name == wheel.name


def test_an_exact_version_is_taken_where_a_newer_one_is(index: Path, tmp_path: Path) -> None:
    put(index, "9.8.0")
    put(index, "9.8.1")
    assert build_reference("9.8.0", cache=tmp_path / "cache").version == "9.8.0"


@pytest.mark.parametrize(("yaml", "nearest"), [(BEFORE, "2.11"), (OTHERS_MPS, "2.11"), (AFTER, "2.13")])
def test_the_stand_ins_are_those_of_the_tree_nearest_in_kind(
    index: Path, tmp_path: Path, yaml: str, nearest: str
) -> None:
    put(index, "9.8.0", yaml)
    tree = build_reference("9.8", cache=tmp_path / "cache")
    assert (tree.path / METAL).read_bytes() == metal(nearest)
    assert f"the stand-ins are those of {nearest}" in said_of(tree)


def test_latest_is_the_newest_release_under_its_own_name(index: Path, tmp_path: Path) -> None:
    put(index, "9.8.0")
    put(index, "9.10.0")
    cache = tmp_path / "cache"
    tree = build_reference("latest", cache=cache)
    assert (tree.name, tree.version) == ("9.10", "9.10.0")
    assert build_reference("9.10", cache=cache, offline=True) == tree


def test_latest_asks_pip_once_a_day(index: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    put(index, "9.8.0")
    assert build_reference("latest", cache=cache).version == "9.8.0"
    put(index, "9.9.0")
    assert build_reference("latest", cache=cache).version == "9.8.0"
    os.utime(cache / "reference" / "latest.json", (0, 0))
    assert build_reference("latest", cache=cache, offline=True).version == "9.8.0"
    assert build_reference("latest", cache=cache).version == "9.9.0"


def test_a_newer_patch_release_does_not_take_the_name_of_the_one_before(index: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    put(index, "9.8.0")
    build_reference("9.8", cache=cache)
    put(index, "9.8.1")
    assert build_reference("latest", cache=cache).name == "9.8.1"
    assert build_reference("9.8", cache=cache).version == "9.8.0"


def test_an_unknown_release_ends_with_what_pip_said(
    index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(index, "9.8.0")
    assert main(["9.9", "--cache", str(tmp_path / "cache")]) == 4
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert "torch==9.9.*: pip finds no macOS wheel of this release; found ERROR: Could not find a version" in line
    assert "from versions: 9.8.0" in line
    assert f"then {WHEEL_FOLDER}=FOLDER" in line


def test_a_constraint_of_the_machine_is_named_as_the_reason(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(index, "9.8.0")
    put(index, "9.9.0")
    (tmp_path / "constraints.txt").write_text("torch<9.9\n")
    monkeypatch.setenv("PIP_CONSTRAINT", str(tmp_path / "constraints.txt"))
    with pytest.raises(TreeError, match=r"The user requested \(constraint\) torch<9\.9"):
        build_reference("9.9", cache=tmp_path / "cache")


def test_a_wheel_in_the_users_own_folder_needs_no_pip(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    put(own, "9.9.0")
    monkeypatch.setenv(WHEEL_FOLDER, str(own))
    cache = tmp_path / "cache"
    assert build_reference("9.9", cache=cache, offline=True).version == "9.9.0"
    assert build_reference("latest", cache=cache, offline=True).version == "9.9.0"


def test_offline_a_release_that_was_never_found_says_how_to_get_it(index: Path, tmp_path: Path) -> None:
    with pytest.raises(TreeError, match=r"offline \(next: python -m patchstack\.reference 9\.9\)"):
        build_reference("9.9", cache=tmp_path, offline=True)


def test_a_full_version_of_a_pinned_release_is_that_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATCHSTACK_CACHE", str(tmp_path))
    assert is_known("2.13.0")
    assert not is_known("2.12")
    assert not is_known("newest")


def test_a_wheel_that_is_no_pytorch_is_one_clear_error(index: Path, tmp_path: Path) -> None:
    place = put(index, "9.8.0")
    with zipfile.ZipFile(place) as archive:
        kept = {name: archive.read(name) for name in archive.namelist() if "dist-info" in name}
    with zipfile.ZipFile(place, "w") as archive:
        for name, data in kept.items():
            archive.writestr(name, data)
    with pytest.raises(TreeError, match="not a readable wheel of PyTorch"):
        build_reference("9.8", cache=tmp_path / "cache")


def test_a_changed_download_of_a_found_release_is_noticed(index: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    put(index, "9.8.0")
    build_reference("9.8", cache=cache)
    (cached,) = (cache / "downloads").glob("*.whl")
    digest = hashlib.sha256(cached.read_bytes()).hexdigest()
    cached.write_bytes(b"damaged")
    with pytest.raises(TreeError, match=digest):
        reference_wheel("9.8", cache=cache, offline=True)


@pytest.mark.needs_reference
def test_a_real_release_of_after_has_the_stand_ins_of_after() -> None:
    tree = require_reference("2.14")
    assert (tree.version, SPECS["2.14"].stand_ins_of) == ("2.14.1", "2.13")
    assert (tree.path / METAL).read_bytes() == metal("2.13")
