"""What the special cases of the forward and of the backward are made from, and those that are the same for both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

import torch
from torch import Tensor

from stackproof.engines.kernels import Kernels
from stackproof.ops.grid_sampler.checks import dtype_name
from stackproof.ops.grid_sampler.modes import Mode, Sampler
from stackproof.ops.grid_sampler.table import Shape
from stackproof.ops.grid_sampler.tensors import SamplerTensors
from stackproof.ops.grid_sampler.values import random_tensors
from stackproof.ops.layouts import sliced, virtual_tensor
from stackproof.ops.model import CaseResult

H = TypeVar("H", bound="_Splitting")
_H = TypeVar("_H", contravariant=True)

_BEYOND_INT32 = 2**31 + 3
_SHAPES = {2: Shape("special", (2, 3, 5, 7), (5, 6)), 3: Shape("special", (2, 3, 4, 5, 7), (3, 5, 4))}

# More positions than the smallest launch of any kernel takes.
_FEW = {2: Shape("few channels", (2, 3, 5, 7), (9, 17)), 3: Shape("few channels", (2, 3, 4, 5, 7), (3, 5, 11))}
_MORE = {2: Shape("more channels", (1, 17, 5, 7), (9, 17)), 3: Shape("more channels", (1, 17, 4, 5, 7), (3, 5, 11))}
_LAUNCHES = {
    dims: (("int32", False, _FEW[dims]), ("int64", True, _FEW[dims]), ("int32", False, _MORE[dims])) for dims in (2, 3)
}


def special_tensors(sampler: Sampler, dtype: torch.dtype, mode: Mode) -> SamplerTensors:
    """Small contiguous tensors with two samples of three channels."""
    return random_tensors(_SHAPES[sampler.dims], dtype, mode)


def spread(values: Tensor, rows: int = 2) -> Tensor:
    """The same values with more than 2**31 elements from the first row to the last, and from one sample to the next.

    Args:
        values: samples first.
        rows: the axis of rows, of two or more.
    """
    inner = [axis for axis in range(1, values.dim()) if axis != rows]
    strides, count = [0] * values.dim(), 1
    for axis in reversed(inner):
        strides[axis], count = count, count * values.shape[axis]
    strides[rows] = _BEYOND_INT32 // (values.shape[rows] - 1) + 1
    strides[0] = strides[rows] * (values.shape[rows] - 1) + count
    return virtual_tensor(values.shape, strides, values.dtype).copy_(values)


class _Splitting(Protocol):
    """A host function."""

    def splits_launches(self, tensors: SamplerTensors, mode: Mode) -> bool: ...


class _Expected(Protocol[_H]):
    """The right answer, which checks what a host function gives."""

    def arranged(self, tensors: SamplerTensors) -> _Expected[_H]: ...

    def check(self, host: _H, case: str) -> CaseResult: ...


@dataclass(frozen=True)
class HostCases(Generic[H]):
    """Cases about how a host function launches its kernels, whichever it is.

    Attributes:
        host: makes the host function.
        expected: computes the right answer.
    """

    host: Callable[..., H]
    expected: Callable[[SamplerTensors, Mode], _Expected[H]]

    def int64_kernels(self, kernels: Kernels, sampler: Sampler, mode: Mode, dtype: torch.dtype) -> Iterator[CaseResult]:
        """The kernels with 64-bit offsets compute the same on small tensors."""
        host = self.host(kernels, always_wide=True)
        tensors = special_tensors(sampler, dtype, mode)
        expected = self.expected(tensors, mode)
        yield expected.check(host, "int64 kernel, contiguous")
        yield expected.arranged(tensors.each(sliced)).check(host, "int64 kernel, sliced")

    def several_launches(
        self, kernels: Kernels, sampler: Sampler, mode: Mode, dtype: torch.dtype
    ) -> Iterator[CaseResult]:
        """A grid of more positions than one launch takes is covered once, without a gap."""
        for width, wide, shape in _LAUNCHES[sampler.dims]:
            tensors = random_tensors(shape, dtype, mode)
            case = f"launches as small as can be, {width} kernel, {shape.input[1]} channels"
            if not self.host(kernels, always_wide=wide).splits_launches(tensors, mode):
                result = CaseResult(str(mode), dtype_name(dtype), case)
                yield replace(result, skipped="these kernels count positions from 0, so a launch takes all of them")
                continue
            host = self.host(kernels, always_wide=wide, positions_per_launch=7)
            yield self.expected(tensors, mode).check(host, case)
