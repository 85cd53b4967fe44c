"""The overlay's kernels, compiled from the overlay itself: no tree is needed, only the headers of the installed torch.

The overlay's files carry enough context to be read alone. What they are in a tree, after the applier, is what the gate
judges.
"""

from __future__ import annotations

import re
from pathlib import Path

import torch

import patchstack.reference
from patchstack.cache import cache_dir
from stackproof.engines.kernels import Kernels
from stackproof.engines.metal import RunMode, compile_library
from stackproof.ops import proof_for
from stackproof.ops.grid_sampler.proof import SamplerProof
from stackproof.ops.sources import OpSource

OVERLAY = Path(__file__).resolve().parents[2] / "aten_overlay"
TORCH_HEADERS = Path(torch.__file__).parent / "include"
KERNELS = "aten/src/ATen/native/mps/kernels"
# What is below the stack on the 2.11 reference tree.
STANDIN = Path(patchstack.reference.__file__).parent / "standins/2.11"
REGISTRATION = re.compile(r"^REGISTER_GRID_(?:SAMPLER_OPS|GRADIENTS_([23]D))\((\w+).*\);\n", re.MULTILINE)
OPS = ("grid_sampler_2d_backward", "grid_sampler_3d", "grid_sampler_3d_backward")

FILES = ("GridSampler.h", "GridSamplerWindow.h", "GridSampler.metal")
"""What the kernels of a thread per position are made of."""


def sampler_proof(op: str) -> SamplerProof:
    """The proof under test."""
    proof = proof_for(op)
    assert isinstance(proof, SamplerProof)
    return proof


def overlay_kernels(mode: RunMode = RunMode.PLAIN) -> Kernels:
    """The kernels as they are in the overlay."""
    header = (OVERLAY / KERNELS / "GridSampler.h").read_bytes()
    include_dirs = [OVERLAY / "aten/src", TORCH_HEADERS]
    source = OVERLAY / KERNELS / "GridSampler.metal"
    library = compile_library(source, include_dirs, cache=cache_dir(), mode=mode)
    return Kernels(library, (header,), library.mark_undefined)


def source_before() -> OpSource:
    """The kernels below the stack, over the installed torch's header."""
    header = (TORCH_HEADERS / KERNELS.removeprefix("aten/src/") / "GridSampler.h").read_bytes()
    return OpSource(
        STANDIN, f"{KERNELS}/GridSampler.metal", (TORCH_HEADERS,), (header,), f"{KERNELS}/GridSampler.metal"
    )


def kernels_before() -> Kernels:
    """The same, compiled."""
    source = source_before()
    return Kernels(compile_library(source.root / source.source, source.include_dirs, cache=cache_dir()), source.headers)


def instantiated(text: str, *, dtype: str, op: str = "") -> str:
    """A source whose kernels are instantiated for one Metal type only, and for one op if it is named, to save time."""
    wanted = op.removeprefix("grid_sampler_").upper()

    def kept(line: re.Match[str]) -> str:
        is_wanted = line[2] == dtype and wanted in ("", f"{line[1]}_BACKWARD" if line[1] else "3D")
        return line[0] if is_wanted else ""

    return REGISTRATION.sub(kept, text)


def changed_source(folder: Path, old: str, new: str, *, dtype: str, op: str = "") -> OpSource:
    """The overlay with one text replaced, written to ``folder``; see :func:`instantiated` for the other arguments.

    Args:
        folder: an empty folder.
        old: text that must be there, in the header or the source.
        new: what to put in its place.
        dtype: Metal name.
        op: aten name.
    """
    texts = {name: (OVERLAY / KERNELS / name).read_text() for name in FILES}
    assert old in "".join(texts.values()), f"the seeded fault no longer fits the overlay: {old!r}"
    for name, text in texts.items():
        target = folder / KERNELS / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(instantiated(text.replace(old, new), dtype=dtype, op=op))
    header = (folder / KERNELS / "GridSampler.h").read_bytes()
    include_dirs = (folder / "aten/src", TORCH_HEADERS)
    return OpSource(folder, f"{KERNELS}/GridSampler.metal", include_dirs, (header,), f"{KERNELS}/GridSampler.metal")
