"""The same values in other memory: arrangements of strides and offsets that a kernel must not care about.

What lies between the values is NaN, so that a wrong stride or offset poisons the result instead of hitting a neighbour
that happens to look right.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence

import torch
from torch import Tensor


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
    """Channels innermost; for a tensor whose second axis is the channels and whose others after it are spatial."""
    return values.movedim(1, -1).contiguous().movedim(-1, 1)


def expanded(values: Tensor) -> Tensor:
    """The first element along the first axis for all of them, with stride 0."""
    return values[:1].expand(values.shape)


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
