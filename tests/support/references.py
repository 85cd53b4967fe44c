"""Reference trees for tests: the tree, or a skip that says what to type to get it.

Tests never download: a tree is used when it is in the cache, or when what it is made from is on this machine already
(the installed torch, a download of an earlier run, a folder named by the environment). ``PATCHSTACK_TEST_DOWNLOAD=1``
lets them fetch what is missing.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from patchstack.errors import TreeError
from patchstack.reference import SPECS, ReferenceTree, build_reference
from patchstack.reference.model import DebianOrigin
from skips import cannot, lacks, reference

DOWNLOAD = "PATCHSTACK_TEST_DOWNLOAD"


def require_reference(name: str) -> ReferenceTree:
    """The reference tree of that name; skips the calling test where it is not to be had.

    The repository is shared by all tests: read it, make refs under names of your own in a clone of it.
    """
    result = _reference(name)
    if isinstance(result, TreeError):
        what = f"reference tree {name}: {result.problem}"
        no_apt = isinstance(SPECS[name].origin, DebianOrigin) and shutil.which("apt-get") is None
        pytest.skip(cannot(f"{what}, and this machine has no apt-get") if no_apt else lacks(what, reference(name)))
    return result


def clone_of(name: str, folder: Path) -> Path:
    """A bare clone of a reference tree's ``main``, without the branches that others left in the shared repository."""
    tree = require_reference(name)
    command = ["git", "clone", "--quiet", "--shared", "--bare", "--single-branch", "--branch", "main"]
    subprocess.run([*command, str(tree.path), str(folder)], check=True)
    return folder


@functools.cache
def _reference(name: str) -> ReferenceTree | TreeError:
    try:
        return build_reference(name, offline=os.environ.get(DOWNLOAD) != "1")
    except TreeError as error:
        return error
