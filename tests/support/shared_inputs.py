"""Inputs that are not in the repository: upstream's own text, which tests may read and the project does not copy.

They lie in a folder ``shared`` beside the checkout, or where ``PATCHSTACK_SHARED`` says. A test that needs one says
"not run" where it is not there.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from skips import cannot

_VARIABLE = "PATCHSTACK_SHARED"
_CHECKOUT = Path(__file__).resolve().parents[2]


def shared_folder() -> Path:
    """Where such inputs are, whether they are there or not."""
    return Path(os.environ.get(_VARIABLE) or _CHECKOUT.parent / "shared")


def require_shared(name: str) -> Path:
    """A file or folder of the shared inputs by its relative path; skips where it is not there."""
    found = shared_folder() / name
    if not found.exists():
        pytest.skip(cannot(f"no {name} in {shared_folder()} (set {_VARIABLE} to the folder that has it)"))
    return found


def upstream_tree(name: str, destination: Path) -> Path:
    """A repository at ``destination`` whose ``main`` has upstream's own grid sampler files of a moment of 2026.

    Args:
        name: of a folder of ``trees``, such as ``2026-05-both``.
        destination: must not exist yet.
    """
    require_shared(f"trees/{name}")
    script = require_shared("trees/make-tree")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    command = ["bash", str(script), name, str(destination)]
    done = subprocess.run(command, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(cannot(f"{done.stderr.strip()}"))
    return destination
