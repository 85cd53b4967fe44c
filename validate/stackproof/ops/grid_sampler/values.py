"""Inputs whose right answer does not hinge on how a coordinate was rounded.

The gradients jump where a sample crosses from one pixel to the next. A float32 coordinate next to such a place may fall
on the other side than its float64 reference, and both are right. So random samples keep a distance from every place
where a gradient can jump; samples that lie exactly on one have values for which float32 arithmetic is exact.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import torch
from torch import Tensor

from stackproof.ops.grid_sampler.modes import Mode
from stackproof.ops.grid_sampler.oracle import to_pixels
from stackproof.ops.grid_sampler.table import Shape
from stackproof.ops.grid_sampler.tensors import SamplerTensors

# In pixels: far above float32's error in a coordinate, far below the distance between two jumps (half a pixel).
_DISTANCE_FROM_JUMP = 2.0**-8
_LATTICE = 8


def generator(*names: object) -> torch.Generator:
    """Random numbers that depend on the names only, not on the process or on what ran before."""
    return torch.Generator().manual_seed(zlib.crc32("; ".join(map(str, names)).encode()))


def near_jump(grid: Tensor, sizes: Sequence[int], align_corners: bool) -> Tensor:
    """Which grid values lie next to a place where some mode's gradient jumps: bool, the shape of ``grid``.

    Jumps are at whole pixels (a tap changes), at half pixels (nearest changes, mirrors lie there).

    Args:
        grid: (..., dimensions).
        sizes: the input's spatial sizes.
        align_corners: how coordinates are un-normalised.
    """
    close = []
    for axis, size in enumerate(reversed(sizes)):
        pixel, factor = to_pixels(grid[..., axis].double(), size, align_corners)
        distance = (2 * pixel - (2 * pixel).round()).abs() / 2
        close.append((distance < _DISTANCE_FROM_JUMP) if factor else torch.zeros_like(pixel, dtype=torch.bool))
    return torch.stack(close, -1)


def moved_off_jumps(grid: Tensor, sizes: Sequence[int], align_corners: bool) -> Tensor:
    """The grid with those values that lie next to a jump pushed on, a little at a time, until none does."""
    moved = grid.clone()
    for step in range(1, 64):
        close = near_jump(moved, sizes, align_corners)
        if not close.any():
            return moved
        push = step / 64 / max(sizes)
        moved = torch.where(close, (grid.double() + push * (1 + grid.double().abs())).to(grid.dtype), moved)
    raise AssertionError("no place off the jumps was found")


def random_tensors(shape: Shape, dtype: torch.dtype, mode: Mode) -> SamplerTensors:
    """Contiguous tensors for a shape of the table, the same on every call."""
    batch, channels, *sizes = shape.input
    source = generator(shape.name, dtype, mode)
    grid = (torch.rand(batch, *shape.output, len(sizes), generator=source) * 2 - 1) * shape.reach
    if shape.on_lattice:
        grid = (grid * _LATTICE).round() / _LATTICE
    grid = grid.to(dtype)
    if not shape.on_lattice:
        grid = moved_off_jumps(grid, sizes, mode.align_corners)
    return SamplerTensors(
        torch.randn(batch, channels, *shape.output, generator=source).to(dtype),
        torch.randn(*shape.input, generator=source).to(dtype),
        grid,
    )
