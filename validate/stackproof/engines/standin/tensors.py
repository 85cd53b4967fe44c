"""Moving tensors to the device without tidying them up on the way."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor


def layout_kept_on(device: str) -> Callable[[Tensor], Tensor]:
    """A function that copies a tensor's whole storage: strides, gaps and storage offset stay."""

    def move(tensor: Tensor) -> Tensor:
        storage = tensor.detach().new_empty(0).set_(tensor.untyped_storage()).to(device)
        return storage.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())

    return move
