"""The same values in other memory: every arrangement of strides and offsets that a kernel must not care about.

What lies between the values is NaN, so that a wrong stride or offset poisons the result instead of hitting a neighbour
that happens to look right.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class SamplerTensors:
    """The tensors of one call of a 2D grid sampler's backward, all of one dtype.

    Attributes:
        grad_output: (N, C, Ho, Wo).
        input: (N, C, H, W).
        grid: (N, Ho, Wo, 2).
    """

    grad_output: Tensor
    input: Tensor
    grid: Tensor

    def each(self, change: Callable[[Tensor], Tensor]) -> SamplerTensors:
        """The same with ``change`` applied to every tensor."""
        return SamplerTensors(change(self.grad_output), change(self.input), change(self.grid))


def sliced(values: Tensor) -> Tensor:
    """A view with a storage offset, and a gap after every element and every row."""
    outer = values.new_full([size + 1 for size in values.shape[:-1]] + [2 * values.shape[-1] + 1], math.nan)
    cut = [slice(1, None)] * (values.dim() - 1) + [slice(1, None, 2)]
    view = outer[tuple(cut)]
    return view.copy_(values)


def at_odd_offset(values: Tensor) -> Tensor:
    """A contiguous view one element into its storage: only 2-byte aligned for 16-bit dtypes."""
    flat = values.new_full([values.numel() + 1], math.nan)
    return flat[1:].view(values.shape).copy_(values)


def channels_last(values: Tensor) -> Tensor:
    """Channels innermost; for a 4-D tensor whose second axis is the channels."""
    return values.contiguous(memory_format=torch.channels_last)


def _contiguous(tensors: SamplerTensors) -> SamplerTensors:
    return tensors.each(Tensor.contiguous)


def _channels_last(tensors: SamplerTensors) -> SamplerTensors:
    return SamplerTensors(channels_last(tensors.grad_output), channels_last(tensors.input), tensors.grid)


def _permuted(tensors: SamplerTensors) -> SamplerTensors:
    grid = tensors.grid.permute(0, 3, 1, 2).contiguous().permute(0, 2, 3, 1)
    return SamplerTensors(tensors.grad_output, tensors.input.mT.contiguous().mT, grid)


def _expanded(tensors: SamplerTensors) -> SamplerTensors:
    # As a sum's backward makes it: one value, all strides zero.
    whole = tensors.grad_output
    one = whole.reshape(-1)[:1] if whole.numel() else whole.new_ones(1)
    return SamplerTensors(one.view(1, 1, 1, 1).expand(whole.shape), tensors.input, tensors.grid)


def _sliced(tensors: SamplerTensors) -> SamplerTensors:
    return tensors.each(sliced)


def _odd_offset(tensors: SamplerTensors) -> SamplerTensors:
    return tensors.each(at_odd_offset)


# By name; every layout keeps the values, but "expanded grad_output" repeats one of them.
LAYOUTS: dict[str, Callable[[SamplerTensors], SamplerTensors]] = {
    "contiguous": _contiguous,
    "channels_last": _channels_last,
    "permuted grid": _permuted,
    "expanded grad_output": _expanded,
    "sliced": _sliced,
    "odd offset": _odd_offset,
}


def virtual_tensor(shape: Sequence[int], strides: Sequence[int], dtype: torch.dtype) -> Tensor:
    """Zeros with any strides, backed by address space only: a page takes memory once something is written to it.

    For tensors whose offsets pass 2**31 elements without that many bytes being there. The memory is given back with
    the last view of it.

    Args:
        shape: sizes.
        strides: strides in elements, not negative.
        dtype: element type.

    Raises:
        OSError: the system does not give that much address space.
    """
    last = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    region = mmap.mmap(-1, (last + 1) * dtype.itemsize, flags=flags)
    return torch.frombuffer(region, dtype=dtype).as_strided(tuple(shape), tuple(strides))
