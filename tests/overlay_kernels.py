"""The overlay's kernels, compiled from the overlay itself: no tree is needed, only the headers of the installed torch.

The overlay's files carry enough context to be read alone. What they are in a tree, after the applier, is what the gate
judges.
"""

from __future__ import annotations

import re
from pathlib import Path

import torch

from patchstack.cache import cache_dir
from stackproof.metal import RunMode, compile_library
from stackproof.metal_run.worker import OpSource
from stackproof.ops import Kernels, OpProof, proof_for

OVERLAY = Path(__file__).resolve().parents[1] / "aten_overlay"
TORCH_HEADERS = Path(torch.__file__).parent / "include"
KERNELS = "aten/src/ATen/native/mps/kernels"
REGISTRATION = re.compile(r"^REGISTER_GRID_SAMPLER_2D_BACKWARD_OPS\((\w+),.*\);\n", re.MULTILINE)


def backward_proof() -> OpProof:
    """The proof under test."""
    proof = proof_for("grid_sampler_2d_backward")
    assert proof is not None
    return proof


def overlay_kernels(mode: RunMode = RunMode.PLAIN) -> Kernels:
    """The kernels as they are in the overlay."""
    header = (OVERLAY / KERNELS / "GridSampler.h").read_bytes()
    include_dirs = [OVERLAY / "aten/src", TORCH_HEADERS]
    source = OVERLAY / KERNELS / "GridSampler.metal"
    library = compile_library(source, include_dirs, cache=cache_dir(), mode=mode)
    return Kernels(library, (header,), library.mark_undefined)


def changed_source(folder: Path, old: str, new: str, *, dtypes: tuple[str, ...]) -> OpSource:
    """The overlay with one text replaced, written to ``folder``; only ``dtypes`` are instantiated, to save time.

    Args:
        folder: an empty folder.
        old: text that must be there, in the header or the source.
        new: what to put in its place.
        dtypes: Metal names.
    """
    texts = {name: (OVERLAY / KERNELS / name).read_text() for name in ("GridSampler.h", "GridSampler.metal")}
    assert old in "".join(texts.values()), f"the seeded fault no longer fits the overlay: {old!r}"
    for name, text in texts.items():
        changed = REGISTRATION.sub(lambda line: line[0] if line[1] in dtypes else "", text.replace(old, new))
        target = folder / KERNELS / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(changed)
    header = (folder / KERNELS / "GridSampler.h").read_bytes()
    include_dirs = (folder / "aten/src", TORCH_HEADERS)
    return OpSource(folder, f"{KERNELS}/GridSampler.metal", include_dirs, (header,))
