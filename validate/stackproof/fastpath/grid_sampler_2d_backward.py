"""``grid_sampler_2d_backward`` in Python over the stack's kernels, and ``grid_sample`` with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor
from torch.nn.functional import grid_sample

from stackproof.fastpath.device import Device
from stackproof.fastpath.register import OpFunction
from stackproof.ops import CaseResult, Kernels
from stackproof.ops.grid_sampler_2d_backward.checks import Expected
from stackproof.ops.grid_sampler_2d_backward.host import HostFunction, Outputs
from stackproof.ops.grid_sampler_2d_backward.modes import ALL_MODES, Interpolation, Mode, Padding
from stackproof.ops.grid_sampler_2d_backward.table import DTYPES, Shape
from stackproof.ops.grid_sampler_2d_backward.values import random_tensors
from stackproof.ops.layouts import SamplerTensors

_OP = "grid_sampler_2d_backward"
_SHAPE = Shape("through autograd", (2, 3, 5, 7), (4, 6))


class GridSampler2dBackward:
    """Implements :class:`stackproof.fastpath.register.FastPathOp`."""

    def function(self, kernels: Kernels) -> OpFunction:
        """The op with its schema's arguments; launches are those of the proof's host function."""
        host = HostFunction(kernels)

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
                outputs = host.backward(SamplerTensors(grad_output, input, grid), mode, mask=mask)
            return outputs.grad_input, outputs.grad_grid

        return backward

    def through_autograd(self, device: Device) -> Iterator[CaseResult]:
        """Every mode in every dtype through ``torch.nn.functional.grid_sample``."""
        for mode in ALL_MODES:
            for dtype in DTYPES.values():
                tensors = random_tensors(_SHAPE, dtype, mode)
                yield Expected.of(tensors, mode).judge(_gradients(tensors, mode, device), _SHAPE.name)


def _gradients(tensors: SamplerTensors, mode: Mode, device: Device) -> Outputs:
    leaves = tuple(tensor.to(device.name, copy=True).requires_grad_() for tensor in (tensors.input, tensors.grid))
    with device.dispatching(_OP):
        sampled = grid_sample(
            leaves[0],
            leaves[1],
            mode=mode.interpolation.name.lower(),
            padding_mode=mode.padding.name.lower(),
            align_corners=mode.align_corners,
        )
        grad_input, grad_grid = torch.autograd.grad(sampled, leaves, tensors.grad_output.to(device.name))
    return Outputs(grad_input.cpu(), grad_grid.cpu())
