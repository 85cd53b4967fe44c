"""The candidate kernels as whole backward passes: which kernels run, over which grids, with which buffers.

What the host function of the change will do is tried here first, on CPU tensors through the host executor and on CUDA
tensors through the GPU library alike: both take the same calls.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from instances import INTERPOLATIONS, METAL_NAMES, PADDINGS, Spread, Turn, backward_instance, turn_instances
from torch import Tensor

GROUP = 128
TURN_GROUP = 256

Step = Callable[[], object]


class Library(Protocol):
    """What the host's and the GPU's library share."""

    @property
    def kernel_names(self) -> list[str]:
        """Host names of all kernels."""

    def kernel(self, name: str) -> Any:
        """The kernel with this host name."""


class Libraries:
    """Several libraries as one."""

    def __init__(self, libraries: Iterable[Library]) -> None:
        self._kernels = {name: one for one in libraries for name in one.kernel_names}

    @property
    def kernel_names(self) -> list[str]:
        """Of all of them."""
        return list(self._kernels)

    def kernel(self, name: str) -> Any:
        """The kernel with this host name."""
        return self._kernels[name].kernel(name)


@dataclass(frozen=True)
class Case:
    """Tensors and mode of one call.

    Attributes:
        grad_output: (N, C, Ho, Wo), or (N, C, Do, Ho, Wo).
        input: (N, C, H, W), or (N, C, D, H, W).
        grid: (N, Ho, Wo, 2), or (N, Do, Ho, Wo, 3).
        interpolation: name.
        padding: name.
        align_corners: as in PyTorch.
    """

    grad_output: Tensor
    input: Tensor
    grid: Tensor
    interpolation: str = "bilinear"
    padding: str = "zeros"
    align_corners: bool = True

    def reference(self, dtype: torch.dtype | None = None) -> tuple[Tensor, Tensor]:
        """PyTorch's own gradients on the tensors' device, computed in ``dtype`` if one is given."""
        tensors = [self.grad_output, self.input, self.grid]
        if dtype is not None:
            tensors = [tensor.to(dtype) for tensor in tensors]
        modes = INTERPOLATIONS.index(self.interpolation), PADDINGS.index(self.padding)
        ops = torch.ops.aten
        operator = ops.grid_sampler_2d_backward if self.dimensions == 2 else ops.grid_sampler_3d_backward
        grads = operator(*tensors, *modes, self.align_corners, [True, True])
        return grads[0], grads[1]

    @property
    def dimensions(self) -> int:
        """2 or 3."""
        return self.input.dim() - 2

    @property
    def pixels(self) -> int:
        """Of one image of the input."""
        return math.prod(self.input.shape[2:])

    @property
    def positions(self) -> int:
        """Of one image of the output."""
        return math.prod(self.grid.shape[1:-1])

    @property
    def input_is_channels_last(self) -> bool:
        """A position's channels lie beside each other."""
        last = torch.channels_last if self.dimensions == 2 else torch.channels_last_3d
        return self.input.is_contiguous(memory_format=last)


class LanesParams(ctypes.Structure):
    """``GridSamplerLanesParams`` of the kernels."""

    _fields_ = (
        ("grad_output", ctypes.c_int32 * 5),
        ("sizes", ctypes.c_int32 * 3),
        ("grid_strides", ctypes.c_int32 * 4),
        ("align_corners", ctypes.c_int32),
        ("compute_grad_input", ctypes.c_int32),
    )


class Lanes3DParams(ctypes.Structure):
    """``GridSamplerLanes3DParams`` of the kernels."""

    _fields_ = (
        ("grad_output", ctypes.c_int32 * 5),
        ("sizes", ctypes.c_int32 * 3),
        ("output_sizes", ctypes.c_int32 * 2),
        ("grid_strides", ctypes.c_int32 * 5),
        ("align_corners", ctypes.c_int32),
        ("compute_grad_input", ctypes.c_int32),
    )


class ChangeOneParams(ctypes.Structure):
    """``GridSamplerBackwardParams<4, int32_t>`` of the overlay."""

    _fields_ = (
        ("grad_output_sizes", ctypes.c_int32 * 4),
        ("grad_output_strides", ctypes.c_int32 * 4),
        ("input_sizes", ctypes.c_int32 * 4),
        ("input_strides", ctypes.c_int32 * 4),
        ("grid_strides", ctypes.c_int32 * 4),
        ("grad_input_strides", ctypes.c_int32 * 4),
        ("first_position", ctypes.c_int32),
        ("align_corners", ctypes.c_bool),
        ("compute_grad_input", ctypes.c_bool),
    )


class PositionsParams(ctypes.Structure):
    """``GridSamplerPositionsParams`` of the kernels."""

    _fields_ = (
        ("sizes", ctypes.c_int32 * 5),
        ("grad_output_strides", ctypes.c_int32 * 4),
        ("input_strides", ctypes.c_int32 * 4),
        ("grid_strides", ctypes.c_int32 * 4),
        ("grad_input_strides", ctypes.c_int32 * 4),
        ("align_corners", ctypes.c_int32),
        ("compute_grad_input", ctypes.c_int32),
    )


class TurnParams(ctypes.Structure):
    """``GridSamplerTurnParams`` of the kernels."""

    _fields_ = (("channels", ctypes.c_int32), ("pixels", ctypes.c_int32))


def bind(library: Library, name: str, *args: Any, threads: Sequence[int], group_size: Sequence[int]) -> Step:
    """A launch of a kernel with its arguments, to be run any number of times."""
    kernel = library.kernel(name)
    if hasattr(kernel, "prepare"):
        launch: Step = kernel.prepare(*args, threads=threads, group_size=group_size)
        return launch
    return lambda: kernel(*args, threads=threads, group_size=group_size)


@dataclass(frozen=True)
class Pass:
    """A backward pass with its buffers.

    Attributes:
        steps: run in this order.
        grad_input: the result, contiguous, in the input's dtype.
        grad_grid: the result.
    """

    steps: tuple[Step, ...]
    grad_input: Tensor
    grad_grid: Tensor

    def __call__(self) -> tuple[Tensor, Tensor]:
        for step in self.steps:
            step()
        return self.grad_input, self.grad_grid


def backward(library: Library, case: Case, spread: Spread, turn: Turn) -> Pass:
    """Prepare one backward pass; the buffers are made here, once."""
    grad_grid = torch.full(case.grid.shape, torch.nan, dtype=case.grid.dtype, device=case.grid.device)
    if not spread.lanes:
        return _positions_pass(library, case, spread, grad_grid)
    return _lanes_pass(library, case, spread, turn, grad_grid)


def change_one(library: Library, case: Case) -> Pass:
    """The pass of change 1, a thread per position and a walk over the channels, for comparison."""
    sums = torch.empty(case.input.shape, dtype=torch.float32, device=case.input.device)
    grad_grid = torch.full(case.grid.shape, torch.nan, dtype=case.grid.dtype, device=case.grid.device)
    params = ChangeOneParams(align_corners=case.align_corners, compute_grad_input=True)
    for name, tensor in (("grad_output", case.grad_output), ("input", case.input)):
        getattr(params, f"{name}_sizes")[:] = tensor.shape
        getattr(params, f"{name}_strides")[:] = tensor.stride()
    params.grid_strides[:] = case.grid.stride()
    params.grad_input_strides[:] = sums.stride()
    name = f"grid_sampler_2d_backward_{case.interpolation}_{case.padding}_{METAL_NAMES[case.input.dtype]}"
    positions = case.grid.numel() // 2
    buffers = (sums, grad_grid, case.grad_output, case.input, case.grid, params)
    run = bind(library, name, *buffers, threads=(positions,), group_size=(min(positions, 2 * GROUP),))
    return _summed((lambda: sums.zero_(), run), sums, grad_grid, case)


def _summed(steps: Sequence[Step], sums: Tensor, grad_grid: Tensor, case: Case) -> Pass:
    """A pass that sums in the layout of the result, and rounds what is not float."""
    if case.input.dtype == torch.float32:
        return Pass(tuple(steps), sums, grad_grid)
    grad_input = torch.empty(case.input.shape, dtype=case.input.dtype, device=case.input.device)
    return Pass((*steps, lambda: grad_input.copy_(sums)), grad_input, grad_grid)


def _positions_pass(library: Library, case: Case, spread: Spread, grad_grid: Tensor) -> Pass:
    sums = torch.empty(case.input.shape, dtype=torch.float32, device=case.input.device)
    nearest = case.interpolation == "nearest"
    params = _positions_params(case, sums) if case.dimensions == 2 else _lanes_params(case)
    threads = -(-case.positions // GROUP) * GROUP
    buffers = [sums, grad_grid, case.grad_output, *([] if nearest else [case.input]), case.grid, params]
    chunks = [-(-case.input.shape[1] // spread.channels)] if nearest else []
    instance = backward_instance(case.interpolation, case.padding, case.input.dtype, spread, case.dimensions)
    grid = (threads, *chunks, case.input.shape[0])
    run = bind(library, instance.name, *buffers, threads=grid, group_size=(GROUP, 1, 1))
    return _summed((lambda: sums.zero_(), run), sums, grad_grid, case)


def _positions_params(case: Case, sums: Tensor) -> PositionsParams:
    params = PositionsParams(align_corners=case.align_corners, compute_grad_input=1)
    params.sizes[:] = [*case.input.shape[1:], case.grid.shape[2], case.positions]
    for name, tensor in (
        ("grad_output_strides", case.grad_output),
        ("input_strides", case.input),
        ("grid_strides", case.grid),
        ("grad_input_strides", sums),
    ):
        getattr(params, name)[:] = tensor.stride()
    return params


def _lanes_pass(library: Library, case: Case, spread: Spread, turn: Turn, grad_grid: Tensor) -> Pass:
    images, channels = case.input.shape[:2]
    device, dtype = case.input.device, case.input.dtype
    sums = torch.empty((images, case.pixels, channels), dtype=torch.float32, device=device)
    grad_input = torch.empty(case.input.shape, dtype=dtype, device=device)
    there, back = turn_instances(dtype, turn)
    turning = TurnParams(channels, case.pixels)
    turn_grid = {
        "threads": (-(-case.pixels // turn.pixels) * TURN_GROUP, -(-channels // turn.channels), images),
        "group_size": (TURN_GROUP, 1, 1),
    }
    steps: list[Step] = []
    turned = case.input
    turns = case.interpolation != "nearest" and not case.input_is_channels_last
    if not turns or not turn.zeroes:
        steps.append(lambda: sums.zero_())
    if turns:
        turned = torch.empty((images, case.pixels, channels), dtype=dtype, device=device)
        steps.append(bind(library, there.name, turned, sums, case.input, turning, **turn_grid))
    instance = backward_instance(case.interpolation, case.padding, dtype, spread, case.dimensions)
    buffers = (sums, grad_grid, case.grad_output, turned, case.grid, _lanes_params(case))
    threads = (-(-case.positions // spread.tile) * GROUP, images)
    steps.append(bind(library, instance.name, *buffers, threads=threads, group_size=(GROUP, 1)))
    steps.append(bind(library, back.name, grad_input, sums, turning, **turn_grid))
    return Pass(tuple(steps), grad_input, grad_grid)


def _lanes_params(case: Case) -> LanesParams | Lanes3DParams:
    strides, sizes = case.grad_output.stride(), case.grad_output.shape
    rows_follow = all(strides[i] == strides[i + 1] * sizes[i + 1] for i in range(2, case.grad_output.dim() - 1))
    assert rows_follow, "rows of grad_output must follow each other"
    params: LanesParams | Lanes3DParams
    if case.dimensions == 2:
        params = LanesParams(align_corners=case.align_corners, compute_grad_input=1)
        params.sizes[:] = [*case.input.shape[2:], case.grid.shape[2]]
    else:
        params = Lanes3DParams(align_corners=case.align_corners, compute_grad_input=1)
        params.sizes[:] = case.input.shape[2:]
        params.output_sizes[:] = case.grid.shape[2:4]
    params.grad_output[:] = [sizes[1], case.positions, strides[0], strides[1], strides[-1]]
    params.grid_strides[:] = case.grid.stride()
    return params
