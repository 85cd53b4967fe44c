"""The Apple-compiled kernels of a release for tests: from a wheel that is on this machine already, or a skip."""

from __future__ import annotations

import functools
import os

import pytest

from patchstack.errors import PatchstackError
from references import DOWNLOAD
from skips import lacks, require_packages, wheel
from stackproof.engines.apple.container import Metallib
from stackproof.engines.apple.release import release_library


def require_release(name: str) -> Metallib:
    """The kernels of that release; skips the calling test where the wheel, or a package of the extra, is missing."""
    require_packages("lief", "llvmlite")
    result = _release(name)
    if isinstance(result, PatchstackError):
        pytest.skip(lacks(f"kernels of {name}: {result.problem}", wheel(name)))
    return result


@functools.cache
def _release(name: str) -> Metallib | PatchstackError:
    try:
        return release_library(name, offline=os.environ.get(DOWNLOAD) != "1")
    except PatchstackError as error:
        return error
