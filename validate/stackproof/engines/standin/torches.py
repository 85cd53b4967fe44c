"""Which torch goes with which tree: what of a failure is the pair's and not the stack's.

The host gates compile a stack's host files against the headers of the installed torch, but for those about MPS. Where a
file asks for something that only its own tree has, this is no fault of the stack: nothing can be executed.
"""

from __future__ import annotations

from pathlib import Path

import torch

from patchstack.errors import PatchstackError
from stackproof.engines.errors import CompileError
from stackproof.engines.standin.clang import find_clang
from stackproof.engines.standin.headers import prepare_headers
from stackproof.engines.standin.host_file import FileChecker, release_of
from stackproof.engines.standin.stack import HostStack

SEEN = dict.fromkeys(("2.6", "2.11", "2.13"), ("2.11.0", "2.13.0", "2.14.1"))
"""Versions of torch that the host gates were run with, by the release of the tree (bench/torch_versions.py)."""


def unsuited(problem: str, stack: HostStack) -> str:
    """Why nothing runs with the installed torch, and which were seen to work."""
    release = release_of(stack.tree)
    seen = f"torch {', '.join(SEEN[release])}" if release in SEEN else "none on trees of this release"
    return f"torch {torch.__version__} does not go with this tree: {problem}; seen to work with small series: {seen}"


def not_of_the_stack(error: CompileError, stack: HostStack, cache: Path) -> str:
    """Why what does not compile against the installed torch is no fault of the stack; empty where it is one.

    Args:
        error: of a build of the stand-in device.
        stack: whose host files.
        cache: that of host-check.
    """
    graphs = [file.path for file in stack.files if file.builds_graphs and error.where.startswith(file.path)]
    if graphs:
        return f"{graphs[0]} builds MPSGraphs, which the stub headers do not describe"
    try:
        checker = FileChecker(stack.tree, find_clang(), prepare_headers(stack.tree, cache), cache)
        alone = all(checker.compiled(file).succeeded for file in stack.files if not file.builds_graphs)
    except PatchstackError:
        return ""  # the tree's headers cannot be made: nothing excuses the stack
    return unsuited(str(error), stack) if alone else ""
