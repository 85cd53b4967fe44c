"""Small inputs in place of a row's, for counting: what a kernel does for one element does not change with their number.

A stand-in keeps the number of channels, the ratio of positions to pixels, the layout and the kind of grid, and is small
enough to be run on a CPU under watch. Figures per element, one channel of one position, are therefore those of the row
but for the share of samples at the edges, which is larger in a smaller image. Which kernels run is decided by the sizes
of the row. Coordinates are made of integers, so that counts are the same on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from stackproof.ops.grid_sampler.bench.rows import Row, make_grid
from stackproof.ops.grid_sampler.fast.passes import Case

_ELEMENTS = 1 << 15
_LEAST_POSITIONS, _MOST_POSITIONS = {2: 256, 3: 512}, 1024
_WIDTH = {2: 32, 3: 16}
_SLICES = 8  # rows and columns of a 3D stand-in's slice
# How much smaller a level of deformable attention is: exact for all of ATTENTION_SHAPES.
_ATTENTION_SIDE = 2
_SUMMED, _STEPS = 12, 1 << 12
_LATTICE = 1 << 14


def stand_in(row: Row) -> Row:
    """A small row of the same kind."""
    channels = row.shape[1]
    if row.grid == "attention":
        height, width = (size // _ATTENTION_SIDE for size in row.shape[2:])
        output = (row.output[0] // _ATTENTION_SIDE**2, row.output[1])
        return replace(row, shape=(1, channels, height, width), output=output)
    dimensions = row.dimensions
    positions = min(max(_ELEMENTS // channels, _LEAST_POSITIONS[dimensions]), _MOST_POSITIONS)
    width = _WIDTH[dimensions]
    sizes = (positions // width, width) if dimensions == 2 else (positions // width // _SLICES, _SLICES, width)
    return replace(row, shape=(1, channels, *sizes), output=sizes)


def stand_in_case(row: Row) -> Case:
    """The tensors of a row's stand-in on the CPU."""
    small = stand_in(row)
    grad_output, inputs, _ = small.tensors("cpu")
    torch.manual_seed(0)
    grid = make_grid(small.grid, 1, small.output, "cpu", exact_noise)
    exact = (grid * _LATTICE).round() / _LATTICE
    return Case(grad_output, inputs, exact.to(small.dtype), small.interpolation)


def exact_noise(size: Sequence[int], **options: Any) -> Tensor:
    """Nearly normal numbers: sums of uniform ones, all multiples of a power of two, the same on every machine."""
    drawn = torch.randint(0, _STEPS, (_SUMMED, *size), **options)
    return (drawn.sum(0) - _SUMMED * _STEPS // 2).float() / _STEPS


def elements(row: Row) -> int:
    """Channels of positions, over all images."""
    return row.shape[0] * row.shape[1] * torch.Size(row.output).numel()
