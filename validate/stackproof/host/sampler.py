"""``grid_sample`` on the stand-in device: values of every mode, and the ways in which autograd reaches the backward.

Values are judged as in metal-run: against float64 from the same rounded inputs, in units of the dtype's epsilon.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from stackproof.host import sampler_calls, sampler_training
from stackproof.host.device import NAN_POISON, NUMBER_POISON, StandinDevice
from stackproof.host.scenarios import HostCase, Scenario
from stackproof.host.tensors import layout_kept_on
from stackproof.ops.grid_sampler_2d_backward.checks import Expected, dtype_name
from stackproof.ops.grid_sampler_2d_backward.host import Outputs
from stackproof.ops.grid_sampler_2d_backward.modes import ALL_MODES, Mode
from stackproof.ops.grid_sampler_2d_backward.table import DTYPES, SHAPES, Shape
from stackproof.ops.grid_sampler_2d_backward.values import random_tensors
from stackproof.ops.layouts import LAYOUTS, SamplerTensors

OP = "grid_sampler_2d_backward"
_MATRIX_SHAPES = ("odd sizes", "two samples", "one row", "one pixel", "far outside", "empty batch", "no channels")
_WATCHED_SHAPE = "two samples"


class SamplerHostProof:
    """Implements :class:`stackproof.host.scenarios.HostProof`."""

    op = OP

    def scenarios(self) -> Sequence[Scenario]:
        return [
            *(Scenario(OP, "detectors", mode) for mode in ALL_MODES),
            *(Scenario(OP, "values", mode) for mode in ALL_MODES),
            *(Scenario(OP, kind) for kind in _OTHERS),
        ]

    def run(self, scenario: Scenario, device: StandinDevice) -> Sequence[HostCase]:
        if scenario.kind == "values":
            return list(_values(device, scenario.key))
        if scenario.kind == "detectors":
            with device.detectors():
                return list(_watched(device, scenario.key))
        return list(_OTHERS[scenario.kind](device))


def public_gradients(tensors: SamplerTensors, mode: Mode) -> tuple[Tensor, Tensor, Tensor]:
    """Output and both gradients through ``torch.nn.functional.grid_sample``, on the device of the tensors."""
    leaves = [tensor.detach().requires_grad_() for tensor in (tensors.input, tensors.grid)]
    output = _forward(leaves, mode)
    grad_input, grad_grid = torch.autograd.grad(output, leaves, tensors.grad_output)
    return output.detach(), grad_input, grad_grid


def _forward(leaves: Sequence[Tensor], mode: Mode) -> Tensor:
    return functional.grid_sample(
        leaves[0],
        leaves[1],
        mode=mode.interpolation.name.lower(),
        padding_mode=mode.padding.name.lower(),
        align_corners=mode.align_corners,
    )


def _shapes(names: Sequence[str]) -> list[Shape]:
    return [shape for shape in SHAPES if shape.name in names]


def _values(device: StandinDevice, mode: Mode) -> Iterator[HostCase]:
    """Every dtype, shape and layout of one mode, through the public interface."""
    for dtype in DTYPES.values():
        for shape in _shapes(_MATRIX_SHAPES):
            layouts = [name for name in shape.layouts if dtype is not torch.float32 or name != "odd offset"]
            for layout in layouts:
                yield _value_case(mode, shape, dtype, layout)


def _watched(device: StandinDevice, mode: Mode) -> Iterator[HostCase]:
    """The same on little, with every access of the kernels watched."""
    for dtype in DTYPES.values():
        for shape in _shapes([_WATCHED_SHAPE]):
            yield _value_case(mode, shape, dtype, "sliced")


def _value_case(mode: Mode, shape: Shape, dtype: torch.dtype, layout: str) -> HostCase:
    tensors = LAYOUTS[layout](random_tensors(shape, dtype, mode))
    expected = Expected.of(tensors, mode)
    _output, grad_input, grad_grid = public_gradients(tensors.each(layout_kept_on("mps")), mode)
    result = expected.judge(Outputs(grad_input.cpu(), grad_grid.cpu()), shape.name)
    name = f"{mode}, {dtype_name(dtype)}, {shape.name}, {layout}"
    return HostCase(name, max(result.errors.values(), default=None), result.problems)


def _dirty_allocator(device: StandinDevice) -> Iterator[HostCase]:
    """The result does not depend on what memory held before, nor on the calls before."""
    shape = _shapes(["many samples per pixel"])[0]
    for mode in ALL_MODES:
        tensors = random_tensors(shape, torch.float32, mode).each(layout_kept_on("mps"))
        seen = []
        for poison in (NAN_POISON, NUMBER_POISON, 0, NAN_POISON):
            device.poison_with(poison)
            seen.append([grad.cpu() for grad in public_gradients(tensors, mode)[1:]])
        device.poison_with(NAN_POISON)
        same = all(torch.equal(one, other) for later in seen[1:] for one, other in zip(seen[0], later, strict=True))
        yield HostCase(str(mode), None, () if same else ("the gradients depend on what fresh memory holds",))


def _one_gradient(device: StandinDevice) -> Iterator[HostCase]:
    """A gradient that is asked for alone is the same as together with the other."""
    mode = ALL_MODES[0]
    tensors = random_tensors(SHAPES[0], torch.float32, mode).each(layout_kept_on("mps"))
    _output, *both = public_gradients(tensors, mode)
    for number, name in enumerate(("input", "grid")):
        leaves = [tensors.input.detach(), tensors.grid.detach()]
        leaves[number].requires_grad_()
        (grad,) = torch.autograd.grad(_forward(leaves, mode), leaves[number], tensors.grad_output)
        same = torch.equal(grad.cpu(), both[number].cpu())
        yield HostCase(f"only {name} requires grad", None, () if same else (f"the gradient of {name} alone differs",))


_OTHERS: dict[str, Callable[[StandinDevice], Iterator[HostCase]]] = {
    "bad arguments": sampler_calls.bad_arguments,
    "finite differences": sampler_calls.finite_differences,
    "vmap over grad_output": sampler_calls.vmap_over_grad_output,
    "autocast": sampler_calls.autocast,
    "deterministic algorithms": sampler_calls.deterministic_algorithms,
    "dirty allocator": _dirty_allocator,
    "only one gradient": _one_gradient,
    "training": sampler_training.spatial_transformer,
}
