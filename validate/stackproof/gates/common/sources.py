"""What of a tree a stack concerns: the Metal sources, and the host files."""

from __future__ import annotations

from collections.abc import Mapping

from patchstack.tree.git import Tree
from stackproof.engines.metal.sources import collect_sources
from stackproof.engines.standin.stack import HostStack
from stackproof.model import GateContext

KERNELS = "aten/src/ATen/native/mps"


def touched_sources(base: Tree, head: Tree) -> list[str]:
    """The ``.metal`` files of the head that differ from the base, themselves or in what they include."""
    return touched_among(base, head, included_files(head))


def touched_among(base: Tree, head: Tree, files: Mapping[str, Mapping[str, bytes]]) -> list[str]:
    changed = {path: base.read(path) != head.read(path) for path in {p for one in files.values() for p in one}}
    return sorted(source for source, parts in files.items() if any(changed[path] for path in parts))


def included_files(tree: Tree) -> dict[str, dict[str, bytes]]:
    """Every ``.metal`` of the MPS backend, with the files it is made of."""
    sources = [path for path in tree.walk(KERNELS) if path.endswith(".metal")]
    return {path: collect_sources(tree, path) for path in sources}


def stack_of(context: GateContext) -> HostStack:
    """The host files that a gate is asked about."""
    return HostStack.between(context.repository, context.base, context.head)
