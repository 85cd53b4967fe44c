"""The candidate kernels as whole backward passes: which kernels run, over which grids, with which buffers.

What the host function of the change will do is tried here first, on CPU tensors through the host executor and on CUDA
tensors through the GPU library alike: both take the same calls. Kernel instantiations are written from the variants
that are asked for, since a measurement wants more of them than a change may have.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

HERE = Path(__file__).resolve().parent
OVERLAY = HERE.parents[1] / "aten_overlay" / "aten" / "src"
OVERLAY_SOURCE = OVERLAY / "ATen" / "native" / "mps" / "kernels" / "GridSampler.metal"

INTERPOLATIONS = ("bilinear", "nearest", "bicubic")
PADDINGS = ("zeros", "border", "reflection")
METAL_NAMES = {torch.float32: "float", torch.float16: "half", torch.bfloat16: "bfloat"}
GROUP = 128
TURN_GROUP = 256
_REGISTRATIONS = re.compile(r"^REGISTER_GRID_SAMPLER_2D_BACKWARD_OPS\(.*\);\n", re.MULTILINE)

Step = Callable[[], None]


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
class Spread:
    """How the work of one position is divided.

    Attributes:
        lanes: that share a position; 0: a thread has the whole position, or for nearest some of its channels.
        channels: of each lane at a time.
        tile: positions of a threadgroup.
        staged: ``grad_output`` goes through threadgroup memory.
    """

    lanes: int
    channels: int = 1
    tile: int = 64
    staged: bool = False

    @property
    def suffix(self) -> str:
        """Part of the kernel's name."""
        if not self.lanes:
            return f"{self.channels}"
        return f"{self.lanes}x{self.channels}x{self.tile}{'_staged' if self.staged else ''}"


@dataclass(frozen=True)
class Turn:
    """Tile of the kernels that change the layout."""

    channels: int
    pixels: int


@dataclass(frozen=True)
class Case:
    """Tensors and mode of one call.

    Attributes:
        grad_output: (N, C, Ho, Wo).
        input: (N, C, H, W).
        grid: (N, Ho, Wo, 2).
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
        grads = torch.ops.aten.grid_sampler_2d_backward(*tensors, *modes, self.align_corners, [True, True])
        return grads[0], grads[1]


class LanesParams(ctypes.Structure):
    """``GridSamplerLanesParams`` of kernels.metal."""

    _fields_ = (
        ("sizes", ctypes.c_int32 * 5),
        ("grad_output_strides", ctypes.c_int32 * 3),
        ("grid_strides", ctypes.c_int32 * 4),
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
    """``GridSamplerPositionsParams`` of kernels.metal."""

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
    """``GridSamplerTurnParams`` of kernels.metal."""

    _fields_ = (("channels", ctypes.c_int32), ("pixels", ctypes.c_int32))


@dataclass(frozen=True)
class Instance:
    """One kernel instantiation.

    Attributes:
        name: host name.
        function: the template.
        arguments: its template arguments.
    """

    name: str
    function: str
    arguments: str

    @property
    def text(self) -> str:
        """The line that makes it."""
        whole = f"{self.function}<{self.arguments}>"
        return f'template [[host_name("{self.name}")]] kernel decltype({whole}) {whole};\n'


def backward_instance(interpolation: str, padding: str, dtype: torch.dtype, spread: Spread) -> Instance:
    """The kernel of one mode and division of the work."""
    metal = METAL_NAMES[dtype]
    interp = f"GridGrad{interpolation.title()}<GridGrad{padding.title()}>"
    if not spread.lanes:
        kind = "nearest" if interpolation == "nearest" else "positions"
        name = f"positions_{interpolation}_{padding}_{metal}_{spread.suffix}"
        return Instance(name, f"grid_sampler_2d_backward_{kind}", f"{interp}, {metal}, {spread.channels}")
    numbers = f"{spread.lanes}, {spread.channels}, {spread.tile}, {str(spread.staged).lower()}"
    name = f"lanes_{interpolation}_{padding}_{metal}_{spread.suffix}"
    return Instance(name, "grid_sampler_2d_backward_lanes", f"{interp}, {metal}, {numbers}")


def turn_instances(dtype: torch.dtype, turn: Turn) -> list[Instance]:
    """The kernels that change the layout, there and back."""
    metal = METAL_NAMES[dtype]
    arguments = f"{metal}, {turn.channels}, {turn.pixels}"
    suffix = f"{metal}_{turn.channels}x{turn.pixels}"
    return [
        Instance(f"to_channels_last_{suffix}", "grid_sampler_to_channels_last", arguments),
        Instance(f"from_channels_last_{suffix}", "grid_sampler_from_channels_last", arguments),
    ]


def write_source(path: Path, instances: Iterable[Instance]) -> Path:
    """The overlay's source without its own instantiations, the candidates, and the instantiations asked for."""
    base = _REGISTRATIONS.sub("", OVERLAY_SOURCE.read_text())
    lines = "".join(dict.fromkeys(instance.text for instance in instances))
    text = base + (HERE / "kernels.metal").read_text() + lines
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
    return path


def _bind(library: Library, name: str, *args: Any, threads: Sequence[int], group_size: Sequence[int]) -> Step:
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
    run = _bind(library, name, *buffers, threads=(positions,), group_size=(min(positions, 2 * GROUP),))
    return _summed((lambda: sums.zero_(), run), sums, grad_grid, case)  # type: ignore[arg-type,return-value]


def _summed(steps: Sequence[Step], sums: Tensor, grad_grid: Tensor, case: Case) -> Pass:
    """A pass that sums in the layout of the result, and rounds what is not float."""
    if case.input.dtype == torch.float32:
        return Pass(tuple(steps), sums, grad_grid)
    grad_input = torch.empty(case.input.shape, dtype=case.input.dtype, device=case.input.device)
    return Pass((*steps, lambda: grad_input.copy_(sums)), grad_input, grad_grid)  # type: ignore[arg-type,return-value]


def _sizes(case: Case) -> list[int]:
    _, channels, height, width = case.input.shape
    output_height, output_width = case.grid.shape[1:3]
    return [channels, height, width, output_width, output_height * output_width]


def _positions_pass(library: Library, case: Case, spread: Spread, grad_grid: Tensor) -> Pass:
    sums = torch.empty(case.input.shape, dtype=torch.float32, device=case.input.device)
    params = PositionsParams(align_corners=case.align_corners, compute_grad_input=1)
    params.sizes[:] = _sizes(case)
    for name, tensor in (
        ("grad_output_strides", case.grad_output),
        ("input_strides", case.input),
        ("grid_strides", case.grid),
        ("grad_input_strides", sums),
    ):
        getattr(params, name)[:] = tensor.stride()
    threads = -(-_sizes(case)[4] // GROUP) * GROUP
    nearest = case.interpolation == "nearest"
    buffers = [sums, grad_grid, case.grad_output, *([] if nearest else [case.input]), case.grid, params]
    chunks = [-(-case.input.shape[1] // spread.channels)] if nearest else []
    name = backward_instance(case.interpolation, case.padding, case.input.dtype, spread).name
    run = _bind(library, name, *buffers, threads=(threads, *chunks, case.input.shape[0]), group_size=(GROUP, 1, 1))
    return _summed((lambda: sums.zero_(), run), sums, grad_grid, case)  # type: ignore[arg-type,return-value]


def _lanes_pass(library: Library, case: Case, spread: Spread, turn: Turn, grad_grid: Tensor) -> Pass:
    images, channels, height, width = case.input.shape
    device, dtype = case.input.device, case.input.dtype
    sums = torch.empty((images, height, width, channels), dtype=torch.float32, device=device)
    grad_input = torch.empty(case.input.shape, dtype=dtype, device=device)
    there, back = turn_instances(dtype, turn)
    turning = TurnParams(channels, height * width)
    turn_grid = {
        "threads": (-(-(height * width) // turn.pixels) * TURN_GROUP, -(-channels // turn.channels), images),
        "group_size": (TURN_GROUP, 1, 1),
    }
    steps: list[Step] = []
    if case.input.is_contiguous(memory_format=torch.channels_last):
        turned = case.input
        steps.append(lambda: sums.zero_())  # type: ignore[arg-type,return-value]
    else:
        turned = torch.empty((images, height, width, channels), dtype=dtype, device=device)
        steps.append(_bind(library, there.name, turned, sums, case.input, turning, **turn_grid))
    params = LanesParams(align_corners=case.align_corners, compute_grad_input=1)
    params.sizes[:] = _sizes(case)
    stride_n, stride_c, stride_h, stride_w = case.grad_output.stride()
    assert stride_h == stride_w * case.grad_output.shape[3], "rows of grad_output must follow each other"
    params.grad_output_strides[:] = (stride_n, stride_c, stride_w)
    params.grid_strides[:] = case.grid.stride()
    steps.append(
        _bind(
            library,
            backward_instance(case.interpolation, case.padding, dtype, spread).name,
            sums,
            grad_grid,
            case.grad_output,
            turned,
            case.grid,
            params,
            threads=(-(-_sizes(case)[4] // spread.tile) * GROUP, images),
            group_size=(GROUP, 1),
        )
    )
    steps.append(_bind(library, back.name, grad_input, sums, turning, **turn_grid))
    return Pass(tuple(steps), grad_input, grad_grid)
