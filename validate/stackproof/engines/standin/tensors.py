"""Moving tensors to the device without tidying them up on the way."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def layout_kept_on(device: str) -> Callable[[Tensor], Tensor]:
    """A function that copies a tensor's whole storage: strides, gaps, offsets and shared memory stay."""
    moved: dict[tuple[int, torch.dtype], tuple[Tensor, Tensor]] = {}

    def move(tensor: Tensor) -> Tensor:
        whole = tensor.detach().new_empty(0).set_(tensor.untyped_storage())
        key = (whole.data_ptr(), whole.dtype)
        if key not in moved:
            moved[key] = (whole, whole.to(device))  # the first is kept, so that no other storage gets its address
        return moved[key][1].as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())

    return move
