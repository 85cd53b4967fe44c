"""Compiled kernels, whatever they run on: the call shape of ``torch.mps.compile_shader``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:  # what reads struct layouts goes without torch
    from torch import Tensor


class KernelFunction(Protocol):
    """One kernel, called as ``torch.mps.compile_shader`` has it."""

    def __call__(
        self,
        *args: Any,
        threads: int | Sequence[int] | None = None,
        group_size: int | Sequence[int] | None = None,
    ) -> None:
        """Run it; tensors are written in place, ``bytes`` are a struct passed by value."""
        ...


class KernelLibrary(Protocol):
    """Compiled kernels by name, on the host or on an Apple GPU."""

    def __getattr__(self, name: str) -> KernelFunction: ...


@dataclass(frozen=True)
class Kernels:
    """What a proof gets to run.

    Attributes:
        library: the compiled kernels of the op's source.
        headers: text of the headers of :attr:`OpProof.headers` and :attr:`OpProof.beside`, in that order.
        mark_undefined: told of tensors that the next kernel must write before it reads them, for the detectors.
        before: the same of the commit below the stack, for proofs that ask for it and where that commit has it.
    """

    library: KernelLibrary
    headers: tuple[bytes, ...]
    mark_undefined: Callable[[Tensor], None] = lambda tensor: None
    before: Kernels | None = None
