"""Lets a proof that works on CPU tensors run its kernels on any device.

Every tensor is taken to the device with its whole storage, so that strides, offsets, gaps and overlaps are the same
there, and is brought back afterwards. Tensors that are on the device already are left alone. Structs become tensors of
bytes: ``compile_shader`` takes no other form of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from patchstack.errors import PatchstackError
from stackproof.engines.kernels import KernelFunction, KernelLibrary

LARGEST_STORAGE = 256 * 1024 * 1024  # bytes


class StorageTooLargeError(PatchstackError):
    """A tensor spans more memory than is worth copying; such cases exist as address space only."""


class DeviceLibrary:
    """A library of kernels whose calls take CPU tensors.

    Args:
        library: kernels that take tensors of ``device``.
        device: name of a torch device.
    """

    def __init__(self, library: KernelLibrary, device: str) -> None:
        self._library = library
        self._device = device

    def __getattr__(self, name: str) -> KernelFunction:
        if name.startswith("_"):
            raise AttributeError(name)
        return _OnDevice(getattr(self._library, name), self._device)

    def __dir__(self) -> Iterable[str]:
        return dir(self._library)


@dataclass(frozen=True)
class _OnDevice:
    kernel: KernelFunction
    device: str

    @property
    def signature(self) -> Any:
        """What the kernel takes, ``None`` where the device does not tell."""
        return getattr(self.kernel, "signature", None)

    def __call__(
        self,
        *args: Any,
        threads: int | Sequence[int] | None = None,
        group_size: int | Sequence[int] | None = None,
    ) -> None:
        there: dict[tuple[int, torch.dtype], tuple[Tensor, Tensor]] = {}
        moved = [self._move(argument, there) for argument in args]
        self.kernel(*moved, threads=threads, group_size=group_size)
        for here, copy in there.values():
            here.copy_(copy)

    def _move(self, argument: Any, there: dict[tuple[int, torch.dtype], tuple[Tensor, Tensor]]) -> Any:
        if isinstance(argument, (bytes, bytearray)):
            return torch.frombuffer(bytearray(argument), dtype=torch.uint8).to(self.device)
        if not isinstance(argument, Tensor) or argument.device.type == torch.device(self.device).type != "cpu":
            return argument
        storage = argument.untyped_storage()
        if storage.nbytes() > LARGEST_STORAGE:
            raise StorageTooLargeError(
                "a tensor's storage is too large to copy",
                expected=f"at most {LARGEST_STORAGE} bytes",
                found=str(storage.nbytes()),
            )
        key = (storage.data_ptr(), argument.dtype)
        if key not in there:
            # Seen through one flat tensor: what lies between the elements goes along.
            count = storage.nbytes() // argument.element_size()
            flat = torch.empty(0, dtype=argument.dtype).set_(storage, 0, (count,), (1,))
            there[key] = (flat, flat.to(self.device, copy=True))
        _, copy = there[key]
        return copy.as_strided(argument.shape, argument.stride(), argument.storage_offset())
