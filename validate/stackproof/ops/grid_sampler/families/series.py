"""The kernels of the series for trees from before April 2026: one thread per position, one kernel for both gradients.

The layout of the parameters is not repeated here, it is read from the header; which fields there are is, since the host
function of the overlay fills exactly these.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

import torch
from torch import Tensor

from stackproof.engines.kernels import KernelFunction, Kernels
from stackproof.engines.metal.struct_layout import StructLayout, Value
from stackproof.ops.grid_sampler.families.model import (
    METAL_NAMES,
    BackwardCall,
    ForwardCall,
    Outputs,
    params_layout,
)
from stackproof.ops.grid_sampler.modes import Interpolation, Mode, Padding, Sampler
from stackproof.ops.grid_sampler.tensors import SamplerTensors

_SOME_MODE = Mode(Interpolation.BILINEAR, Padding.ZEROS, align_corners=False)


def kernel_name(op: str, mode: Mode, dtype: torch.dtype, *, wide: bool) -> str:
    """The kernel's host name; ``wide`` chooses 64-bit offsets."""
    suffix = "_int64" if wide else ""
    interpolation, padding = mode.interpolation.name.lower(), mode.padding.name.lower()
    return f"{op}_{interpolation}_{padding}_{METAL_NAMES[dtype]}{suffix}"


def is_named(names: Collection[str], op: str, *, wide: bool) -> bool:
    """Whether there are kernels of such names for an op, in any dtype."""
    return any(kernel_name(op, _SOME_MODE, dtype, wide=wide) in names for dtype in METAL_NAMES)


class _SeriesFamily:
    """What both directions have in common.

    Attributes:
        params: name of the struct.
    """

    splits_launches: Final = True
    params: str

    def layout(self, headers: tuple[bytes, ...], dims: int, *, wide: bool) -> StructLayout:
        """Of the parameters, for a number of spatial dimensions and an index width."""
        return params_layout(headers, self.params, dims + 2, "int64_t" if wide else "int32_t")


class SeriesBackward(_SeriesFamily):
    """Implements :class:`BackwardFamily`."""

    params = "GridSamplerGradientParams"

    def is_among(self, names: Collection[str], sampler: Sampler) -> bool:
        return is_named(names, sampler.backward, wide=True)

    def run(self, call: BackwardCall) -> Outputs:
        """As ``grid_sampler_2d_backward_mps`` and its 3D sibling of the overlay."""
        tensors, mode, grad_grid = call.tensors, call.mode, call.grad_grid
        accumulated = (call.zeros or torch.zeros)(tensors.input.shape) if call.compute_grad_input else None
        # Every argument needs a buffer. The real function binds one that exists anyway where grad_input is not asked
        # for; here it is one that shows whether the kernel leaves it alone.
        bound = accumulated if accumulated is not None else torch.zeros(1)
        wide = call.is_wide(tensors.grad_output, tensors.input, tensors.grid, grad_grid, bound)
        name = kernel_name(call.sampler.backward, mode, tensors.input.dtype, wide=wide)
        kernel: KernelFunction = getattr(call.kernels.library, name)
        layout = self.layout(call.kernels.headers, tensors.dims, wide=wide)
        _must_be_written(call.kernels, grad_grid, tensors.positions, call.positions_per_launch)
        for first, count in _launches(tensors.positions, call.positions_per_launch):
            params = layout.pack(backward_params(tensors, mode, accumulated, first))
            kernel(bound, grad_grid, tensors.grad_output, tensors.input, tensors.grid, params, threads=count)
        mask_kept = accumulated is not None or bool((bound == 0).all())
        grad_input = accumulated.to(tensors.input.dtype) if accumulated is not None else None
        return Outputs(grad_input, grad_grid, mask_kept, wide)


class SeriesForward(_SeriesFamily):
    """Implements :class:`ForwardFamily`."""

    params = "GridSamplerForwardParams"

    def is_among(self, names: Collection[str], sampler: Sampler) -> bool:
        return is_named(names, sampler.forward, wide=True)

    def run(self, call: ForwardCall) -> bool:
        """As ``grid_sampler_3d_mps`` of the overlay."""
        tensors, output = call.tensors, call.output
        wide = call.is_wide(output, tensors.input, tensors.grid)
        name = kernel_name(call.sampler.forward, call.mode, tensors.input.dtype, wide=wide)
        kernel: KernelFunction = getattr(call.kernels.library, name)
        layout = self.layout(call.kernels.headers, tensors.dims, wide=wide)
        _must_be_written(call.kernels, output, tensors.positions, call.positions_per_launch)
        for first, count in _launches(tensors.positions, call.positions_per_launch):
            params = layout.pack(_forward_params(tensors, call.mode, output, first))
            kernel(output, tensors.input, tensors.grid, params, threads=count)
        return wide


def _launches(positions: int, at_once: int) -> Iterator[tuple[int, int]]:
    """First position and number of positions of each launch."""
    for first in range(0, positions, at_once):
        yield first, min(positions - first, at_once)


def _must_be_written(kernels: Kernels, output: Tensor, positions: int, at_once: int) -> None:
    # A launch of several leaves the others' part of the output alone, which the detectors would take for a fault.
    if positions <= at_once:
        kernels.mark_undefined(output)


def backward_params(tensors: SamplerTensors, mode: Mode, accumulated: Tensor | None, first: int) -> dict[str, Value]:
    """Values of the kernel's parameters, by name; ``first`` is the sampling position of the launch's thread 0."""
    return {
        "grad_output_sizes": tensors.grad_output.shape,
        "grad_output_strides": tensors.grad_output.stride(),
        "input_sizes": tensors.input.shape,
        "input_strides": tensors.input.stride(),
        "grid_strides": tensors.grid.stride(),
        "grad_input_strides": accumulated.stride() if accumulated is not None else [0] * tensors.input.dim(),
        "first_position": first,
        "align_corners": mode.align_corners,
        "compute_grad_input": accumulated is not None,
    }


def _forward_params(tensors: SamplerTensors, mode: Mode, output: Tensor, first: int) -> dict[str, Value]:
    return {
        "output_sizes": output.shape,
        "output_strides": output.stride(),
        "input_sizes": tensors.input.shape,
        "input_strides": tensors.input.stride(),
        "grid_strides": tensors.grid.stride(),
        "first_position": first,
        "align_corners": mode.align_corners,
    }
