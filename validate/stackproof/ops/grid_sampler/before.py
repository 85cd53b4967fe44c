"""The forward before the stack, run beside the stack's: what was supported gives the same bits as ever.

PyTorch's 3D forward of before April 2026 has one thread per output element, bilinear only, and 32-bit offsets. The
stack puts a kernel in its place that walks the channels. Where the old one was defined, nobody may notice. (On a
reference tree the old kernel is this project's stand-in for it, with the same structure and order of operations.)

What is not compared, because the old kernel has no defined result there: coordinates that are not finite or whose pixel
does not fit into 32 bits (the conversion to an integer is undefined), images with infinities or NaN beside zero padding
(a tap that is outside may still be read, times zero), axes beyond 2**24 pixels (float32 skips some of them), and tensors
whose offsets need more than 32 bits (the old host function refuses them).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from stackproof.ops.grid_sampler.checks import dtype_name
from stackproof.ops.grid_sampler.host import METAL_NAMES, HostForward, kernel_name
from stackproof.ops.grid_sampler.modes import Interpolation, Mode, Sampler
from stackproof.ops.grid_sampler.table import SHAPES, Special
from stackproof.ops.grid_sampler.tensors import LAYOUTS, SamplerTensors
from stackproof.ops.grid_sampler.values import random_tensors
from stackproof.ops.model import CaseResult, Kernels
from stackproof.ops.struct_layout import StructTable, Value

_LAYOUTS = ("contiguous", "channels_last", "sliced")
_SHAPES = ("two samples", "three samples", "one row", "far outside", "on the lattice", "many samples per pixel")
# Grids are stretched so far that their dtype still has fractions of a pixel, but few of them.
_FAR = {torch.float32: 2.0**16, torch.float16: 2.0**6, torch.bfloat16: 2.0**6}


class ForwardBefore:
    """The host function of the commit below the stack, in either form.

    Raises:
        LookupError: that commit has no kernel for this sampler.
    """

    def __init__(self, kernels: Kernels, sampler: Sampler) -> None:
        self._kernels = kernels
        self._sampler = sampler

    def run(self, tensors: SamplerTensors, mode: Mode) -> Tensor:
        """The samples, in new contiguous memory."""
        op, dtype = self._sampler.forward, tensors.input.dtype
        if hasattr(self._kernels.library, kernel_name(op, mode, dtype, wide=False)):
            return HostForward(self._kernels).run(tensors, mode)
        name = f"{op}_{mode.padding.name.lower()}_{METAL_NAMES[dtype]}"
        if not hasattr(self._kernels.library, name):
            raise LookupError(f"the commit below the stack has no kernel {name}")
        output = torch.full(tensors.grad_output.shape, torch.nan, dtype=dtype)
        kernel = getattr(self._kernels.library, name)
        params = self._packed(_params(tensors, mode, output))
        kernel(output, tensors.input, tensors.grid, params, threads=output.numel())
        return output

    def _packed(self, values: dict[str, Value]) -> bytes:
        """The parameters; which of them the struct has was not the same in every release."""
        rank = self._sampler.dims + 2
        layout = StructTable(*self._kernels.headers).layout("GridSamplerParams", rank, "int32_t")
        return layout.pack({name: value for name, value in values.items() if name in layout.names})


def _params(tensors: SamplerTensors, mode: Mode, output: Tensor) -> dict[str, Value]:
    return {
        "sampler_dims": tensors.dims,
        "output_sizes": output.shape,
        "output_strides": output.stride(),
        "input_sizes": tensors.input.shape,
        "input_strides": tensors.input.stride(),
        "grid_sizes": tensors.grid.shape,
        "grid_strides": tensors.grid.stride(),
        "interpolation_mode": int(mode.interpolation),
        "padding_mode": int(mode.padding),
        "align_corners": mode.align_corners,
    }


def same_as_before(kernels: Kernels, sampler: Sampler, mode: Mode, dtype: torch.dtype) -> Iterator[CaseResult]:
    """Random values of several shapes and layouts, near the input and far from it: the same bits."""
    host = HostForward(kernels)
    for shape in (shape for shape in SHAPES[sampler.dims] if shape.name in _SHAPES):
        plain = random_tensors(shape, dtype, mode)
        far = SamplerTensors(plain.grad_output, plain.input, plain.grid * _FAR[dtype])
        for distance, values in (("", plain), (", far", far)):
            for layout in _LAYOUTS:
                case = f"{shape.name}, {layout}{distance}"
                yield _compared(host, kernels.before, sampler, LAYOUTS[layout](values), mode, case)


def _compared(
    host: HostForward, before: Kernels | None, sampler: Sampler, tensors: SamplerTensors, mode: Mode, case: str
) -> CaseResult:
    result = CaseResult(str(mode), dtype_name(tensors.input.dtype), f"as before the stack: {case}")
    if before is None:
        return replace(result, skipped="the commit below the stack does not have these kernels")
    try:
        old = ForwardBefore(before, sampler).run(tensors, mode)
    except LookupError as error:
        return replace(result, skipped=str(error))
    new = host.run(tensors, mode)
    different = _bits(new) != _bits(old)
    if not different.any():
        return result
    at = tuple(different.nonzero()[0].tolist())
    problem = (
        f"{int(different.sum())} of {new.numel()} values are not those of before the stack: "
        f"{new[at].item():.9g} instead of {old[at].item():.9g} at {list(at)}"
    )
    return replace(result, problems=(problem,))


def _bits(values: Tensor) -> Tensor:
    return values.view(torch.int32 if values.dtype is torch.float32 else torch.int16)


SAME_AS_BEFORE = Special(
    len(_SHAPES) * len(_LAYOUTS) * 2, same_as_before, watched=False, interpolations=(Interpolation.BILINEAR,)
)
