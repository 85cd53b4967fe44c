"""The stack's backward kernels beside upstream's own, on the same inputs under the same counters.

Upstream's are those of the release, as Apple compiled them: in 2D a kernel for each gradient, in 3D one for both.
Errors are against float64; loads, stores and atomics of the tensors are counted by the detectors' own hooks in both.
The stack accumulates 16-bit gradients in float and converts once, which is left out of its counts. All launches of a
call count.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from stackproof.engines.apple.container import Metallib
from stackproof.engines.kernels import Kernels
from stackproof.engines.metal import MetalLibrary
from stackproof.engines.metal.counting import CountingLibrary
from stackproof.engines.metal.struct_layout import StructLayout
from stackproof.ops.grid_sampler.apple.sampler import judge, random_inputs, reference, run_sampler
from stackproof.ops.grid_sampler.families.upstream import DTYPES, SamplerKernel
from stackproof.ops.grid_sampler.host import HostBackward
from stackproof.ops.grid_sampler.modes import Interpolation, Mode, Sampler
from stackproof.ops.grid_sampler.tensors import SamplerTensors

RANDOM, EDGES, COLLISIONS = "random", "on pixels and edges", "many samples per pixel"
KINDS = (RANDOM, EDGES, COLLISIONS)
_COUNTED = ("loads", "stores", "atomics")
_LATTICE = 8  # steps of a grid coordinate from one edge to the middle, all exact in every dtype
_MANY = 600
_EXPLAINED = 8.0  # epsilons that either side may lose by rounding


@dataclass(frozen=True)
class Measured:
    """What one side showed over some cases.

    Attributes:
        errors: by output, the largest, in epsilons of the dtype.
        traffic: sums of loads, stores and atomics.
        reports: of the detectors.
    """

    errors: Mapping[str, float] = field(default_factory=dict)
    traffic: Mapping[str, int] = field(default_factory=dict)
    reports: tuple[str, ...] = ()


@dataclass(frozen=True)
class PeerRow:
    """A row of the table: all modes of one interpolation.

    Attributes:
        dims: 2 or 3.
        interpolation: its name.
        dtype: Metal name.
        inputs: one of :data:`KINDS`.
        ours: the stack's kernels.
        upstream: the release's.
    """

    dims: int
    interpolation: str
    dtype: str
    inputs: str
    ours: Measured
    upstream: Measured

    @property
    def label(self) -> str:
        """What is compared, in words."""
        return f"{self.dims}D {self.interpolation} {self.dtype}, {self.inputs}"

    def problems(self) -> list[str]:
        """In what the stack's kernels are worse than upstream's, beyond what rounding explains; detectors' reports."""
        found = list(self.ours.reports)
        for name, error in self.ours.errors.items():
            if not error <= max(_EXPLAINED, 2 * self.upstream.errors[name]):
                found.append(f"{name} is {error:g} epsilons off, upstream's {self.upstream.errors[name]:g}")
        return found


def upstream_kernels(library: Metallib, dims: int, dtype: str) -> tuple[SamplerKernel, ...]:
    """The release's backward kernels with 32-bit offsets."""
    known = (SamplerKernel.of(entry.name) for entry in library.entries)
    return tuple(
        one for one in known
        if one and one.backward and one.axes == dims and one.name.endswith(f"_i32_{dtype}")
    )  # fmt: skip


def inputs_of(kind: str, dims: int, dtype: torch.dtype, mode: Mode) -> SamplerTensors:
    """Inputs that depend on the arguments only."""
    if kind == RANDOM:
        return random_inputs(dims, dtype, mode, f"peer {dims} {mode}")
    source = torch.Generator().manual_seed(dims)
    size = 5 if mode.align_corners else 4
    if kind == EDGES:
        line = torch.arange(-_LATTICE - 2, _LATTICE + 3) / _LATTICE
        points = torch.cartesian_prod(*[line] * dims).reshape(1, *[len(line)] * dims, dims)
    else:
        points = torch.full((1, *[1] * (dims - 1), _MANY, dims), 0.3125)
    tensors = SamplerTensors(
        torch.ones(1, 2, *points.shape[1:-1]) if kind == COLLISIONS
        else torch.randn(1, 2, *points.shape[1:-1], generator=source),
        torch.randn(1, 2, *[size] * dims, generator=source),
        points,
    )  # fmt: skip
    return tensors.each(lambda tensor: tensor.to(dtype))


def compare_backward(
    ours: Kernels,
    own_library: MetalLibrary,
    upstream: MetalLibrary,
    kernels: Sequence[SamplerKernel],
    layouts: Mapping[str, StructLayout],
) -> Iterator[PeerRow]:
    """Rows for the dimensions and dtype of ``kernels``.

    Args:
        ours: the stack's kernels, compiled for counting.
        own_library: the library behind them.
        upstream: the release's, likewise.
        kernels: of upstream's, all of one dtype and one number of dimensions.
        layouts: of the parameters of each.
    """
    dims, dtype = kernels[0].axes, kernels[0].dtype
    name = next(metal for metal, known in DTYPES.items() if known is dtype)
    for interpolation, kind in itertools.product(Sampler(dims).interpolations, KINDS):
        sides: tuple[list[_Case], list[_Case]] = ([], [])
        for mode in Sampler(dims).modes:
            if mode.interpolation is not interpolation:
                continue
            inputs = inputs_of(kind, dims, dtype, mode)
            sides[0].append(_run_ours(ours, own_library, mode, inputs))
            sides[1].append(_run_upstream(upstream, kernels, layouts, mode, inputs))
        yield PeerRow(dims, interpolation.name.lower(), name, kind, *(_summary(side) for side in sides))


@dataclass(frozen=True)
class _Case:
    errors: Mapping[str, float]
    traffic: Mapping[str, int]
    reports: tuple[str, ...]


def _run_ours(kernels: Kernels, library: MetalLibrary, mode: Mode, inputs: SamplerTensors) -> _Case:
    library.clear_reports()
    counting = CountingLibrary(library)
    outputs = HostBackward(replace(kernels, library=counting)).run(inputs, mode, mask=(True, True))
    assert outputs.grad_input is not None
    found = {"grad_input": outputs.grad_input, "grad_grid": outputs.grad_grid}
    return _Case(_errors(found, mode, inputs), counting.traffic, tuple(map(str, library.reports())))


def _run_upstream(
    library: MetalLibrary,
    kernels: Sequence[SamplerKernel],
    layouts: Mapping[str, StructLayout],
    mode: Mode,
    inputs: SamplerTensors,
) -> _Case:
    library.clear_reports()
    found: dict[str, Tensor] = {}
    traffic: Counter[str] = Counter()
    for kernel in kernels:
        if mode in kernel.modes():
            found |= run_sampler(library, kernel, layouts[kernel.name], mode, inputs)
            traffic.update(library.traffic)
    if mode.interpolation is Interpolation.NEAREST:
        found.setdefault("grad_grid", torch.zeros_like(inputs.grid))
    return _Case(_errors(found, mode, inputs), traffic, tuple(map(str, library.reports())))


def _errors(found: Mapping[str, Tensor], mode: Mode, inputs: SamplerTensors) -> Mapping[str, float]:
    return judge("", mode, found, reference(mode, inputs, backward=True), {}).epsilons


def _summary(cases: Sequence[_Case]) -> Measured:
    errors: dict[str, float] = {}
    traffic: Counter[str] = Counter()
    for case in cases:
        traffic.update({name: case.traffic.get(name, 0) for name in _COUNTED})
        for name, error in case.errors.items():
            errors[name] = max(errors.get(name, 0.0), error)
    return Measured(errors, dict(traffic), tuple(dict.fromkeys(text for case in cases for text in case.reports)))


def peer_table(rows: Sequence[PeerRow]) -> list[str]:
    """Lines of a Markdown table: errors and counts, ours / upstream's."""
    lines = [
        "| op | inputs | error of grad_input | of grad_grid | loads | stores | atomics |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        pair = (row.ours, row.upstream)
        errors = [" / ".join(f"{one.errors[name]:.2g}" for one in pair) for name in ("grad_input", "grad_grid")]
        counts = [" / ".join(str(one.traffic[name]) for one in pair) for name in _COUNTED]
        op, _, inputs = row.label.partition(", ")
        lines.append(f"| {' | '.join([op, inputs, *errors, *counts])} |")
    return lines
