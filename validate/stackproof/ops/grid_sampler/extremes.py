"""Coordinates that must not become an index unchecked, put among others that are harmless."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from stackproof.ops.grid_sampler.modes import Mode, Padding
from stackproof.ops.grid_sampler.oracle import RESOLVED_PIXELS, to_pixels
from stackproof.ops.grid_sampler.tensors import SamplerTensors

# Not a number, infinite, infinite once un-normalised, beyond int64, beyond int32, just large.
_EXTREME = (math.nan, math.inf, -math.inf, 3.2e38, -3.2e38, 1e20, -1e20, 4e9, -4e9, 6e4, -6e4, 3e3, -3e3)


def extreme_values(dtype: torch.dtype) -> Tensor:
    """All of them; what ``dtype`` cannot hold is infinite in it."""
    return torch.tensor(_EXTREME, dtype=torch.float64).to(dtype)


def with_extremes(plain: SamplerTensors, mode: Mode) -> tuple[SamplerTensors, Tensor]:
    """The tensors with some samples replaced, along every set of axes, and (N, *O) bool: which samples those are.

    Only values that have one right answer, whatever the rounding of the coordinate, are used.
    """
    values = _settled(extreme_values(plain.grid.dtype), plain, mode)
    changed = plain.grid.clone().view(-1, plain.dims)
    replaced = torch.arange(0, len(changed), 2 if len(values) > 3 else 3)
    for turn, at in enumerate(replaced.tolist()):
        chosen = turn % (2**plain.dims - 1) + 1
        for axis in range(plain.dims):
            if chosen >> axis & 1:
                changed[at, axis] = values[turn % len(values)]
    is_extreme = torch.zeros(len(changed), dtype=torch.bool)
    is_extreme[replaced] = True
    grid = changed.view(plain.grid.shape)
    return SamplerTensors(plain.grad_output, plain.input, grid), is_extreme.view(grid.shape[:-1])


def _settled(values: Tensor, plain: SamplerTensors, mode: Mode) -> Tensor:
    """Those extreme values whose samples have one right answer, whatever the rounding of the coordinate."""
    if mode.padding is not Padding.REFLECTION:
        return values
    return values[~_pixels(values, plain, mode).isfinite()]


def _pixels(values: Tensor, plain: SamplerTensors, mode: Mode) -> Tensor:
    """Float32 pixel coordinates of the smallest axis."""
    pixel, _ = to_pixels(values.double(), min(plain.input.shape[2:]), mode.align_corners)
    return pixel.float()


def unresolved(plain: SamplerTensors, mode: Mode) -> SamplerTensors | None:
    """Ones sampled at one reflected coordinate each that float32 does not resolve; ``None`` where there is none.

    Such a coordinate can end on any pixel, or outside. There is no right value, but a sample's weights sum up to 1.
    """
    values = extreme_values(plain.grid.dtype)
    values = values[_pixels(values, plain, mode).abs() >= RESOLVED_PIXELS]
    count, dims = len(values), plain.dims
    if mode.padding is not Padding.REFLECTION or not count:
        return None
    return SamplerTensors(
        plain.input.new_ones(count, 1, *[1] * dims),
        plain.input.new_ones(count, 1, *plain.input.shape[2:]),
        values.view(-1, *[1] * dims, 1).expand(count, *[1] * dims, dims),
    )


def weights_problems(totals: Tensor) -> tuple[str, ...]:
    """What is wrong with the sums of weights of :func:`unresolved` samples, 1-D."""
    near = 16 * torch.finfo(totals.dtype).eps
    totals = totals.double()
    fits = ((totals - 1).abs() <= near) | (totals == 0)
    if fits.all():
        return ()
    return (f"the weights of a sample sum up to {totals[~fits][0].item():.6g}, neither 1 nor 0",)
