"""The cases that are not "random values of some shape": extreme coordinates, collisions, index widths, launches."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from stackproof.ops.grid_sampler_2d_backward.checks import Expected, dtype_name, same_bits
from stackproof.ops.grid_sampler_2d_backward.host import HostFunction
from stackproof.ops.grid_sampler_2d_backward.modes import Mode, Padding
from stackproof.ops.grid_sampler_2d_backward.oracle import RESOLVED_PIXELS, to_pixels
from stackproof.ops.grid_sampler_2d_backward.table import Shape
from stackproof.ops.grid_sampler_2d_backward.values import random_tensors
from stackproof.ops.layouts import SamplerTensors, sliced, virtual_tensor
from stackproof.ops.model import CaseResult, Kernels

_SHAPE = Shape("special", (2, 3, 5, 7), (5, 6))
_BEYOND_INT32 = 2**31 + 3
_COLLIDING = (64, 64)

# Not a number, infinite, infinite once un-normalised, beyond int64, beyond int32, just large.
_EXTREME = (math.nan, math.inf, -math.inf, 3.2e38, -3.2e38, 1e20, -1e20, 4e9, -4e9, 6e4, -6e4, 3e3, -3e3)


def extreme_values(dtype: torch.dtype) -> Tensor:
    """Grid values that must not become an index unchecked; what ``dtype`` cannot hold is infinite in it."""
    return torch.tensor(_EXTREME, dtype=torch.float64).to(dtype)


def non_finite_coordinates(kernels: Kernels, mode: Mode, dtype: torch.dtype) -> Iterator[CaseResult]:
    """The rule for extreme coordinates: right values where there are any, finite samples unaffected.

    A reflected coordinate that float32 does not resolve can end on any pixel; such samples come apart from the others,
    and only have to end on some pixel or nowhere.
    """
    host = HostFunction(kernels)
    plain = random_tensors(_SHAPE, dtype, mode)
    grid, is_extreme = _with_extremes(plain.grid, _settled(extreme_values(dtype), mode))
    mixed = SamplerTensors(plain.grad_output, plain.input, grid)
    outputs = host.backward(mixed, mode, mask=(True, True))
    alone = host.backward(plain, mode, mask=(True, True))
    kept = same_bits(outputs.grad_grid[~is_extreme], alone.grad_grid[~is_extreme])
    more = () if kept else ("grad_grid of a finite sample changed because another sample is not finite",)
    expected = Expected.of(mixed, mode)
    yield expected.judge(outputs, "extreme among finite coordinates", more=more)
    yield expected.check(host, "extreme among finite coordinates, no grad_input", mask=(False, True))
    yield _anywhere_or_nowhere(host, mode, dtype)


def _settled(values: Tensor, mode: Mode) -> Tensor:
    """Those extreme values whose samples have one right answer, whatever the rounding of the coordinate."""
    if mode.padding is not Padding.REFLECTION:
        return values
    return values[~_pixels(values, mode).isfinite()]


def _pixels(values: Tensor, mode: Mode) -> Tensor:
    """Float32 pixel coordinates of the smaller axis of the shape used here."""
    pixel, _ = to_pixels(values.double(), min(_SHAPE.input[2:]), mode.align_corners)
    return pixel.float()


def _with_extremes(grid: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """The grid with every third sample replaced, in x, in y or in both; and which samples those are."""
    changed = grid.clone().view(-1, 2)
    replaced = torch.arange(0, len(changed), 2 if len(values) > 3 else 3)
    for turn, at in enumerate(replaced.tolist()):
        value = values[turn % len(values)]
        if turn % 3 != 1:
            changed[at, 0] = value
        if turn % 3 != 0:
            changed[at, 1] = value
    is_extreme = torch.zeros(len(changed), dtype=torch.bool)
    is_extreme[replaced] = True
    return changed.view(grid.shape), is_extreme.view(grid.shape[:-1])


def _anywhere_or_nowhere(host: HostFunction, mode: Mode, dtype: torch.dtype) -> CaseResult:
    """One sample per extreme value: its weights sum up to one, or it is outside and adds nothing."""
    values = extreme_values(dtype)
    unresolved = _pixels(values, mode).abs() >= RESOLVED_PIXELS
    count = int(unresolved.sum())
    case = f"{count} reflected coordinates that float32 does not resolve"
    if mode.padding is not Padding.REFLECTION or not count:
        return CaseResult(str(mode), dtype_name(dtype), case)
    tensors = SamplerTensors(
        torch.ones(count, 1, 1, 1, dtype=dtype),
        torch.ones(count, 1, *_SHAPE.input[2:], dtype=dtype),
        values[unresolved].view(-1, 1, 1, 1).expand(count, 1, 1, 2),
    )
    outputs = host.backward(tensors, mode, mask=(True, True))
    assert outputs.grad_input is not None
    total = outputs.grad_input.double().sum((1, 2, 3))
    near = 16 * torch.finfo(dtype).eps
    fits = ((total - 1).abs() <= near) | (total == 0)
    problems = []
    if not fits.all():
        problems.append(f"the weights of a sample sum up to {total[~fits][0].item():.6g}, neither 1 nor 0")
    if not outputs.grad_grid.isfinite().all():
        problems.append("grad_grid is not finite")
    return CaseResult(str(mode), dtype_name(dtype), case, problems=tuple(problems))


def collisions(kernels: Kernels, mode: Mode, dtype: torch.dtype) -> Iterator[CaseResult]:
    """4096 samples that fall on the same pixel add up to 4096, which sums in half or bfloat16 would not."""
    count = _COLLIDING[0] * _COLLIDING[1]
    tensors = SamplerTensors(
        torch.ones(1, 1, *_COLLIDING, dtype=dtype),
        torch.ones(1, 1, 3, 3, dtype=dtype),
        torch.zeros(1, *_COLLIDING, 2, dtype=dtype),
    )
    outputs = HostFunction(kernels).backward(tensors, mode, mask=(True, True))
    assert outputs.grad_input is not None
    total = outputs.grad_input[0, 0, 1, 1].item()
    more = () if total == count else (f"{count} colliding samples of 1 sum up to {total:g}",)
    yield Expected.of(tensors, mode).judge(outputs, f"{count} collisions", more=more)


def int64_kernels(kernels: Kernels, mode: Mode, dtype: torch.dtype) -> Iterator[CaseResult]:
    """The kernels with 64-bit offsets compute the same on small tensors."""
    host = HostFunction(kernels, always_wide=True)
    tensors = random_tensors(_SHAPE, dtype, mode)
    yield Expected.of(tensors, mode).check(host, "int64 kernel, contiguous")
    yield Expected.of(tensors.each(sliced), mode).check(host, "int64 kernel, sliced")


def several_launches(kernels: Kernels, mode: Mode, dtype: torch.dtype) -> Iterator[CaseResult]:
    """A grid of more positions than one launch takes is covered once, without a gap."""
    expected = Expected.of(random_tensors(_SHAPE, dtype, mode), mode)
    for wide in (False, True):
        host = HostFunction(kernels, always_wide=wide, positions_per_launch=7)
        yield expected.check(host, f"launches of 7, {'int64' if wide else 'int32'} kernel")


def strides_beyond_int32(kernels: Kernels, mode: Mode, dtype: torch.dtype) -> Iterator[CaseResult]:
    """Each tensor in turn spans more than 2**31 elements: the index width follows, the values stay right."""
    tensors = random_tensors(_SHAPE, dtype, mode)
    grad_output, values, grid = tensors.grad_output, tensors.input, tensors.grid
    for case, spread in (
        ("grad_output", SamplerTensors(_spread(grad_output), values, grid)),
        ("input", SamplerTensors(grad_output, _spread(values), grid)),
        ("grid", SamplerTensors(grad_output, values, _spread(grid))),
    ):
        yield _wide_case(HostFunction(kernels), Expected.of(spread, mode), f"{case} beyond 2**31")
    host = HostFunction(kernels, zeros=_spread_zeros)
    yield _wide_case(host, Expected.of(tensors, mode), "grad_input beyond 2**31")


def _wide_case(host: HostFunction, expected: Expected, case: str) -> CaseResult:
    outputs = host.backward(expected.tensors, expected.mode, mask=(True, True))
    more = () if outputs.used_wide else ("the kernel with 32-bit offsets was chosen",)
    return expected.judge(outputs, case, more=more)


def _spread(values: Tensor) -> Tensor:
    inner = values[0].contiguous().stride()
    return virtual_tensor(values.shape, (_BEYOND_INT32, *inner), values.dtype).copy_(values)


def _spread_zeros(shape: Sequence[int]) -> Tensor:
    _, channels, height, width = shape
    assert channels
    return virtual_tensor(shape, (_BEYOND_INT32, height * width, width, 1), torch.float32)
