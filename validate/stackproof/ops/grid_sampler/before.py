"""The forward before the stack, run beside the stack's: what was supported gives the same results as ever.

PyTorch's 3D forward of before April 2026 has one thread per output element, bilinear only, and 32-bit offsets. The
stack puts a kernel in its place that walks the channels. Where the old one was defined, nobody may notice: the same
bits are asked for. (On a reference tree the old kernel is this project's stand-in for it, with the same structure and
order of operations.) The forwards of after April 2026 do their arithmetic in an order of their own, so of the change
that replaces them no more is asked than that both are the same within rounding.

What is not compared, because the old kernel has no defined result there: coordinates that are not finite or whose pixel
does not fit into 32 bits (the conversion to an integer is undefined), images with infinities or NaN beside zero padding
(a tap that is outside may still be read, times zero), axes beyond 2**24 pixels (float32 skips some of them), tensors
whose offsets need more than 32 bits (the old host function refuses them), and, of after April 2026, axes of one pixel
(with align_corners and reflection those kernels divide an integer by zero).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from stackproof.ops.grid_sampler.checks import ExpectedSamples, dtype_name
from stackproof.ops.grid_sampler.host import HostForward
from stackproof.ops.grid_sampler.modes import Interpolation, Mode, Sampler
from stackproof.ops.grid_sampler.table import SHAPES, Special
from stackproof.ops.grid_sampler.tensors import LAYOUTS, SamplerTensors
from stackproof.ops.grid_sampler.values import random_tensors
from stackproof.ops.measure import largest_error
from stackproof.ops.model import CaseResult, Kernels

_LAYOUTS = ("contiguous", "channels_last", "sliced")
_SHAPES = ("two samples", "three samples", "one row", "far outside", "on the lattice", "many samples per pixel")
# Grids are stretched so far that their dtype still has fractions of a pixel, but few of them.
_FAR = {torch.float32: 2.0**16, torch.float16: 2.0**6, torch.bfloat16: 2.0**6}


# Two results that are both right, in units of the dtype's epsilon.
_APART = {torch.float32: 8.0, torch.float16: 1.5, torch.bfloat16: 1.5}


def same_as_before(kernels: Kernels, sampler: Sampler, mode: Mode, dtype: torch.dtype) -> Iterator[CaseResult]:
    """Random values of several shapes and layouts, near the input and far from it: the same results."""
    new = HostForward(kernels)
    for shape in (shape for shape in SHAPES[sampler.dims] if shape.name in _SHAPES):
        plain = random_tensors(shape, dtype, mode)
        far = SamplerTensors(plain.grad_output, plain.input, plain.grid * _FAR[dtype])
        for distance, values in (("", plain), (", far", far)):
            for layout in _LAYOUTS:
                tensors = LAYOUTS[layout](values)
                case = f"as before the stack: {shape.name}, {layout}{distance}"
                result = CaseResult(str(mode), dtype_name(dtype), case)
                why, problems = _compared(new, kernels.before, tensors, mode)
                yield replace(result, skipped=why, problems=problems)


def _compared(
    new: HostForward, before: Kernels | None, tensors: SamplerTensors, mode: Mode
) -> tuple[str, tuple[str, ...]]:
    """Why nothing was compared, or what is wrong."""
    if before is None:
        return "the commit below the stack does not have these kernels", ()
    old = HostForward(before)
    try:
        keeps_bits = old.keeps_bits(Sampler(tensors.dims))
        if not keeps_bits and 1 in tensors.input.shape[2:]:
            return "on axes of one pixel the kernels below the stack have no defined result", ()
        result = old.run(tensors, mode)
    except LookupError as error:
        return f"the commit below the stack has {error}", ()
    compare = _same_bits if keeps_bits else _same_within_rounding
    return "", compare(new.run(tensors, mode), result, tensors, mode)


def _same_bits(new: Tensor, old: Tensor, tensors: SamplerTensors, mode: Mode) -> tuple[str, ...]:
    different = _bits(new) != _bits(old)
    if not different.any():
        return ()
    at = tuple(different.nonzero()[0].tolist())
    problem = (
        f"{int(different.sum())} of {new.numel()} values are not those of before the stack: "
        f"{new[at].item():.9g} instead of {old[at].item():.9g} at {list(at)}"
    )
    return (problem,)


def _same_within_rounding(new: Tensor, old: Tensor, tensors: SamplerTensors, mode: Mode) -> tuple[str, ...]:
    apart = largest_error(new, old.double(), ExpectedSamples.of(tensors, mode).wanted["output"].terms)
    if apart <= _APART[new.dtype]:
        return ()
    return (f"up to {apart:.3g} units of {dtype_name(new.dtype)}'s epsilon from before the stack",)


def _bits(values: Tensor) -> Tensor:
    return values.view(torch.int32 if values.dtype is torch.float32 else torch.int16)


SAME_AS_BEFORE = Special(
    len(_SHAPES) * len(_LAYOUTS) * 2, same_as_before, watched=False, interpolations=(Interpolation.BILINEAR,)
)
