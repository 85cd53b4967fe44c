"""The Apple-compiled kernels of a release for tests: from a wheel that is on this machine already, or a skip."""

from __future__ import annotations

import functools
import os

import pytest

from patchstack.errors import PatchstackError
from references import DOWNLOAD
from stackproof.apple.container import Metallib
from stackproof.apple.release import release_library


def require_release(name: str) -> Metallib:
    """The kernels of that release; skips the calling test where the wheel, or a package of the extra, is missing."""
    pytest.importorskip("llvmlite", reason="not run: needs llvmlite (pip install 'patchstack[apple]')")
    result = _release(name)
    if isinstance(result, PatchstackError):
        pytest.skip(f"not run: kernels of {name}: {result} (validate-stack apple-kernels list --release {name})")
    return result


@functools.cache
def _release(name: str) -> Metallib | PatchstackError:
    try:
        return release_library(name, offline=os.environ.get(DOWNLOAD) != "1")
    except PatchstackError as error:
        return error
