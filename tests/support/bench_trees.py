"""Small trees with the overlay's kernels of one op, for one dtype, as the gate "bench" gets to see them."""

from __future__ import annotations

from kernel_trees import overlay_texts, replaced
from overlay_kernels import instantiated
from patchstack.cache import cache_dir
from patchstack.tree.git import Repository
from stackproof.model import GateContext

OP = "grid_sampler_2d_backward"


def texts(old: str = "", new: str = "") -> dict[str, str]:
    """The overlay's kernels of :data:`OP` for float, with one text replaced."""
    found = replaced(overlay_texts(), old, new) if old else overlay_texts()
    return {**found, "GridSampler.metal": instantiated(found["GridSampler.metal"], dtype="float", op=OP)}


def context_of(repository: Repository, base: str, head: str) -> GateContext:
    """What the gate is asked about two commits."""
    names = [repository.resolve_commit(name) for name in (base, head)]
    assert names[0]
    assert names[1]
    return GateContext(repository, names[0], names[1], cache_dir(), jobs=1)
