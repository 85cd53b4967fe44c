"""The launches that one call of the fast backward is made of, in order, with their buffers.

Both users take them from here: the mirror of the host function, which proves the kernels on CPU tensors, and the
passes that are timed or counted on any device. They follow ``grid_sampler_gradients`` of the series' layer
``grid_sampler_fast_backward``; a test compares the kernels and grids that this launches with those that it launches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from stackproof.ops.grid_sampler.families.model import INT32_MAX, largest_offset
from stackproof.ops.grid_sampler.fast.division import (
    SEPARATE_ZEROS_BYTES,
    THREADS_PER_LAUNCH,
    Division,
    turn_channels,
    turn_name,
)
from stackproof.ops.grid_sampler.modes import Interpolation, Mode, Sampler
from stackproof.ops.grid_sampler.tensors import SamplerTensors
from stackproof.ops.struct_layout import Argument, StructLayout, Value

GROUP = 128
TURN_GROUP = 256
TURN_PIXELS = 64
NEAREST_CHANNELS = 8
"""Channels of a thread where threads share a position's channels."""

Layouts = Callable[..., StructLayout]
"""The layout of a struct, by its name and template arguments."""


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel.

    Attributes:
        kernel: its host name.
        arguments: by buffer index; tensors, and the parameters as bytes.
        threads: of the grid.
        group_size: of a threadgroup.
    """

    kernel: str
    arguments: tuple[Any, ...]
    threads: tuple[int, ...]
    group_size: tuple[int, ...]


@dataclass(frozen=True)
class Zero:
    """Fill a tensor with zeros, by PyTorch's own function."""

    tensor: Tensor


@dataclass(frozen=True)
class Round:
    """Copy a tensor to one of another dtype, by PyTorch's own function."""

    target: Tensor
    source: Tensor


@dataclass(frozen=True)
class Plan:
    """All of one call.

    Attributes:
        steps: run in this order.
        grad_input: the result, contiguous, in the input's dtype; ``None`` where it is not asked for.
        grad_grid: the result.
        sums: what ``grad_input`` is added to; where it is not asked for, what is bound in its place.
    """

    steps: tuple[Launch | Zero | Round, ...]
    grad_input: Tensor | None
    grad_grid: Tensor
    sums: Tensor

    @property
    def launches(self) -> tuple[Launch, ...]:
        """The kernels alone."""
        return tuple(step for step in self.steps if isinstance(step, Launch))


@dataclass(frozen=True)
class Planner:
    """Plans calls; the buffers are made here, once, on the tensors' device.

    Attributes:
        layouts: of the kernels' parameters.
        always_wide: take 64-bit offsets where a thread has a position, needed or not.
        threads_per_launch: at most so many threads in a launch, but for one threadgroup's.
        empty: makes the memory that a thread per position sums ``grad_input`` in, from a size.
        zeroes_apart: the sums are zeroed by a launch of its own; by their size if nothing is said.
    """

    layouts: Layouts
    always_wide: bool = False
    threads_per_launch: int = THREADS_PER_LAUNCH
    empty: Callable[[Sequence[int]], Tensor] | None = None
    zeroes_apart: bool | None = None

    def plan(
        self,
        tensors: SamplerTensors,
        mode: Mode,
        division: Division,
        *,
        compute_grad_input: bool = True,
        grad_grid: Tensor | None = None,
    ) -> Plan:
        """The launches of a call.

        Args:
            tensors: all of one dtype, none of them empty.
            mode: how to sample.
            division: of the work.
            compute_grad_input: the mask.
            grad_grid: where to write that gradient, contiguous; new memory unless said otherwise.
        """
        if grad_grid is None:
            grad_grid = torch.full(tensors.grid.shape, torch.nan, dtype=tensors.grid.dtype, device=tensors.grid.device)
        if mode.interpolation is Interpolation.NEAREST and not compute_grad_input:
            return Plan((Zero(grad_grid),), None, grad_grid, tensors.grid.new_zeros(1, dtype=torch.float32))
        by_kind = self._by_lanes if division.lanes else self._by_positions
        return by_kind(tensors, mode, division, compute_grad_input, grad_grid)

    def _by_positions(
        self, tensors: SamplerTensors, mode: Mode, division: Division, compute_grad_input: bool, grad_grid: Tensor
    ) -> Plan:
        size = tensors.input.shape
        sums = self.empty(size) if self.empty and compute_grad_input else _sums(size, tensors, compute_grad_input)
        values = _params(tensors, mode, sums if compute_grad_input else None)
        is_nearest = mode.interpolation is Interpolation.NEAREST
        chunks = -(-tensors.input.shape[1] // NEAREST_CHANNELS) if is_nearest else 1
        offsets = largest_offset(tensors.grad_output, tensors.input, tensors.grid, grad_grid, sums)
        wide = self.always_wide or offsets > INT32_MAX
        name = division.kernel_name(Sampler(tensors.dims), mode.interpolation, tensors.input.dtype, wide=wide)
        buffers = (sums, grad_grid, tensors.grad_output, tensors.input, tensors.grid)
        launches = [
            Launch(
                name,
                (*buffers, self._packed(tensors, values, first, wide=wide)),
                (-(-count // GROUP) * GROUP, chunks, 1),
                (GROUP, 1, 1),
            )
            for first, count in self._parts(tensors.positions, division)
        ]
        if not compute_grad_input:
            return Plan(tuple(launches), None, grad_grid, sums)
        if tensors.input.dtype is torch.float32:
            return Plan((Zero(sums), *launches), sums, grad_grid, sums)
        grad_input = torch.empty(tensors.input.shape, dtype=tensors.input.dtype, device=tensors.input.device)
        return Plan((Zero(sums), *launches, Round(grad_input, sums)), grad_input, grad_grid, sums)

    def _by_lanes(
        self, tensors: SamplerTensors, mode: Mode, division: Division, compute_grad_input: bool, grad_grid: Tensor
    ) -> Plan:
        tensors, stride = with_even_rows(tensors)
        values, dtype = tensors.input, tensors.input.dtype
        images, channels = values.shape[:2]
        pixels = values.shape[2:].numel()
        sums = _sums((images, pixels, channels), tensors, compute_grad_input)
        steps: list[Launch | Zero | Round] = []
        turned = values
        zeroes = False
        if mode.interpolation is not Interpolation.NEAREST:
            last = torch.channels_last if tensors.dims == 2 else torch.channels_last_3d
            if values.is_contiguous() and not values.is_contiguous(memory_format=last):
                turned = torch.empty((images, pixels, channels), dtype=dtype, device=values.device)
                zeroes = compute_grad_input and not self._zeroes_apart(values)
                bound = sums if compute_grad_input else turned.view(-1)
                steps.append(self._turn("to", dtype, (turned, bound, values), tensors, zeroes))
            else:
                turned = values.contiguous(memory_format=last)
        if compute_grad_input and not zeroes:
            steps.insert(0, Zero(sums))
        params = _params(tensors, mode, sums if compute_grad_input else None, dense=True)
        params["grad_output_strides"] = (*tensors.grad_output.stride()[:-1], stride)
        name = division.kernel_name(Sampler(tensors.dims), mode.interpolation, dtype, wide=False)
        for first, count in self._parts(tensors.grid.shape[1:-1].numel(), division):
            packed = self._packed(tensors, params, first, wide=False)
            grid = (-(-count // division.tile) * GROUP, images, 1)
            buffers = (sums, grad_grid, tensors.grad_output, turned, tensors.grid, packed)
            steps.append(Launch(name, buffers, grid, (GROUP, 1, 1)))
        if not compute_grad_input:
            return Plan(tuple(steps), None, grad_grid, sums)
        grad_input = torch.empty(values.shape, dtype=dtype, device=values.device)
        steps.append(self._turn("from", dtype, (grad_input, sums), tensors, False))
        return Plan(tuple(steps), grad_input, grad_grid, sums)

    def _turn(
        self, way: str, dtype: torch.dtype, buffers: tuple[Tensor, ...], tensors: SamplerTensors, zeroes: bool
    ) -> Launch:
        images, channels = tensors.input.shape[:2]
        pixels = tensors.input.shape[2:].numel()
        params: dict[str, Value] = {"channels": channels, "pixels": pixels, "zeroes_sums": zeroes}
        tile = turn_channels(channels)
        threads = (-(-pixels // TURN_PIXELS) * TURN_GROUP, -(-channels // tile), images)
        packed = self.layouts("GridSamplerTurnParams").pack(params)
        return Launch(turn_name(way, dtype, channels), (*buffers, packed), threads, (TURN_GROUP, 1, 1))

    def _zeroes_apart(self, values: Tensor) -> bool:
        if self.zeroes_apart is not None:
            return self.zeroes_apart
        return 4 * values.numel() >= SEPARATE_ZEROS_BYTES

    def _parts(self, positions: int, division: Division) -> Iterator[tuple[int, int]]:
        """First position and number of positions of each launch."""
        at_once = max(self.threads_per_launch // GROUP, 1) * division.tile
        for first in range(0, positions, at_once):
            yield first, min(positions - first, at_once)

    def _packed(self, tensors: SamplerTensors, values: dict[str, Value], first: int, *, wide: bool) -> bytes:
        index: Argument = "int64_t" if wide else "int32_t"
        layout = self.layouts("GridSamplerGradientParams", tensors.dims + 2, index)
        return layout.pack({**values, "first_position": first})


def _sums(size: Sequence[int], tensors: SamplerTensors, compute_grad_input: bool) -> Tensor:
    """Where ``grad_input`` is not asked for, a buffer that shows whether the kernels leave it alone."""
    device = tensors.input.device
    return torch.empty(tuple(size), device=device) if compute_grad_input else torch.zeros(1, device=device)


def _params(tensors: SamplerTensors, mode: Mode, sums: Tensor | None, *, dense: bool = False) -> dict[str, Value]:
    """Values of all fields but ``first_position``; ``dense`` sums are not asked for their strides."""
    strides = (0,) * tensors.input.dim() if sums is None or dense else sums.stride()
    return {
        "grad_output_sizes": tensors.grad_output.shape,
        "grad_output_strides": tensors.grad_output.stride(),
        "input_sizes": tensors.input.shape,
        "input_strides": tensors.input.stride(),
        "grid_strides": tensors.grid.stride(),
        "grad_input_strides": strides,
        "padding_mode": int(mode.padding),
        "align_corners": mode.align_corners,
        "compute_grad_input": sums is not None,
    }


def position_stride(grad_output: Tensor) -> int | None:
    """The distance from one position to the next, if it is the same from row to row; ``None`` if it is not.

    Axes of one element have no say: their strides may be anything.
    """
    axes = [
        (size, stride)
        for size, stride in zip(grad_output.shape[2:], grad_output.stride()[2:], strict=True)
        if size != 1
    ]
    if not axes:
        return 0
    follows = all(outer[1] == inner[0] * inner[1] for outer, inner in pairwise(axes))
    return axes[-1][1] if follows else None


def with_even_rows(tensors: SamplerTensors) -> tuple[SamplerTensors, int]:
    """The same with a ``grad_output`` whose positions are evenly spaced, and how far apart they are."""
    stride = position_stride(tensors.grad_output)
    if stride is not None:
        return tensors, stride
    return SamplerTensors(tensors.grad_output.contiguous(), tensors.input, tensors.grid), 1
