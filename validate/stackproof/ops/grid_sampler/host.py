"""What the host functions ``grid_sampler_*_mps`` do around their kernels, said once more in Python.

The kernels are proved through this mirror, so it has to follow the overlay's ``GridSampler.mm``: kernel name, index
width, launches, buffers, the float accumulation of 16-bit gradients. The layout of the parameters is not repeated, it
is read from the header. That the real host functions do the same is what the host gates show.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from stackproof.ops.grid_sampler.modes import Mode, Sampler
from stackproof.ops.grid_sampler.tensors import SamplerTensors
from stackproof.ops.model import KernelFunction, Kernels
from stackproof.ops.struct_layout import StructLayout, StructTable, Value

METAL_NAMES = {torch.float32: "float", torch.float16: "half", torch.bfloat16: "bfloat"}
_INT32_MAX = 2**31 - 1


@dataclass(frozen=True)
class Outputs:
    """What the backward returns, before undefined gradients are dropped.

    Attributes:
        grad_input: (N, C, *S) contiguous in the input's dtype, ``None`` where the mask leaves it out.
        grad_grid: (N, *O, dimensions) contiguous.
        mask_kept: nothing was written to ``grad_input`` where the mask leaves it out.
        used_wide: the kernel with 64-bit offsets was taken.
    """

    grad_input: Tensor | None
    grad_grid: Tensor
    mask_kept: bool = True
    used_wide: bool = False


def kernel_name(op: str, mode: Mode, dtype: torch.dtype, *, wide: bool) -> str:
    """The kernel's host name; ``wide`` chooses 64-bit offsets."""
    suffix = "_int64" if wide else ""
    interpolation, padding = mode.interpolation.name.lower(), mode.padding.name.lower()
    return f"{op}_{interpolation}_{padding}_{METAL_NAMES[dtype]}{suffix}"


def largest_offset(*tensors: Tensor) -> int:
    """The largest offset in elements from a tensor's first element to any of its elements."""
    return max(
        sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
        for tensor in tensors
    )


class _HostFunction:
    """What both directions have in common.

    Attributes:
        always_wide: take the 64-bit kernels even where 32 bits are enough, to try them on small tensors.
        positions_per_launch: at most so many threads in a launch.
    """

    params = ""

    def __init__(self, kernels: Kernels, *, always_wide: bool = False, positions_per_launch: int = 2**30) -> None:
        self.always_wide = always_wide
        self.positions_per_launch = positions_per_launch
        self._kernels = kernels
        self._structs = StructTable(*kernels.headers)
        self.layout = functools.cache(self._layout)

    def _layout(self, dims: int, wide: bool) -> StructLayout:
        """Of the parameters, for a number of spatial dimensions and an index width."""
        return self._structs.layout(self.params, dims + 2, "int64_t" if wide else "int32_t")

    def _is_wide(self, *tensors: Tensor) -> bool:
        return self.always_wide or largest_offset(*tensors) > _INT32_MAX

    def _kernel(self, op: str, tensors: SamplerTensors, mode: Mode, wide: bool) -> KernelFunction:
        name = kernel_name(op, mode, tensors.input.dtype, wide=wide)
        kernel: KernelFunction = getattr(self._kernels.library, name)
        return kernel

    def _launches(self, positions: int) -> Iterator[tuple[int, int]]:
        """First position and number of positions of each launch."""
        for first in range(0, positions, self.positions_per_launch):
            yield first, min(positions - first, self.positions_per_launch)

    def _must_be_written(self, output: Tensor, positions: int) -> None:
        # A launch of several leaves the others' part of the output alone, which the detectors would take for a fault.
        if positions <= self.positions_per_launch:
            self._kernels.mark_undefined(output)


class HostBackward(_HostFunction):
    """The backward's host function over one library of kernels.

    Attributes:
        zeros: makes the float buffer for ``grad_input``; replaced for sizes that exist as address space only.
    """

    params = "GridSamplerBackwardParams"

    def __init__(
        self,
        kernels: Kernels,
        *,
        always_wide: bool = False,
        positions_per_launch: int = 2**30,
        zeros: Callable[[Sequence[int]], Tensor] = torch.zeros,
    ) -> None:
        super().__init__(kernels, always_wide=always_wide, positions_per_launch=positions_per_launch)
        self.zeros = zeros

    def run(self, tensors: SamplerTensors, mode: Mode, *, mask: tuple[bool, bool]) -> Outputs:
        """Both gradients, as the host function computes them; ``grad_grid`` always, whatever the mask.

        Args:
            tensors: all of one dtype, on the CPU.
            mode: how to sample.
            mask: ``output_mask`` of the op.
        """
        grad_grid = torch.full(tensors.grid.shape, torch.nan, dtype=tensors.grid.dtype)  # what is not written shows
        accumulated = self.zeros(tensors.input.shape) if mask[0] else None
        if 0 in (tensors.grad_output.numel(), tensors.input.numel()):
            return Outputs(_cast(accumulated, tensors.input.dtype), grad_grid.zero_())
        # Every argument needs a buffer. The real function binds one that exists anyway where grad_input is not asked
        # for; here it is one that shows whether the kernel leaves it alone.
        bound = accumulated if accumulated is not None else torch.zeros(1)
        wide = self._is_wide(tensors.grad_output, tensors.input, tensors.grid, grad_grid, bound)
        kernel = self._kernel(Sampler(tensors.dims).backward, tensors, mode, wide)
        self._must_be_written(grad_grid, tensors.positions)
        for first, count in self._launches(tensors.positions):
            params = self.layout(tensors.dims, wide).pack(_backward_params(tensors, mode, accumulated, first))
            kernel(bound, grad_grid, tensors.grad_output, tensors.input, tensors.grid, params, threads=count)
        mask_kept = accumulated is not None or bool((bound == 0).all())
        return Outputs(_cast(accumulated, tensors.input.dtype), grad_grid, mask_kept, wide)


def _cast(accumulated: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    return accumulated.to(dtype) if accumulated is not None else None


def _backward_params(tensors: SamplerTensors, mode: Mode, accumulated: Tensor | None, first: int) -> dict[str, Value]:
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


class HostForward(_HostFunction):
    """The forward's host function over one library of kernels.

    Attributes:
        used_wide: the last run took the kernel with 64-bit offsets.
    """

    params = "GridSamplerForwardParams"
    used_wide = False

    def run(self, tensors: SamplerTensors, mode: Mode, output: Tensor | None = None) -> Tensor:
        """The samples, as the host function computes them.

        Args:
            tensors: all of one dtype, on the CPU; ``grad_output`` is not looked at but for its shape.
            mode: how to sample.
            output: where to write, (N, C, *O); new and contiguous memory unless said otherwise.
        """
        if output is None:
            output = torch.full(tensors.grad_output.shape, torch.nan, dtype=tensors.input.dtype)
        if 0 in (output.numel(), tensors.input.numel()):
            return output.zero_()
        wide = self._is_wide(output, tensors.input, tensors.grid)
        kernel = self._kernel(Sampler(tensors.dims).forward, tensors, mode, wide)
        self._must_be_written(output, tensors.positions)
        for first, count in self._launches(tensors.positions):
            params = self.layout(tensors.dims, wide).pack(_forward_params(tensors, mode, output, first))
            kernel(output, tensors.input, tensors.grid, params, threads=count)
        self.used_wide = wide
        return output


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
