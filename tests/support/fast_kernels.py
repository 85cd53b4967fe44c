"""The kernels of the fast backward as the series would leave them on the 2.11 tree, with one text replaced."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from metal_kernels import cache as test_cache
from references import require_reference
from stackproof.engines.kernels import Kernels
from stackproof.engines.metal import RunMode, compile_library
from stackproof.ops import proof_for
from stackproof.ops.planned import planned_source
from stackproof.ops.sources import OpSource

FAST, BELOW = "grid_sampler_fast_backward", "grid_sampler_3d_backward"
LANES = "aten/src/ATen/native/mps/kernels/GridSamplerLanes.metal"
_REGISTRATION = re.compile(
    r"^REGISTER_GRID_(?:SAMPLER_(?:LANES_DTYPE|OPS)|GRADIENTS_[23]D)\((\w+).*\);\n", re.MULTILINE
)
# Of the last line of a macro the backslash before it is left, and the empty line behind it ends the macro.
_OF_A_MODE = re.compile(r"^  REGISTER_GRID_\w+\((\d, \w+), .*\n", re.MULTILINE)


@cache
def source_of(change: str) -> OpSource:
    """The source of the tree that a change and those below it would leave; skips without the reference tree."""
    proof = proof_for("grid_sampler_2d_backward")
    assert proof is not None
    return planned_source(require_reference("2.11").path, "main", change, proof, test_cache() / "planned")


def text_of(source: OpSource) -> str:
    """The op's own source, and the one beside it in trees that have the hook."""
    files = (source.path, LANES) if (source.root / LANES).is_file() else (source.path,)
    return "\n".join((source.root / file).read_text() for file in files)


def kernels_of(
    change: str, folder: Path, *, old: str = "", new: str = "", only: str = "", mode: RunMode = RunMode.PLAIN
) -> Kernels:
    """The kernels of float.

    Args:
        change: whose tree.
        folder: for the source.
        old: text that must be there.
        new: what is put in its place.
        only: of these dimensions and this interpolation, ``2, bilinear``; fewer kernels compile sooner.
        mode: how they are compiled.
    """
    source = source_of(change)
    text = text_of(source)
    assert old in text, f"the seeded fault no longer fits the kernels: {old!r}"
    text = text.replace(old, new) if old else text
    text = _REGISTRATION.sub(lambda line: line[0] if line[1] == "float" else "", text)
    if only:
        text = _OF_A_MODE.sub(lambda line: line[0] if line[1] == only else "", text)
    file = folder / f"{change}.metal"
    file.write_text(text)
    library = compile_library(file, source.include_dirs, cache=test_cache(), root=folder, mode=mode)
    return Kernels(library, source.headers, library.mark_undefined)
