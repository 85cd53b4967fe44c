"""Backward passes of whatever kernels a tree has: which launches its host function makes for a row of the table.

The divisions of the work that are known: the series' first changes (a thread has a position and walks the channels),
upstream's since April 2026 (the same, in 2D with a kernel for each gradient) with its sums in the tensors' dtype or,
after the series, in float, and the lanes of the series' fast backward, for the rows that its hook takes. Which ones a
tree has is told by its kernels. A pass runs on
CPU tensors through the host's kernels, and on CUDA or MPS tensors through a GPU's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from stackproof.engines.kernels import KernelFunction
from stackproof.engines.metal.struct_layout import StructLayout, StructTable
from stackproof.ops.grid_sampler.bench.rows import Row
from stackproof.ops.grid_sampler.families.lanes import has_lanes
from stackproof.ops.grid_sampler.families.model import BackwardFamily
from stackproof.ops.grid_sampler.families.parameters import parameter_values
from stackproof.ops.grid_sampler.families.series import SeriesBackward, backward_params, kernel_name
from stackproof.ops.grid_sampler.families.upstream import UpstreamBackward, backward_kernels, sums_in_float
from stackproof.ops.grid_sampler.fast.division import Division, choose
from stackproof.ops.grid_sampler.fast.launches import Planner, zeroes_apart
from stackproof.ops.grid_sampler.fast.passes import Case, Library, Pass, Step, bind, pass_of
from stackproof.ops.grid_sampler.modes import Sampler
from stackproof.ops.grid_sampler.tensors import SamplerTensors

_STRUCT, _UPSTREAM_STRUCT = "GridSamplerGradientParams", "GridSamplerBackwardParams"
# Threads of a threadgroup where the host function leaves the choice to PyTorch's dispatch.
_GROUP = 256


@dataclass(frozen=True)
class Kernels:
    """A tree's kernels, compiled for some device.

    Attributes:
        library: all of them.
        headers: text of the headers that declare their parameters.
    """

    library: Library
    headers: tuple[bytes, ...] = ()


@dataclass(frozen=True)
class Scheme:
    """How a host function divides the work.

    Attributes:
        name: for reports.
        has: whether the host function of a tree with these kernels divides a row's work so.
        prepare: the pass of a case; ``row`` is what the selection sees, the case may be smaller.
        ours: the series' own, whose traffic is recorded.
    """

    name: str
    has: Callable[[Library, Row], bool]
    prepare: Callable[[Kernels, Row, Case], Pass]
    ours: bool = True


def case_of(row: Row, device: str) -> Case:
    """A row's tensors on a device."""
    return Case(*row.tensors(device), row.interpolation)


def scheme_of(library: Library, row: Row) -> Scheme | None:
    """The division that a tree's host function uses for a row, or ``None`` if it has no backward that is known."""
    return next((scheme for scheme in SCHEMES if scheme.has(library, row)), None)


def _layout(kernels: Kernels, case: Case, name: str) -> StructLayout:
    return StructTable(*kernels.headers).layout(name, case.dimensions + 2, "int32_t")


def _group(threads: int) -> tuple[int]:
    return (min(threads, _GROUP),)


def _walking(kernels: Kernels, row: Row, case: Case) -> Pass:
    """The series' first changes: sums in float, rounded once."""
    dtype, device = case.input.dtype, case.input.device
    sums = torch.empty(case.input.shape, dtype=torch.float32, device=device)
    grad_grid = torch.full_like(case.grid, torch.nan)
    tensors = case.tensors
    params = _layout(kernels, case, _STRUCT).pack(backward_params(tensors, case.mode, sums, 0))
    name = kernel_name(row.op, case.mode, dtype, wide=False)
    buffers = (sums, grad_grid, case.grad_output, case.input, case.grid, params)
    threads = tensors.positions
    run = bind(kernels.library, name, *buffers, threads=(threads,), group_size=_group(threads))
    if dtype is torch.float32:
        return Pass((lambda: sums.zero_(), run), sums, grad_grid)
    grad_input = torch.empty(case.input.shape, dtype=dtype, device=device)
    return Pass((lambda: sums.zero_(), run, lambda: grad_input.copy_(sums)), grad_input, grad_grid)


def _upstream(kernels: Kernels, row: Row, case: Case) -> Pass:
    """Upstream's host function, and that of the series' change that keeps its kernels' names but sums in float."""
    dtype, is_2d = case.input.dtype, case.dimensions == 2
    in_float = _sums_in_float(kernels.library, row)
    tensors, steps = (case.tensors, []) if is_2d or in_float else _contiguous(case.tensors)
    launched = backward_kernels(Sampler(case.dimensions), case.mode, dtype, wide=False)
    summed = torch.float32 if in_float else dtype
    kept = torch.contiguous_format if is_2d else torch.preserve_format
    sums = torch.empty_like(tensors.input, dtype=summed, memory_format=kept)
    grad_grid = torch.full_like(tensors.grid, torch.nan)
    steps += [lambda: sums.zero_(), *([lambda: grad_grid.zero_()] if case.interpolation == "nearest" else [])]
    buffers = {"grad_output": tensors.grad_output, "input": tensors.input, "grid": tensors.grid}
    buffers |= {"output": tensors.grad_output, "grad_input": sums, "grad_grid": grad_grid}
    layout = _layout(kernels, case, _UPSTREAM_STRUCT)
    params = layout.pack(parameter_values(layout, case.mode, buffers))
    for one in launched:
        one.launch(_later(kernels.library, one.name, steps), buffers, params)
    if summed is dtype:
        return Pass(tuple(steps), sums, grad_grid)
    grad_input = torch.empty_like(sums, dtype=dtype)
    return Pass((*steps, lambda: grad_input.copy_(sums)), grad_input, grad_grid)


def _contiguous(tensors: SamplerTensors) -> tuple[SamplerTensors, list[Step]]:
    """What upstream's host function of 3D does first, as copies that a pass repeats."""
    steps: list[Step] = []

    def change(tensor: Tensor) -> Tensor:
        if tensor.is_contiguous():
            return tensor
        copy = torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)
        steps.append(lambda: copy.copy_(tensor))
        return copy.copy_(tensor)

    return tensors.each(change), steps


def _later(library: Library, name: str, steps: list[Step]) -> KernelFunction:
    """In place of a kernel: a call becomes a step, to be run any number of times."""

    def kernel(
        *args: Any, threads: int | Sequence[int] | None = None, group_size: int | Sequence[int] | None = None
    ) -> None:
        grid = (threads,) if isinstance(threads, int) else tuple(threads or ())
        group = _group(grid[0]) if group_size is None or isinstance(group_size, int) else tuple(group_size)
        steps.append(bind(library, name, *args, threads=grid, group_size=group))

    return kernel


def _takes_lanes(library: Library, row: Row) -> bool:
    return has_lanes(library.kernel_names, Sampler(row.dimensions)) and _division(row) is not None


def _division(row: Row) -> Division | None:
    meta = case_of(row, "meta")
    return choose(meta.tensors, meta.mode)


def _lanes(kernels: Kernels, row: Row, case: Case) -> Pass:
    """The selection looks at sizes, so it has to see those of the row and not those of a smaller stand-in."""
    division = _division(row)
    assert division is not None
    apart = zeroes_apart(case_of(row, "meta").tensors)
    planner = Planner(StructTable(*kernels.headers).layout, zeroes_apart=apart)
    return pass_of(kernels.library, planner.plan(case.tensors, case.mode, division))


def _has(family: BackwardFamily) -> Callable[[Library, Row], bool]:
    return lambda library, row: family.is_among(library.kernel_names, Sampler(row.dimensions))


_has_upstream = _has(UpstreamBackward())


def _sums_in_float(library: Library, row: Row) -> bool:
    return _has_upstream(library, row) and sums_in_float(_Named(library), Sampler(row.dimensions))


class _Named:
    """A library whose kernels are attributes, as the families of kernels take it."""

    def __init__(self, library: Library) -> None:
        self._library = library

    def __getattr__(self, name: str) -> Any:
        return self._library.kernel(name)

    def __dir__(self) -> list[str]:
        return self._library.kernel_names


SCHEMES = (
    Scheme("lanes share a position", _takes_lanes, _lanes),
    Scheme("a thread per position", _has(SeriesBackward()), _walking),
    Scheme("upstream's kernels, sums in float", _sums_in_float, _upstream),
    Scheme("upstream's kernels", _has_upstream, _upstream, ours=False),
)
