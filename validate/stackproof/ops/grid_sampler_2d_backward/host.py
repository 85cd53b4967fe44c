"""What the host function ``grid_sampler_2d_backward_mps`` does around its kernel, said once more in Python.

The kernels are proved through this mirror, so it has to follow the overlay's ``GridSampler.mm``: kernel name, index
width, launches, buffers, the float accumulation of 16-bit gradients. The layout of the parameters is not repeated, it
is read from the header. That the real host function does the same is what the host gates show.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from stackproof.ops.grid_sampler_2d_backward.modes import Mode
from stackproof.ops.layouts import SamplerTensors
from stackproof.ops.model import Kernels
from stackproof.ops.struct_layout import StructLayout, StructTable, Value

_PARAMS = "GridSamplerBackwardParams"
_METAL_NAMES = {torch.float32: "float", torch.float16: "half", torch.bfloat16: "bfloat"}
_INT32_MAX = 2**31 - 1


@dataclass(frozen=True)
class Outputs:
    """What the op returns, before undefined gradients are dropped.

    Attributes:
        grad_input: (N, C, H, W) contiguous in the input's dtype, ``None`` where the mask leaves it out.
        grad_grid: (N, Ho, Wo, 2) contiguous.
        mask_kept: nothing was written to ``grad_input`` where the mask leaves it out.
        used_wide: the kernel with 64-bit offsets was taken.
    """

    grad_input: Tensor | None
    grad_grid: Tensor
    mask_kept: bool = True
    used_wide: bool = False


def kernel_name(mode: Mode, dtype: torch.dtype, *, wide: bool) -> str:
    """The kernel's host name; ``wide`` chooses 64-bit offsets."""
    suffix = "_int64" if wide else ""
    interpolation, padding = mode.interpolation.name.lower(), mode.padding.name.lower()
    return f"grid_sampler_2d_backward_{interpolation}_{padding}_{_METAL_NAMES[dtype]}{suffix}"


def largest_offset(*tensors: Tensor) -> int:
    """The largest offset in elements from a tensor's first element to any of its elements."""
    return max(
        sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
        for tensor in tensors
    )


class HostFunction:
    """The host function over one library of kernels.

    Attributes:
        always_wide: take the 64-bit kernels even where 32 bits are enough, to try them on small tensors.
        positions_per_launch: at most so many threads in a launch.
        layouts: of the parameters, by whether the kernel is the wide one.
        zeros: makes the float buffer for ``grad_input``; replaced for sizes that exist as address space only.
    """

    def __init__(
        self,
        kernels: Kernels,
        *,
        always_wide: bool = False,
        positions_per_launch: int = 2**30,
        zeros: Callable[[Sequence[int]], Tensor] = torch.zeros,
    ) -> None:
        self.always_wide = always_wide
        self.positions_per_launch = positions_per_launch
        self.zeros = zeros
        self._kernels = kernels
        structs = StructTable(*kernels.headers)
        self.layouts: dict[bool, StructLayout] = {
            wide: structs.layout(_PARAMS, 4, "int64_t" if wide else "int32_t") for wide in (False, True)
        }

    def backward(self, tensors: SamplerTensors, mode: Mode, *, mask: tuple[bool, bool]) -> Outputs:
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
        reach = largest_offset(tensors.grad_output, tensors.input, tensors.grid, grad_grid, bound)
        wide = self.always_wide or reach > _INT32_MAX
        kernel = getattr(self._kernels.library, kernel_name(mode, tensors.input.dtype, wide=wide))
        positions = tensors.grid.shape[0] * tensors.grid.shape[1] * tensors.grid.shape[2]
        if positions <= self.positions_per_launch:
            self._kernels.mark_undefined(grad_grid)
        for first in range(0, positions, self.positions_per_launch):
            params = self.layouts[wide].pack(_params(tensors, mode, accumulated, first))
            count = min(positions - first, self.positions_per_launch)
            kernel(bound, grad_grid, tensors.grad_output, tensors.input, tensors.grid, params, threads=count)
        mask_kept = accumulated is not None or bool((bound == 0).all())
        return Outputs(_cast(accumulated, tensors.input.dtype), grad_grid, mask_kept, wide)


def _cast(accumulated: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    return accumulated.to(dtype) if accumulated is not None else None


def _params(tensors: SamplerTensors, mode: Mode, accumulated: Tensor | None, first: int) -> dict[str, Value]:
    return {
        "grad_output_sizes": tensors.grad_output.shape,
        "grad_output_strides": tensors.grad_output.stride(),
        "input_sizes": tensors.input.shape,
        "input_strides": tensors.input.stride(),
        "grid_strides": tensors.grid.stride(),
        "grad_input_strides": accumulated.stride() if accumulated is not None else (0, 0, 0, 0),
        "first_position": first,
        "align_corners": mode.align_corners,
        "compute_grad_input": accumulated is not None,
    }
