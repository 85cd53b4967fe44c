"""What must come out: float64 values from the same rounded inputs, with the unit that errors are measured in.

PyTorch's float64 CPU kernel gives the values wherever it is defined; the oracle gives the units, and the values for
coordinates that the CPU kernel must not be asked about. Where both speak they have to agree, or nothing is proved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from stackproof.ops.grid_sampler.modes import Mode, Sampler
from stackproof.ops.grid_sampler.oracle import Gradients, Samples, gradients, samples
from stackproof.ops.grid_sampler.tensors import SamplerTensors

# Two float64 computations of the same thing, in float64 epsilons of the terms.
_AGREEMENT = 64 * torch.finfo(torch.float64).eps

# The CPU kernel converts pixel coordinates to integers unchecked; well within that, whatever the size.
_CPU_DEFINED = 1e6


def is_defined_on_cpu(tensors: SamplerTensors) -> bool:
    """Whether PyTorch's CPU kernel may be asked: it reads outside its tensors on coordinates that are not plain."""
    return bool((tensors.grid.double().abs() <= _CPU_DEFINED).all())


def cpu_samples(tensors: SamplerTensors, mode: Mode, dtype: torch.dtype) -> Tensor:
    """The output of PyTorch's own CPU kernel, computed in ``dtype``.

    Raises:
        ValueError: a grid value that the CPU kernel is not defined for (it reads outside its tensors).
    """
    cast = _for_cpu(tensors, dtype)
    return _aten(Sampler(cast.dims).forward)(cast.input, cast.grid, *mode_arguments(mode))


def cpu_gradients(tensors: SamplerTensors, mode: Mode, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """``grad_input`` and ``grad_grid`` of PyTorch's own CPU kernel, computed in ``dtype``.

    Raises:
        ValueError: a grid value that the CPU kernel is not defined for (it reads outside its tensors).
    """
    cast = _for_cpu(tensors, dtype)
    call = _aten(Sampler(cast.dims).backward)
    grad_input, grad_grid = call(cast.grad_output, cast.input, cast.grid, *mode_arguments(mode), [True, True])
    return grad_input, grad_grid


def mode_arguments(mode: Mode) -> tuple[int, int, bool]:
    """The ops' arguments that say how to sample."""
    return int(mode.interpolation), int(mode.padding), mode.align_corners


def _for_cpu(tensors: SamplerTensors, dtype: torch.dtype) -> SamplerTensors:
    if not is_defined_on_cpu(tensors):
        raise ValueError("the CPU kernel is not defined for non-finite or huge coordinates")
    return tensors.each(lambda tensor: tensor.to(dtype))


def _aten(op: str) -> Callable[..., Tensor]:
    call: Callable[..., Tensor] = getattr(torch.ops.aten, op)
    return call


def expected_samples(tensors: SamplerTensors, mode: Mode) -> Samples:
    """The right output, checked against two independent computations where there are two.

    Raises:
        AssertionError: PyTorch's float64 kernel and the oracle disagree.
    """
    own = samples(tensors, mode)
    if not is_defined_on_cpu(tensors):
        return own
    output = cpu_samples(tensors, mode, torch.float64)
    _must_agree("output", mode, own.output, output, own.output_terms)
    return replace(own, output=output)


def expected_gradients(tensors: SamplerTensors, mode: Mode) -> Gradients:
    """The right gradients, checked against two independent computations where there are two.

    Raises:
        AssertionError: PyTorch's float64 kernel and the oracle disagree.
    """
    own = gradients(tensors, mode)
    if not is_defined_on_cpu(tensors):
        return own
    grad_input, grad_grid = cpu_gradients(tensors, mode, torch.float64)
    _must_agree("grad_input", mode, own.grad_input, grad_input, own.grad_input_terms)
    _must_agree("grad_grid", mode, own.grad_grid, grad_grid, own.grad_grid_terms)
    return replace(own, grad_input=grad_input, grad_grid=grad_grid)


def _must_agree(name: str, mode: Mode, ours: Tensor, theirs: Tensor, terms: Tensor) -> None:
    if not ((ours - theirs).abs() <= _AGREEMENT * terms).all():
        raise AssertionError(f"{mode}: the float64 references disagree about {name}")
