"""What a result depends on besides the tree: versions and platform, for every report."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version

_PACKAGES = ("torch", "ziglang")


def describe_environment() -> dict[str, str]:
    """Facts by name; a package that is not installed is said to be so."""
    facts = {
        "platform": platform.platform(),
        "processors": str(os.cpu_count() or "unknown"),
        "Python": platform.python_version(),
        "validate-stack": _version("patchstack"),
    }
    return facts | {name: _version(name) for name in _PACKAGES}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
