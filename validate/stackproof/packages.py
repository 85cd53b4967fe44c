"""Packages that only parts of the proof need: which of them are missing, and what to type to get them.

The versions are those that the distribution itself declares, so that the advice and ``pip install '.[validate]'`` bring
the same.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from patchstack.errors import ExitCode, PatchstackError

_DISTRIBUTION = "patchstack"
_NAME = re.compile(r"[\w.-]+")


@dataclass
class MissingPackageError(PatchstackError):
    """A package that only parts of the proof need is not installed."""

    def __post_init__(self) -> None:
        self.exit_code = ExitCode.USAGE


def missing(packages: Iterable[str]) -> tuple[str, ...]:
    """Those of the importable packages that are not installed."""
    return tuple(name for name in packages if importlib.util.find_spec(name) is None)


def install_command(*packages: str) -> str:
    """``pip install 'torch>=2.6'``: what brings packages, in versions that this project works with."""
    declared = _declared()
    return shlex.join(["pip", "install", *(declared.get(name, name) for name in packages)])


def not_run_reason(packages: Iterable[str]) -> str:
    """Why a gate that needs these packages was not run."""
    names = tuple(packages)
    plural = "s" if len(names) > 1 else ""
    return f"needs the package{plural} {', '.join(names)} (next: {install_command(*names)})"


def missing_package(package: str, purpose: str) -> MissingPackageError:
    """The error for an import that failed."""
    return MissingPackageError(
        f"the Python package '{package}' is not installed",
        expected=f"it, {purpose}",
        next_command=install_command(package),
    )


def _declared() -> Mapping[str, str]:
    """Requirement by name, of every extra; empty where the project runs from its sources, without being installed."""
    try:
        texts = importlib.metadata.requires(_DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        return {}
    requirements = [text.partition(";")[0].strip() for text in texts]
    return {match[0]: text for text in requirements if (match := _NAME.match(text))}
