"""What may be skipped: every skip says which kind it is, the command that it names works, and CI takes no excuse."""

from __future__ import annotations

import ast
import functools
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import skips
from patchstack.reference import SPECS
from references import require_reference

ROOT = Path(__file__).resolve().parents[1]
SKIPPING = """
import pytest
import skips

@pytest.mark.skipif(True, reason=skips.lacks("no moon", "fly there"))
def test_marked(): ...

def test_called():
    pytest.skip(skips.lacks("no moon", "fly there"))

def test_impossible():
    pytest.skip(skips.cannot("the moon is too far"))

@pytest.mark.xfail(strict=True)
def test_known():
    assert False
"""
MODULE = """
import pytest
import skips

skips.require_packages("nonsense")

def test_never(): ...
"""


def pytest_says(folder: Path, source: str, ci: str) -> str:
    """The counts that pytest ends with."""
    (folder / "test_it.py").write_text(source)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "tests", *sys.path))), "CI": ci}
    command = [sys.executable, "-m", "pytest", "-p", "skips", "-p", "no:cacheprovider", "-q", "-c", os.devnull]
    done = subprocess.run(
        [*command, f"--rootdir={folder}", str(folder)], cwd=folder, env=environment, capture_output=True, text=True
    )
    return done.stdout


def test_under_ci_a_skip_that_a_command_would_avoid_is_a_failure(tmp_path: Path) -> None:
    said = pytest_says(tmp_path, SKIPPING, "true")
    assert "1 failed, 1 skipped, 1 xfailed, 1 error" in said  # what a mark skips does not get to its call
    assert "with CI=true nothing is skipped that could be had: Skipped: not run: no moon (to get it: fly there)" in said


def test_elsewhere_it_is_a_skip(tmp_path: Path) -> None:
    assert "3 skipped, 1 xfailed" in pytest_says(tmp_path, SKIPPING, "")


def test_a_module_that_is_skipped_as_a_whole_is_a_failure_too(tmp_path: Path) -> None:
    assert "1 error" in pytest_says(tmp_path, MODULE, "true")
    assert "1 skipped" in pytest_says(tmp_path, MODULE, "")


@functools.cache
def _calls() -> tuple[tuple[str, str, ast.Call], ...]:
    """All calls and decorators in the tests: the last part of the name, the place, and the call."""
    found = []
    for file in sorted((ROOT / "tests").rglob("*.py")):
        if file.name in ("skips.py", Path(__file__).name):
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)):
                name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
                found.append((name, f"{file.relative_to(ROOT)}:{node.lineno}", node))
    return tuple(found)


def calls(name: str) -> Iterator[tuple[str, ast.Call]]:
    """All calls of a function or decorator in the tests, by its last name, with the place."""
    return ((place, node) for called, place, node in _calls() if called == name)


def test_every_skip_says_whether_a_command_would_avoid_it() -> None:
    undeclared = [place for place, _ in calls("importorskip")]
    for function in ("skip", "skipif"):
        for place, call in calls(function):
            reason = next((one.value for one in call.keywords if one.arg == "reason"), call.args[0])
            made = [ast.unparse(node.func) for node in ast.walk(reason) if isinstance(node, ast.Call)]
            if not {"lacks", "cannot"} & set(made):
                undeclared.append(place)
    assert undeclared == []


def arguments_of(function: str) -> set[str]:
    """The words that the tests give to a function that makes an advice; names of reference trees where they vary."""
    words: set[str] = set()
    for _, call in calls(function):
        for argument in call.args:
            words |= {argument.value} if isinstance(argument, ast.Constant) else set()
    return words


@pytest.mark.exhaustive
@pytest.mark.parametrize("package", sorted({*arguments_of("pip"), *arguments_of("require_packages")}))
def test_the_advised_package_is_one_that_pip_finds(package: str) -> None:
    command = shlex.split(skips.pip(package))
    assert command[1:4] == ["-m", "pip", "install"]
    if package == "tomli" and sys.version_info >= (3, 11):
        return  # only Python 3.10 has a use for it
    # What is installed already satisfies it, so that pip has read the requirement and asked nobody.
    done = subprocess.run(
        [*command, "--dry-run", "--no-index", "--no-deps"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "already satisfied" in done.stdout


@pytest.mark.exhaustive
@pytest.mark.parametrize("package", sorted(arguments_of("apt")))
def test_the_advised_system_package_is_one_that_debian_has(package: str) -> None:
    command = shlex.split(skips.apt(package))
    if shutil.which("apt-get") is None or not any(Path("/var/lib/apt/lists").glob("*_Packages*")):
        known = {"strace", "jq", "procps"}  # as found where a list of packages was there
        assert package in known
        return
    done = subprocess.run([command[0], "--simulate", *command[1:]], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def fetched_by_make() -> tuple[set[str], set[str]]:
    """The trees and the wheels of ``make references``."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (line,) = [line for line in makefile.splitlines() if line.startswith("\t-$(BIN)/python -m patchstack.reference")]
    words = line.split()[3:]
    wheels = {words[place + 1] for place, word in enumerate(words) if word == "--wheel"}
    return {word for place, word in enumerate(words) if word in SPECS and words[place - 1] != "--wheel"}, wheels


@pytest.mark.parametrize("name", sorted(fetched_by_make()[0]))
def test_the_advised_command_makes_the_tree_that_was_missing(name: str) -> None:
    tree = require_reference(name)
    done = subprocess.run(
        [*shlex.split(skips.reference(name)), "--offline"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, f"{tree.path} {tree.commit}\n")


def test_make_references_fetches_every_wheel_and_tree_that_a_test_asks_for() -> None:
    trees, wheels = fetched_by_make()
    assert arguments_of("require_release") <= wheels
    assert arguments_of("require_reference") | arguments_of("applied") & set(SPECS) <= trees
