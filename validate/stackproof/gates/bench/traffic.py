"""Counts what a backward pass moves: loads, stores and atomics of the tensors, launch by launch.

Kernels are counted by the host executor's hooks, thread by thread, and sectors simdgroup by simdgroup: an access by 32
lanes is 32 loads, but only as many sectors as there are pieces of 32 bytes below them, which is how a GPU moves them.
Threadgroup memory, registers and parameters are not counted. What PyTorch does between the launches (zero-filling,
rounding) is counted from the sizes of its tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from stackproof.engines.metal import MetalLibrary
from stackproof.ops.grid_sampler.fast.passes import Pass

# Of runtime/sectors.c.
SECTOR_BYTES = 32


@dataclass(frozen=True)
class Traffic:
    """Exact counts.

    Attributes:
        loads: of elements, atomics not included.
        stores: likewise.
        atomics: read-modify-writes.
        loaded_bytes: by loads and atomics.
        stored_bytes: by stores and atomics.
        load_sectors: pieces of 32 bytes that a simdgroup's lanes load together, each once an instruction.
        store_sectors: likewise.
        atomic_sectors: likewise.
    """

    loads: int = 0
    stores: int = 0
    atomics: int = 0
    loaded_bytes: int = 0
    stored_bytes: int = 0
    load_sectors: int = 0
    store_sectors: int = 0
    atomic_sectors: int = 0

    @property
    def bytes(self) -> int:
        """Loaded and stored."""
        return self.loaded_bytes + self.stored_bytes

    @property
    def sectors(self) -> int:
        """Of all three kinds."""
        return self.load_sectors + self.store_sectors + self.atomic_sectors

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True)
class Step:
    """One launch, or one function of PyTorch's.

    Attributes:
        name: host name of the kernel, or of the function: ``aten::zero_``.
        traffic: what it moved.
    """

    name: str
    traffic: Traffic


def total(steps: Sequence[Step]) -> Traffic:
    """Of a whole pass."""
    return sum((step.traffic for step in steps), Traffic())


class CountedLibrary:
    """A library compiled for counting that remembers each launch; it takes the place of the library in a pass.

    Args:
        library: compiled with ``RunMode.TRAFFIC``.
    """

    def __init__(self, library: MetalLibrary) -> None:
        self._library = library
        self.steps: list[Step] = []

    @property
    def kernel_names(self) -> list[str]:
        """Host names of all kernels."""
        return self._library.kernel_names

    def kernel(self, name: str) -> _CountedKernel:
        """The kernel with this host name."""
        return _CountedKernel(self, self._library, name)


class _CountedKernel:
    def __init__(self, counted: CountedLibrary, library: MetalLibrary, name: str) -> None:
        self._counted, self._library, self._name = counted, library, name
        self._kernel = library.kernel(name)
        self.signature = self._kernel.signature

    def __call__(self, *args: Any, **call: Any) -> None:
        self._library.traffic = {}
        self._kernel(*args, **call)
        self._counted.steps.append(Step(self._name, Traffic(**self._library.traffic)))


# Whether they read their second argument; each writes its first.
_READS = {torch.ops.aten.zero_.default: False, torch.ops.aten.copy_.default: True}


class _PyTorchsOwn(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the functions of :data:`_READS` into ``steps``."""

    def __init__(self, steps: list[Step]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._steps = steps

    def __torch_dispatch__(
        self, function: Any, types: Any, arguments: tuple[Any, ...] = (), keywords: dict[str, Any] | None = None
    ) -> Any:
        if function in _READS:
            name = f"aten::{function.overloadpacket.__name__}"
            self._steps.append(Step(name, _elementwise(*arguments[: 1 + _READS[function]])))
        return function(*arguments, **(keywords or {}))


def _elementwise(written: Tensor, read: Tensor | None = None) -> Traffic:
    """Each element once, in memory's order and so in whole sectors."""
    count, stored = written.numel(), written.numel() * written.element_size()
    if read is None:
        return Traffic(stores=count, stored_bytes=stored, store_sectors=_sectors(stored))
    loaded = count * read.element_size()
    return Traffic(count, count, 0, loaded, stored, _sectors(loaded), _sectors(stored))


def _sectors(size: int) -> int:
    return -(-size // SECTOR_BYTES)


def count(library: CountedLibrary, work: Pass) -> tuple[Step, ...]:
    """Run a pass over ``library``'s kernels once; its steps in order."""
    library.steps.clear()
    with _PyTorchsOwn(library.steps):
        work()
    return tuple(library.steps)
