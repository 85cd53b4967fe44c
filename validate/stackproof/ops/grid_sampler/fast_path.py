"""The grid samplers in Python over the stack's kernels, and ``grid_sample`` with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from stackproof.engines.gpu.device import Device
from stackproof.engines.kernels import Kernels
from stackproof.ops import CaseResult
from stackproof.ops.fast_path import OpFunction
from stackproof.ops.grid_sampler.checks import ExpectedGradients, ExpectedSamples
from stackproof.ops.grid_sampler.host import HostBackward, HostForward
from stackproof.ops.grid_sampler.modes import SAMPLER_2D, SAMPLER_3D, Interpolation, Mode, Padding, Sampler
from stackproof.ops.grid_sampler.public import public_outputs, public_samples
from stackproof.ops.grid_sampler.table import DTYPES, Shape
from stackproof.ops.grid_sampler.tensors import SamplerTensors
from stackproof.ops.grid_sampler.values import random_tensors

_SHAPES = {
    2: Shape("through autograd", (2, 3, 5, 7), (4, 6)),
    3: Shape("through autograd", (2, 3, 4, 5, 7), (3, 4, 2)),
}


class _Sampling:
    """What both directions need to know.

    Attributes:
        sampler: the number of dimensions.
    """

    def __init__(self, sampler: Sampler) -> None:
        self.sampler = sampler

    def cases(self) -> Iterator[tuple[SamplerTensors, Mode]]:
        """Every mode in every dtype."""
        for mode in self.sampler.modes:
            for dtype in DTYPES.values():
                yield random_tensors(_SHAPES[self.sampler.dims], dtype, mode), mode


class SamplerBackward(_Sampling):
    """Implements :class:`stackproof.ops.fast_path.FastPathOp`."""

    def function(self, kernels: Kernels) -> OpFunction:
        """The op with its schema's arguments; launches are those of the proof's host function."""
        host = HostBackward(kernels)

        def backward(
            grad_output: Tensor,
            input: Tensor,  # noqa: A002  (the schema's name)
            grid: Tensor,
            interpolation_mode: int,
            padding_mode: int,
            align_corners: bool,
            output_mask: Sequence[bool],
        ) -> tuple[Tensor | None, Tensor]:
            mode = Mode(Interpolation(interpolation_mode), Padding(padding_mode), align_corners)
            mask = (bool(output_mask[0]), bool(output_mask[1]))
            with torch.device(grid.device):  # outputs are made where the inputs are
                outputs = host.run(SamplerTensors(grad_output, input, grid), mode, mask=mask)
            return outputs.grad_input, outputs.grad_grid

        return backward

    def through_autograd(self, device: Device) -> Iterator[CaseResult]:
        """The gradients of ``torch.nn.functional.grid_sample``."""
        for tensors, mode in self.cases():
            with device.dispatching(self.sampler.backward):
                outputs = public_outputs(_there(tensors, device), mode)
            yield ExpectedGradients.of(tensors, mode).judge(outputs, "through autograd")


class SamplerForward(_Sampling):
    """Implements :class:`stackproof.ops.fast_path.FastPathOp`."""

    def function(self, kernels: Kernels) -> OpFunction:
        """The op with its schema's arguments; launches are those of the proof's host function."""
        host = HostForward(kernels)

        def forward(
            input: Tensor,  # noqa: A002  (the schema's name)
            grid: Tensor,
            interpolation_mode: int,
            padding_mode: int,
            align_corners: bool,
        ) -> Tensor:
            mode = Mode(Interpolation(interpolation_mode), Padding(padding_mode), align_corners)
            with torch.device(grid.device):
                shape = SamplerTensors(input.new_empty(*input.shape[:2], *grid.shape[1:-1]), input, grid)
                return host.run(shape, mode)

        return forward

    def through_autograd(self, device: Device) -> Iterator[CaseResult]:
        """The output of ``torch.nn.functional.grid_sample``, while autograd records it."""
        for tensors, mode in self.cases():
            with device.dispatching(self.sampler.forward):
                there = _there(tensors, device)
                sampled = public_samples(there.input.requires_grad_(), there.grid, mode)
            yield ExpectedSamples.of(tensors, mode).judge(sampled.detach().cpu(), "through autograd")


def _there(tensors: SamplerTensors, device: Device) -> SamplerTensors:
    return tensors.each(lambda tensor: tensor.to(device.name, copy=True))


def backward_2d() -> SamplerBackward:
    """``grid_sampler_2d_backward``."""
    return SamplerBackward(SAMPLER_2D)


def backward_3d() -> SamplerBackward:
    """``grid_sampler_3d_backward``."""
    return SamplerBackward(SAMPLER_3D)


def forward_2d() -> SamplerForward:
    """``grid_sampler_2d``."""
    return SamplerForward(SAMPLER_2D)


def forward_3d() -> SamplerForward:
    """``grid_sampler_3d``."""
    return SamplerForward(SAMPLER_3D)
