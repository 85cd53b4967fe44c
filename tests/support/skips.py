"""Skips of two kinds: of what a command would bring, and of what this machine cannot have.

The first kind names the command. With ``CI=true`` it is a failure, so that a run on a fresh machine cannot leave out,
unseen, what that machine could have fetched. The second kind stays a skip.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stackproof.packages import install_command, missing

_ADVICE = " (to get it: "
_ROOT = Path(__file__).resolve().parents[2]
_HERE = Path(sys.executable)  # not resolved: the interpreter of a virtual environment is a link
# As it is typed in the folder of the project, whether or not its virtual environment is active.
_PYTHON = str(_HERE.relative_to(_ROOT) if _HERE.is_relative_to(_ROOT) else _HERE)

_DISTRIBUTIONS = {"graphql": "graphql-core", "material": "mkdocs-material"}  # of the packages that do not have its name


def lacks(what: str, command: str) -> str:
    """The reason of a skip that a command would have avoided: one of the functions below makes it."""
    return f"not run: {what}{_ADVICE}{command})"


def cannot(why: str) -> str:
    """The reason of a skip that nothing on this machine would avoid."""
    return f"not run: {why}"


def pip(*packages: str) -> str:
    """Brings packages, in the versions that this project asks for."""
    return f"{_PYTHON} -m {install_command(*(_DISTRIBUTIONS.get(name, name) for name in packages))}"


def apt(package: str) -> str:
    """Brings a system package."""
    return f"apt-get install {package}"


def reference(name: str) -> str:
    """Builds a reference tree."""
    return f"{_PYTHON} -m patchstack.reference {name}"


def wheel(name: str) -> str:
    """Keeps the macOS wheel of a release."""
    return f"{_PYTHON} -m patchstack.reference --wheel {name}"


def require_packages(*names: str) -> None:
    """Skip the calling test, or test module, where one of these packages is missing."""
    if lacking := missing(names):
        pytest.skip(lacks(f"needs {', '.join(lacking)}", pip(*lacking)), allow_module_level=True)


def advice(reason: str) -> str:
    """The command that a skip names; empty where it is of the second kind."""
    return reason.partition(_ADVICE)[2].rstrip(")")


def judge(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Make a failure of a skip that a command would have avoided, where ``CI=true``."""
    if os.environ.get("CI") != "true" or report.outcome != "skipped" or not isinstance(report.longrepr, tuple):
        return
    file, line, reason = report.longrepr
    if command := advice(str(reason)):
        report.outcome = "failed"
        report.longrepr = f"{file}:{line}: with CI=true nothing is skipped that could be had: {reason}\n{command}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Iterator[Any]:
    """A test's report."""
    report = yield
    judge(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Iterator[Any]:
    """A module's report."""
    report = yield
    judge(report)
    return report
