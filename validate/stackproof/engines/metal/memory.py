"""Buffers for watched runs: every tensor in memory of its own, with room around it and a shadow that says what is it.

A kernel that reads past its input usually hits another tensor and nobody notices. Here each piece of storage that a
call touches is copied between guard bands; bytes inside the span of a strided tensor that belong to none of its
elements are not addressable either. After the dispatch the elements are copied back.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import numpy as np
import torch

from stackproof.engines.metal.arguments import Argument, PackedArguments
from stackproof.engines.metal.model import ParameterKind, Report, ReportKind, Signature
from stackproof.engines.metal.native import RawOptions, RawRegion

ADDRESSABLE, DEFINED = 1, 2
WRITABLE, COUNTED = 1, 2
_GUARD = 4096
_POISON = 0xFF
# Larger spans are used where they lie: copying a sparse buffer of many gigabytes would fill it.
_COPY_LIMIT = 1 << 28


class _Span:
    """One contiguous piece of storage that one or more tensors of a call lie in."""

    def __init__(self, begin: int, end: int, granule: int) -> None:
        self.begin, self.end, self.granule = begin, end, granule
        self.tensors: list[torch.Tensor] = []
        self.writable = False
        self.copied = end - begin <= _COPY_LIMIT
        self.shadow: np.ndarray[Any, np.dtype[np.uint8]] | None = None
        self.block: np.ndarray[Any, np.dtype[np.uint8]] | None = None
        self.address = begin

    def copy_in(self) -> None:
        """Make the guarded copy and its shadow."""
        if not self.copied:
            return
        size = self.end - self.begin
        self.block = np.full(size + 2 * _GUARD + 256, _POISON, dtype=np.uint8)
        start = (self.block.ctypes.data + _GUARD + 255) // 256 * 256
        self.address = start + self.begin % 256  # alignment as the caller's, odd offsets included
        self.shadow = np.zeros(size, dtype=np.uint8)
        for tensor in self.tensors:
            self._elements(self.shadow, tensor)[...] = ADDRESSABLE | DEFINED
        source = _bytes_at(self.begin, size)
        inside = self.shadow != 0
        _bytes_at(self.address, size)[inside] = source[inside]

    def copy_back(self) -> None:
        """Copy what the kernel may have written to where it belongs."""
        if self.copied and self.writable and self.shadow is not None:
            size = self.end - self.begin
            inside = (self.shadow & ADDRESSABLE) != 0
            _bytes_at(self.begin, size)[inside] = _bytes_at(self.address, size)[inside]

    def mark_undefined(self, tensor: torch.Tensor) -> None:
        """Take the elements of ``tensor`` as not written, and fill them with ones."""
        if self.shadow is not None:
            self._elements(self.shadow, tensor)[...] = ADDRESSABLE
            self._elements(_bytes_at(self.address, self.end - self.begin), tensor)[...] = _POISON

    def undefined_elements(self, tensor: torch.Tensor) -> int:
        """How many elements of ``tensor`` nobody has written."""
        if self.shadow is None:
            return 0
        state = self._elements(self.shadow, tensor)
        return int(((state & DEFINED) == 0).any(axis=-1).sum())

    def _elements(self, over: np.ndarray[Any, Any], tensor: torch.Tensor) -> np.ndarray[Any, Any]:
        """A view of ``over`` with the tensor's shape, and the bytes of an element last."""
        item = tensor.element_size()
        strides = (*(s * item for s in tensor.stride()), 1)
        begin = tensor.data_ptr() - self.begin
        return np.lib.stride_tricks.as_strided(over[begin:], (*tensor.shape, item), strides)


def _bytes_at(address: int, size: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


def _extent(tensor: torch.Tensor) -> tuple[int, int]:
    """First byte and one past the last byte of the tensor's elements."""
    reach = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.data_ptr(), tensor.data_ptr() + (reach + 1) * tensor.element_size()


class GuardedMemory:
    """The buffers of one watched call, as a context: copied in at the start, copied back at the end.

    Attributes:
        names: what each region is called in a report.
    """

    def __init__(
        self, packed: PackedArguments, resources: Sequence[torch.Tensor], undefined: Sequence[torch.Tensor]
    ) -> None:
        self._packed = packed
        self._undefined = [tensor for tensor in undefined if tensor.numel()]
        self._constants = [a for a in packed.arguments if a.constant is not None]
        self._spans: list[_Span] = []
        writable = (ParameterKind.DEVICE,)
        tensors = [
            (a.tensor, a.parameter.kind in writable and not a.parameter.read_only, a.parameter.name)
            for a in packed.arguments
            if a.tensor is not None
        ]
        # A resource is reached by its address, which is stored in some buffer: it has to stay where it is.
        self._resources = [r for r in resources if r.numel()]
        self._collect([(t, w) for t, w, _name in tensors if t.numel()])
        self.names: list[str] = []
        for span in self._spans:
            inside = [name or f"buffer {i}" for i, (t, _w, name) in enumerate(tensors) if self._holds(span, t)]
            self.names.append(" and ".join(dict.fromkeys(inside)))
        self.names += [a.parameter.name or f"buffer {a.parameter.index}" for a in self._constants]
        self.names += [f"resource {i}" for i in range(len(self._resources))]

    def __enter__(self) -> GuardedMemory:
        for span in self._spans:
            span.copy_in()
        for tensor in self._undefined:
            for span in self._spans:
                if self._holds(span, tensor):
                    span.mark_undefined(tensor)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for span in self._spans:
            span.copy_back()

    def addresses(self) -> list[int]:
        """What the kernel gets, in declaration order."""
        return [self._moved(argument) for argument in self._packed.arguments]

    def fill(self, options: RawOptions) -> None:
        """Describe the regions to the detectors."""
        regions = (RawRegion * (len(self.names) + 1))()
        at = 0
        for span in self._spans:
            shadow = span.shadow.ctypes.data if span.shadow is not None else None
            flags = COUNTED | (WRITABLE if span.writable else 0)
            regions[at] = RawRegion(
                span.address, span.address + span.end - span.begin, shadow, span.granule, flags, None
            )
            at += 1
        for argument in self._constants:
            writable = argument.parameter.kind is ParameterKind.DEVICE and not argument.parameter.read_only
            flags = WRITABLE if writable else 0
            regions[at] = RawRegion(argument.address, argument.address + argument.size, None, 4, flags, None)
            at += 1
        for tensor in self._resources:
            begin, end = _extent(tensor)
            granule = min(tensor.element_size(), 4)
            regions[at] = RawRegion(begin, end, None, granule, WRITABLE | COUNTED, None)
            at += 1
        options.regions = regions
        options.region_count = at
        self._regions = regions

    def unwritten(self, signature: Signature) -> list[Report]:
        """A report for each tensor marked undefined that has elements nobody wrote."""
        reports = []
        for tensor in self._undefined:
            for span, name in zip(self._spans, self.names, strict=False):
                if self._holds(span, tensor) and (missing := span.undefined_elements(tensor)):
                    message = f"{missing} of {tensor.numel()} elements of {name} were never written"
                    reports.append(
                        Report(ReportKind.UNWRITTEN, signature.kernel, message, signature.file, signature.line)
                    )
        return reports

    def _collect(self, tensors: Sequence[tuple[torch.Tensor, bool]]) -> None:
        """One span for tensors that overlap, so that aliases stay aliases."""
        for tensor, writable in sorted(tensors, key=lambda pair: _extent(pair[0])):
            begin, end = _extent(tensor)
            granule = min(tensor.element_size(), 4)
            if not self._spans or begin >= self._spans[-1].end:
                self._spans.append(_Span(begin, end, granule))
            span = self._spans[-1]
            span.end = max(span.end, end)
            span.granule = min(span.granule, granule)
            span.copied = span.end - span.begin <= _COPY_LIMIT
            span.writable = span.writable or writable
            span.tensors.append(tensor)

    def _moved(self, argument: Argument) -> int:
        if argument.tensor is None:
            return argument.address
        for span in self._spans:
            if self._holds(span, argument.tensor):
                return argument.address - span.begin + span.address
        return argument.address

    @staticmethod
    def _holds(span: _Span, tensor: torch.Tensor) -> bool:
        return bool(tensor.numel()) and span.begin <= tensor.data_ptr() < span.end
