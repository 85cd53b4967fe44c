"""The forward before the stack, run beside the stack's: nobody loses by the change.

Both are held against float64, from the same rounded inputs. Where the kernel below the stack is right, ours has to be
the same within rounding; where it is off (NaN, out of range), that is said and is not held against ours. Two correct
kernels may do their arithmetic in different orders: until April 2026, PyTorch's 3D forward had one thread per output
element, the stack's walks the channels.

What is not compared: tensors whose offsets need more than 32 bits, axes beyond 2**24 pixels, and coordinates that are
not finite or whose pixel does not fit into 32 bits, for which older kernels have no defined result. A kernel below the
stack may also take its process down (upstream's divide an integer by zero on axes of one pixel, with align_corners and
reflection): each shape is a batch of its own, which that costs and no other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from stackproof.engines.kernels import Kernels
from stackproof.ops.grid_sampler.checks import ExpectedSamples, Wanted, dtype_name
from stackproof.ops.grid_sampler.host import HostForward
from stackproof.ops.grid_sampler.modes import Interpolation, Mode, Sampler
from stackproof.ops.grid_sampler.table import SHAPES, Special
from stackproof.ops.grid_sampler.tensors import LAYOUTS, SamplerTensors
from stackproof.ops.grid_sampler.values import random_tensors
from stackproof.ops.measure import LARGEST_ERROR, one_unit
from stackproof.ops.model import CaseResult

_LAYOUTS = ("contiguous", "channels_last", "sliced")
_SHAPES = ("two samples", "three samples", "one row", "far outside", "on the lattice", "many samples per pixel")
# Grids are stretched so far that their dtype still has fractions of a pixel, but few of them.
_FAR = {torch.float32: 2.0**16, torch.float16: 2.0**6, torch.bfloat16: 2.0**6}


# Two results that are both right, in units of the dtype's epsilon.
_APART = {torch.float32: 8.0, torch.float16: 1.5, torch.bfloat16: 1.5}


def same_as_before(
    shape_name: str, kernels: Kernels, sampler: Sampler, mode: Mode, dtype: torch.dtype
) -> Iterator[CaseResult]:
    """Random values of one shape in several layouts, near the input and far from it."""
    new = HostForward(kernels)
    (shape,) = (shape for shape in SHAPES[sampler.dims] if shape.name == shape_name)
    plain = random_tensors(shape, dtype, mode)
    far = SamplerTensors(plain.grad_output, plain.input, plain.grid * _FAR[dtype])
    for distance, values in (("", plain), (", far", far)):
        for layout in _LAYOUTS:
            tensors = LAYOUTS[layout](values)
            case = f"as before the stack: {shape.name}, {layout}{distance}"
            result = CaseResult(str(mode), dtype_name(dtype), case)
            yield _compared(new, kernels.before, tensors, mode, result)


def _compared(
    new: HostForward, before: Kernels | None, tensors: SamplerTensors, mode: Mode, case: CaseResult
) -> CaseResult:
    if before is None:
        return replace(case, skipped="the commit below the stack does not have these kernels")
    try:
        old = HostForward(before).run(tensors, mode)
    except LookupError as error:
        return replace(case, skipped=f"the commit below the stack has {error}")
    return beside_float64(new.run(tensors, mode), old, ExpectedSamples.of(tensors, mode).wanted["output"], case)


def beside_float64(new: Tensor, old: Tensor, want: Wanted, case: CaseResult) -> CaseResult:
    """Judge two outputs of the same call.

    Args:
        new: the stack's.
        old: that of the kernel below it.
        want: the right answer.
        case: gets what is wrong with ``new``, or a note about ``old``.
    """
    unit = one_unit(want.values, want.terms, new.dtype)
    off, off_before = _distance(new, want.values, unit), _distance(old, want.values, unit)
    allowed, epsilon = LARGEST_ERROR[new.dtype], f"units of {dtype_name(new.dtype)}'s epsilon"
    problems: list[str] = []
    lost = (off > allowed) & (off > off_before)
    if lost.any():
        worst = off[lost].argmax()
        problems.append(
            f"output is off by up to {off[lost][worst]:.3g} {epsilon} where the kernels below the stack are off by"
            f" {off_before[lost][worst]:.3g}"
        )
    apart = _distance(new, old.double(), unit)[(off <= allowed) & (off_before <= allowed)]
    if (apart > _APART[new.dtype]).any():
        problems.append(f"up to {apart.max():.3g} {epsilon} from before the stack")
    mended = off_before[(off_before > allowed) & (off <= off_before)]
    return replace(case, problems=tuple(problems), note=_note(mended, epsilon))


def _note(mended: Tensor, epsilon: str) -> str:
    """What is to be said of a kernel below the stack that is off by so many units where ours is not."""
    if not len(mended):
        return ""
    if mended.isinf().any():
        return f"the kernels below the stack give {int(mended.isinf().sum())} values that are not finite"
    return f"the kernels below the stack are off by up to {mended.max():.3g} {epsilon}"


def _distance(values: Tensor, other: Tensor, unit: Tensor) -> Tensor:
    """How far apart, in units; infinite where either is not a number."""
    return ((values.double() - other).abs() / unit).nan_to_num(nan=math.inf, posinf=math.inf)


SAME_AS_BEFORE = {
    f"as before the stack, {name}": Special(
        len(_LAYOUTS) * 2,
        partial(same_as_before, name),
        watched=False,
        interpolations=(Interpolation.BILINEAR,),
        compares=True,
    )
    for name in _SHAPES
}
