"""The samplers as users call them: through ``torch.nn.functional.grid_sample`` and autograd."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import grid_sample

from stackproof.ops.grid_sampler.families.model import Outputs
from stackproof.ops.grid_sampler.modes import Mode
from stackproof.ops.grid_sampler.tensors import SamplerTensors


def public_samples(values: Tensor, grid: Tensor, mode: Mode) -> Tensor:
    """The output, (N, C, *O), on the device of the tensors."""
    interpolation, padding = mode.interpolation.name.lower(), mode.padding.name.lower()
    return grid_sample(values, grid, mode=interpolation, padding_mode=padding, align_corners=mode.align_corners)


def public_gradients(tensors: SamplerTensors, mode: Mode) -> tuple[Tensor, Tensor]:
    """Both gradients, on the device of the tensors."""
    values, grid = (tensor.detach().requires_grad_() for tensor in (tensors.input, tensors.grid))
    output = public_samples(values, grid, mode)
    grad_input, grad_grid = torch.autograd.grad(output, (values, grid), tensors.grad_output)
    return grad_input, grad_grid


def public_outputs(tensors: SamplerTensors, mode: Mode) -> Outputs:
    """Both gradients, brought to the CPU."""
    grad_input, grad_grid = public_gradients(tensors, mode)
    return Outputs(grad_input.cpu(), grad_grid.cpu())
