"""Helpers of ATen's host files that others call, read from the tree when the device is built.

They stand in files that build graphs, which the stub headers do not describe, so they are cut out of them by name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from patchstack.tree.cxx import parse_cxx
from patchstack.tree.git import Tree
from stackproof.base_commit.places import outermost
from stackproof.engines.standin.stack import HostFile

_MPS = "aten/src/ATen/native/mps"
_NAMESPACE = "at::native::mps::"
_HEAD = """#include <ATen/mps/MPSAllocatorInterface.h>
#include <ATen/mps/MPSProfiler.h>
#include <ATen/native/TensorIterator.h>
#include <ATen/native/mps/OperationUtils.h>
#include <fmt/format.h>
#include <simd/simd.h>
namespace at::native::mps {
static auto& lib = MetalShaderLibrary::getBundledLibrary();
"""


@dataclass(frozen=True)
class TreeHelpers:
    """Helpers that are defined somewhere in the tree.

    Attributes:
        text: a host file that has them; empty where there are none.
        kernel_sources: what the files that they come from launch.
    """

    text: str = ""
    kernel_sources: tuple[str, ...] = ()


def tree_helpers(tree: Tree, names: Iterable[str], without: Iterable[str]) -> TreeHelpers:
    """The definitions of some functions.

    Args:
        tree: where they are looked for.
        names: qualified.
        without: host files that are part of the device already.
    """
    wanted = {name.removeprefix(_NAMESPACE) for name in names if name.startswith(_NAMESPACE)}
    pieces: list[str] = []
    sources: dict[str, None] = {}
    for path in sorted(tree.walk(_MPS)) if wanted else ():
        data = tree.read(path) or b""
        if not path.endswith(".mm") or path in set(without) or not any(name.encode() in data for name in wanted):
            continue
        file = parse_cxx(data)
        for one in outermost(file):
            if one.name.rpartition("::")[2] in wanted:
                pieces.append(data[one.start : one.end].decode(errors="replace"))
                sources |= dict.fromkeys(HostFile(path, data.decode(errors="replace")).kernel_sources)
    if not pieces:
        return TreeHelpers()
    return TreeHelpers("\n".join([_HEAD, *pieces, "}", ""]), tuple(one for one in sources if tree.exists(one)))
