"""The wheel carries everything: series, messages, overlay, stand-ins, and works from any folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from references import clone_of

ROOT = Path(__file__).resolve().parents[2]


def built(kind: str, folder: Path) -> Path:
    """The distribution of one kind (``wheel`` or ``sdist``)."""
    command = [sys.executable, "-m", "build", f"--{kind}", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    (file,) = folder.iterdir()
    return file


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel unpacked to where nothing of the checkout is near; dependencies come from the test environment."""
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def apply_stack(site: Path, cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    code = "import sys; sys.argv[0] = 'apply-stack'; from patchstack.cli import main; main()"
    identity = {
        f"GIT_{who}_{what}": value
        for who in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "A"), ("EMAIL", "a@b.c"))
    }
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=cwd,
        env=os.environ | identity | {"PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_clone_that_converts_line_ends_has_the_bytes_that_are_in_git(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    subprocess.run(
        ["git", "clone", "-q", "--shared", "-c", "core.autocrlf=true", "-c", "core.eol=crlf", str(ROOT), str(clone)],
        check=True,
    )
    (listed,) = {
        line.split()[1]
        for line in subprocess.run(
            ["git", "ls-files", "--eol"], cwd=clone, check=True, capture_output=True, text=True
        ).stdout.splitlines()
        if not line.startswith(("i/none", "i/-text"))  # neither empty nor binary
    }
    assert listed == "w/lf"


def test_the_wheel_holds_every_tracked_series_and_overlay_file(wheel: Path) -> None:
    wanted = {
        f"patchstack/_data/{file.relative_to(ROOT).as_posix()}"
        for folder in ("patches", "aten_overlay")
        for file in (ROOT / folder).rglob("*")
        if file.is_file()
    }
    assert len(wanted) >= 5
    assert wanted <= set(zipfile.ZipFile(wheel).namelist())


def test_the_wheel_holds_both_packages_the_stand_ins_and_both_commands(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    names = archive.namelist()
    assert "patchstack/cli/main.py" in names
    assert "stackproof/cli/main.py" in names
    stand_ins = ROOT / "tooling/patchstack/reference/standins"
    files = [file for file in stand_ins.rglob("*") if file.is_file()]
    assert len(files) >= 6
    for file in files:  # a link, to a file that two trees share, is a file of its own there
        assert archive.read(file.relative_to(ROOT / "tooling").as_posix()) == file.read_bytes()
    (entry_points,) = (name for name in names if name.endswith("entry_points.txt"))
    text = archive.read(entry_points).decode()
    assert "apply-stack = patchstack.cli:main" in text
    assert "validate-stack = stackproof.cli:main" in text


@pytest.mark.parametrize(
    "folder",
    [
        *("engines/metal/include", "engines/metal/runtime", "engines/gpu/include", "engines/apple/runtime"),
        *("engines/standin/include", "engines/standin/standin", "report/templates", "schemas"),
    ],
)
def test_the_wheel_holds_what_is_compiled_or_filled_in_at_run_time(wheel: Path, folder: str) -> None:
    source = ROOT / "validate" / "stackproof" / folder
    wanted = {
        f"stackproof/{folder}/{file.relative_to(source).as_posix()}" for file in source.rglob("*") if file.is_file()
    }
    assert wanted
    assert wanted <= set(zipfile.ZipFile(wheel).namelist())


def test_the_source_distribution_holds_every_file_of_both_packages(tmp_path: Path) -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "tooling", "validate"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    with tarfile.open(built("sdist", tmp_path)) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    assert "validate/stackproof/report/templates/page.html.j2" in held
    assert {name for name in tracked if (ROOT / name).is_file()} <= held


@pytest.mark.parametrize("name", ["drift/workflow.yml", "schemas/error.json"])
def test_the_wheel_holds_what_is_no_module(wheel: Path, name: str) -> None:
    assert f"patchstack/{name}" in zipfile.ZipFile(wheel).namelist()


def test_the_wheel_does_not_hold_tests_or_benchmarks(wheel: Path) -> None:
    assert not [name for name in zipfile.ZipFile(wheel).namelist() if name.startswith(("tests", "bench"))]


@pytest.mark.needs_reference
def test_the_installed_wheel_applies_the_series_from_any_folder(installed: Path, tmp_path: Path) -> None:
    clone = clone_of("2.11", tmp_path / "clone")
    elsewhere = tmp_path / "else where"
    elsewhere.mkdir()
    done = apply_stack(installed, elsewhere, "--onto", "main", "--repo", str(clone), "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["series"] == "grid_sampler"
    assert report["branch"] == "stack/grid_sampler"
    assert report["changes"][0]["commit"]
    assert all(str(installed) in edit["manifest"] for edit in report["changes"][0]["edits"])
