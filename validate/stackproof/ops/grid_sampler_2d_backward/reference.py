"""What must come out: float64 gradients of the same rounded inputs, with the unit that errors are measured in.

PyTorch's float64 CPU kernel gives the values wherever it is defined; the oracle gives the units, and the values for
coordinates that the CPU kernel must not be asked about. Where both speak they have to agree, or nothing is proved.
"""

from __future__ import annotations

import torch
from torch import Tensor

from stackproof.ops.grid_sampler_2d_backward.modes import Mode
from stackproof.ops.grid_sampler_2d_backward.oracle import Gradients, gradients
from stackproof.ops.layouts import SamplerTensors

# Two float64 computations of the same thing, in float64 epsilons of the terms.
_AGREEMENT = 64 * torch.finfo(torch.float64).eps

# The CPU kernel converts pixel coordinates to integers unchecked; well within that, whatever the size.
_CPU_DEFINED = 1e6


def is_defined_on_cpu(tensors: SamplerTensors) -> bool:
    """Whether PyTorch's CPU kernel may be asked: it reads outside its tensors on coordinates that are not plain."""
    return bool((tensors.grid.double().abs() <= _CPU_DEFINED).all())


def cpu_gradients(tensors: SamplerTensors, mode: Mode, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """``grad_input`` and ``grad_grid`` of PyTorch's own CPU kernel, computed in ``dtype``.

    Raises:
        ValueError: a grid value that the CPU kernel is not defined for (it reads outside its tensors).
    """
    if not is_defined_on_cpu(tensors):
        raise ValueError("the CPU kernel is not defined for non-finite or huge coordinates")
    cast = tensors.each(lambda tensor: tensor.to(dtype))
    grad_input, grad_grid = torch.ops.aten.grid_sampler_2d_backward(
        cast.grad_output,
        cast.input,
        cast.grid,
        int(mode.interpolation),
        int(mode.padding),
        mode.align_corners,
        [True, True],
    )
    return grad_input, grad_grid


def expected_gradients(tensors: SamplerTensors, mode: Mode) -> Gradients:
    """The right gradients, checked against two independent computations where there are two.

    Raises:
        AssertionError: PyTorch's float64 kernel and the oracle disagree.
    """
    own = gradients(tensors.grad_output, tensors.input, tensors.grid, mode)
    if not is_defined_on_cpu(tensors):
        return own
    grad_input, grad_grid = cpu_gradients(tensors, mode, torch.float64)
    for name, ours, theirs, terms in (
        ("grad_input", own.grad_input, grad_input, own.grad_input_terms),
        ("grad_grid", own.grad_grid, grad_grid, own.grad_grid_terms),
    ):
        if not ((ours - theirs).abs() <= _AGREEMENT * terms).all():
            raise AssertionError(f"{mode}: the float64 references disagree about {name}")
    return Gradients(grad_input, grad_grid, own.grad_input_terms, own.grad_grid_terms)
