"""``grid_sample`` on the stand-in device: values of every mode, and the ways in which autograd reaches the backward.

Values are judged as in metal-run: against float64 from the same rounded inputs, in units of the dtype's epsilon.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar

import torch
from torch import Tensor

from stackproof.engines.standin.device import NAN_POISON, NUMBER_POISON, StandinDevice
from stackproof.engines.standin.tensors import layout_kept_on
from stackproof.ops import CaseResult
from stackproof.ops.grid_sampler.checks import ExpectedGradients, ExpectedSamples, dtype_name
from stackproof.ops.grid_sampler.families.model import is_wide
from stackproof.ops.grid_sampler.modes import SAMPLER_2D, SAMPLER_3D, Mode, Sampler
from stackproof.ops.grid_sampler.public import public_gradients, public_outputs, public_samples
from stackproof.ops.grid_sampler.scenarios import calls as sampler_calls
from stackproof.ops.grid_sampler.scenarios import refusals as sampler_refusals
from stackproof.ops.grid_sampler.scenarios.launches import launches
from stackproof.ops.grid_sampler.scenarios.registration import volumetric_registration
from stackproof.ops.grid_sampler.scenarios.training import spatial_transformer
from stackproof.ops.grid_sampler.table import DTYPES, SHAPES, Shape
from stackproof.ops.grid_sampler.tensors import EXPANDED_GRAD_OUTPUT, LAYOUTS, ODD_OFFSET, SamplerTensors
from stackproof.ops.grid_sampler.values import random_tensors
from stackproof.ops.scenarios import BAD_ARGUMENTS, DETERMINISTIC, HostCase, Scenario

_MATRIX = ("odd sizes", "two samples", "one row", "one pixel", "far outside", "empty batch", "no channels")
# On little, since every access of the kernels is watched; the second with channels enough to divide their work.
_WATCHED = {"two samples": ("sliced",), "17 channels": ("contiguous", "channels_last")}

# Where the last axis of grad_output has one element, its stride may be anything; channels enough to divide their work.
_COLUMN = Shape("one column", (2, 17, 5, 7), (6, 1), layouts=("sliced",))  # 2D alone

# One way of calling a sampler that has no mode, dtype or shape to vary.
Calls = Callable[[StandinDevice, Sampler], Iterator[HostCase]]


class _SamplerHostProof(ABC):
    """Implements :class:`stackproof.ops.scenarios.HostProof` for one direction of one sampler.

    Attributes:
        op: aten name.
    """

    unchanged_by: ClassVar[str] = ""
    calls: Mapping[str, Calls]

    def __init__(self, op: str, sampler: Sampler) -> None:
        self.op = op
        self.sampler = sampler

    def scenarios(self) -> Sequence[Scenario]:
        return [
            *(Scenario(self.op, "detectors", mode) for mode in self.sampler.modes),
            *(Scenario(self.op, "values", mode) for mode in self.sampler.modes),
            *(Scenario(self.op, kind) for kind in self.calls),
        ]

    def out_of_reach(self, kernel: str) -> str:
        """Small tensors do not need the kernels with 64-bit offsets; metal-run launches those all the same."""
        return "their offsets need more than 32 bits, and so large tensors are not made" if is_wide(kernel) else ""

    def run(self, scenario: Scenario, device: StandinDevice) -> Sequence[HostCase]:
        if scenario.kind == "values":
            return list(self._matrix(device, scenario, (*_MATRIX, _COLUMN.name)))
        if scenario.kind == "detectors":
            with device.detectors():
                return list(self._matrix(device, scenario, _WATCHED, _WATCHED))
        return list(self.calls[scenario.kind](device, self.sampler))

    def _matrix(
        self,
        device: StandinDevice,
        scenario: Scenario,
        names: Iterable[str],
        layouts: Mapping[str, Sequence[str]] = MappingProxyType({}),
    ) -> Iterator[HostCase]:
        """Every dtype, shape and layout of one mode, through the public interface; each shape is a part."""
        mode: Mode = scenario.key
        for shape in _shapes(self.sampler, [name for name in names if name not in scenario.without]):
            device.begin(shape.name)
            for dtype in DTYPES.values():
                for layout in layouts.get(shape.name, shape.layouts):
                    if layout != self.unchanged_by and (dtype is not torch.float32 or layout != ODD_OFFSET):
                        yield self._case(LAYOUTS[layout](random_tensors(shape, dtype, mode)), mode, shape, layout)

    def _case(self, tensors: SamplerTensors, mode: Mode, shape: Shape, layout: str) -> HostCase:
        """One call; that it raises is its own problem, and not the end of the others."""
        name = f"{mode}, {dtype_name(tensors.input.dtype)}, {shape.name}, {layout}"
        try:
            result = self.judged(tensors, mode, shape.name)
        except Exception as error:
            return HostCase(name, None, (f"{type(error).__name__}: {str(error).partition(chr(10))[0]}",))
        return HostCase(name, max(result.errors.values(), default=None), result.problems)

    @abstractmethod
    def judged(self, tensors: SamplerTensors, mode: Mode, case: str) -> CaseResult:
        """Call the public function with the same tensors on the device, and compare."""


class BackwardHostProof(_SamplerHostProof):
    """The gradients of ``grid_sample``."""

    def __init__(self, sampler: Sampler) -> None:
        super().__init__(sampler.backward, sampler)
        self.calls = {**_BACKWARD_CALLS, "training": _TRAINING[sampler.dims]}

    def judged(self, tensors: SamplerTensors, mode: Mode, case: str) -> CaseResult:
        """Both gradients."""
        outputs = public_outputs(tensors.each(layout_kept_on("mps")), mode)
        return ExpectedGradients.of(tensors, mode).judge(outputs, case)


class ForwardHostProof(_SamplerHostProof):
    """The output of ``grid_sample``."""

    unchanged_by = EXPANDED_GRAD_OUTPUT

    def __init__(self, sampler: Sampler) -> None:
        super().__init__(sampler.forward, sampler)
        self.calls = {BAD_ARGUMENTS: sampler_refusals.forward_refusals, "dirty allocator": _dirty_samples}

    def judged(self, tensors: SamplerTensors, mode: Mode, case: str) -> CaseResult:
        """The samples."""
        move = layout_kept_on("mps")
        output = public_samples(move(tensors.input), move(tensors.grid), mode)
        return ExpectedSamples.of(tensors, mode).judge(output.cpu(), case)


def _shapes(sampler: Sampler, names: Sequence[str]) -> list[Shape]:
    return [shape for shape in (*SHAPES[sampler.dims], *[_COLUMN] * (sampler.dims == 2)) if shape.name in names]


def _dirty_gradients(device: StandinDevice, sampler: Sampler) -> Iterator[HostCase]:
    """The gradients do not depend on what memory held before, nor on the calls before."""
    yield from _dirty_allocator(device, sampler, public_gradients)


def _dirty_samples(device: StandinDevice, sampler: Sampler) -> Iterator[HostCase]:
    """The output does not depend on what memory held before, nor on the calls before."""
    yield from _dirty_allocator(
        device, sampler, lambda tensors, mode: [public_samples(tensors.input, tensors.grid, mode)]
    )


def _dirty_allocator(
    device: StandinDevice, sampler: Sampler, call: Callable[[SamplerTensors, Mode], Sequence[Tensor]]
) -> Iterator[HostCase]:
    (shape,) = _shapes(sampler, ["many samples per pixel"])
    for mode in sampler.modes:
        tensors = random_tensors(shape, torch.float32, mode).each(layout_kept_on("mps"))
        seen = []
        for poison in (NAN_POISON, NUMBER_POISON, 0, NAN_POISON):
            device.poison_with(poison)
            seen.append([result.cpu() for result in call(tensors, mode)])
        device.poison_with(NAN_POISON)
        same = all(torch.equal(one, other) for later in seen[1:] for one, other in zip(seen[0], later, strict=True))
        yield HostCase(str(mode), None, () if same else ("the results depend on what fresh memory holds",))


def _one_gradient(device: StandinDevice, sampler: Sampler) -> Iterator[HostCase]:
    """A gradient that is asked for alone is the same as together with the other."""
    mode = sampler.modes[0]
    tensors = random_tensors(SHAPES[sampler.dims][0], torch.float32, mode).each(layout_kept_on("mps"))
    both = public_gradients(tensors, mode)
    for number, name in enumerate(("input", "grid")):
        leaves = (tensors.input.detach(), tensors.grid.detach())
        leaves[number].requires_grad_()
        output = public_samples(*leaves, mode)
        (grad,) = torch.autograd.grad(output, leaves[number], tensors.grad_output)
        same = torch.equal(grad.cpu(), both[number].cpu())
        yield HostCase(f"only {name} requires grad", None, () if same else (f"the gradient of {name} alone differs",))


_BACKWARD_CALLS: dict[str, Calls] = {
    BAD_ARGUMENTS: sampler_refusals.backward_refusals,
    "finite differences": sampler_calls.finite_differences,
    "vmap over grad_output": sampler_calls.vmap_over_grad_output,
    "autocast": sampler_calls.autocast,
    DETERMINISTIC: sampler_calls.deterministic_algorithms,
    "dirty allocator": _dirty_gradients,
    "only one gradient": _one_gradient,
    "launches": launches,
}
# What each sampler's gradients are used for.
_TRAINING: dict[int, Calls] = {2: spatial_transformer, 3: volumetric_registration}


def backward_2d() -> BackwardHostProof:
    """``grid_sampler_2d_backward``."""
    return BackwardHostProof(SAMPLER_2D)


def backward_3d() -> BackwardHostProof:
    """``grid_sampler_3d_backward``."""
    return BackwardHostProof(SAMPLER_3D)


def forward_2d() -> ForwardHostProof:
    """``grid_sampler_2d``."""
    return ForwardHostProof(SAMPLER_2D)


def forward_3d() -> ForwardHostProof:
    """``grid_sampler_3d``."""
    return ForwardHostProof(SAMPLER_3D)
