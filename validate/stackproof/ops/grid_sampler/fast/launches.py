"""The launches that one call of the fast backward is made of, in order, with their buffers.

Both users take them from here: the mirror of the host function, which proves the kernels on CPU tensors, and the
passes that are timed or counted on any device. They follow ``GridSamplerLanes.mm``; a test compares the kernels and
grids that this launches with those that it launches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from stackproof.engines.metal.struct_layout import StructLayout, Value
from stackproof.ops.grid_sampler.fast.division import (
    SEPARATE_ZEROS_BYTES,
    THREADS_PER_LAUNCH,
    Division,
    transpose_channels,
    transpose_name,
)
from stackproof.ops.grid_sampler.modes import Interpolation, Mode, Sampler
from stackproof.ops.grid_sampler.tensors import SamplerTensors

GROUP = 128
TRANSPOSE_GROUP = 256
TRANSPOSE_PIXELS = 64

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
class Plan:
    """All of one call.

    Attributes:
        steps: run in this order.
        grad_input: the result, contiguous, in the input's dtype; ``None`` where it is not asked for.
        grad_grid: the result.
        sums: what ``grad_input`` is added to; where it is not asked for, what is bound in its place.
    """

    steps: tuple[Launch | Zero, ...]
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
        threads_per_launch: at most so many threads in a launch, but for one threadgroup's.
        zeroes_apart: the sums are zeroed by a launch of its own; by their size if nothing is said.
    """

    layouts: Layouts
    threads_per_launch: int = THREADS_PER_LAUNCH
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
        tensors, stride = with_even_rows(tensors)
        values, dtype = tensors.input, tensors.input.dtype
        images, channels = values.shape[:2]
        pixels = values.shape[2:].numel()
        sums = _sums((images, pixels, channels), tensors, compute_grad_input)
        steps: list[Launch | Zero] = []
        channels_last = values
        zeroes = False
        if mode.interpolation is not Interpolation.NEAREST:
            last = torch.channels_last if tensors.dims == 2 else torch.channels_last_3d
            if values.is_contiguous() and not values.is_contiguous(memory_format=last):
                channels_last = torch.empty((images, pixels, channels), dtype=dtype, device=values.device)
                zeroes = compute_grad_input and not self._zeroes_apart(values)
                bound = sums if compute_grad_input else channels_last.view(-1)
                steps.append(self._transpose("to", dtype, (channels_last, bound, values), tensors, zeroes))
            else:
                channels_last = values.contiguous(memory_format=last)
        if compute_grad_input and not zeroes:
            steps.insert(0, Zero(sums))
        params = _params(tensors, mode, compute_grad_input)
        params["grad_output_strides"] = (*tensors.grad_output.stride()[:-1], stride)
        name = division.kernel_name(Sampler(tensors.dims), mode.interpolation, dtype)
        for first, count in self._parts(tensors.grid.shape[1:-1].numel(), division):
            packed = self._packed(tensors, params, first)
            grid = (-(-count // division.tile) * GROUP, images, 1)
            buffers = (sums, grad_grid, tensors.grad_output, channels_last, tensors.grid, packed)
            steps.append(Launch(name, buffers, grid, (GROUP, 1, 1)))
        if not compute_grad_input:
            return Plan(tuple(steps), None, grad_grid, sums)
        grad_input = torch.empty(values.shape, dtype=dtype, device=values.device)
        steps.append(self._transpose("from", dtype, (grad_input, sums), tensors, False))
        return Plan(tuple(steps), grad_input, grad_grid, sums)

    def _transpose(
        self, way: str, dtype: torch.dtype, buffers: tuple[Tensor, ...], tensors: SamplerTensors, zeroes: bool
    ) -> Launch:
        images, channels = tensors.input.shape[:2]
        pixels = tensors.input.shape[2:].numel()
        params: dict[str, Value] = {"channels": channels, "pixels": pixels, "zeroes_sums": zeroes}
        tile = transpose_channels(channels)
        threads = (-(-pixels // TRANSPOSE_PIXELS) * TRANSPOSE_GROUP, -(-channels // tile), images)
        packed = self.layouts("GridSamplerTransposeParams").pack(params)
        return Launch(transpose_name(way, dtype, channels), (*buffers, packed), threads, (TRANSPOSE_GROUP, 1, 1))

    def _zeroes_apart(self, values: Tensor) -> bool:
        if self.zeroes_apart is not None:
            return self.zeroes_apart
        return 4 * values.numel() >= SEPARATE_ZEROS_BYTES

    def _parts(self, positions: int, division: Division) -> Iterator[tuple[int, int]]:
        """First position and number of positions of each launch."""
        at_once = max(self.threads_per_launch // GROUP, 1) * division.tile
        for first in range(0, positions, at_once):
            yield first, min(positions - first, at_once)

    def _packed(self, tensors: SamplerTensors, values: dict[str, Value], first: int) -> bytes:
        layout = self.layouts("GridSamplerLanesParams", tensors.dims + 2, "int32_t")
        return layout.pack({**values, "first_position": first})


def _sums(size: Sequence[int], tensors: SamplerTensors, compute_grad_input: bool) -> Tensor:
    """Where ``grad_input`` is not asked for, a buffer that shows whether the kernels leave it alone."""
    device = tensors.input.device
    return torch.empty(tuple(size), device=device) if compute_grad_input else torch.zeros(1, device=device)


def _params(tensors: SamplerTensors, mode: Mode, compute_grad_input: bool) -> dict[str, Value]:
    """Values of all fields but ``first_position``."""
    return {
        "grad_output_sizes": tensors.grad_output.shape,
        "grad_output_strides": tensors.grad_output.stride(),
        "input_sizes": tensors.input.shape,
        "grid_strides": tensors.grid.stride(),
        "padding_mode": int(mode.padding),
        "align_corners": mode.align_corners,
        "compute_grad_input": compute_grad_input,
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
