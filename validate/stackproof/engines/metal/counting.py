"""Adds up what several launches load, store and add atomically: a library's own counts are those of the last one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from stackproof.engines.metal.library import Extent, MetalKernel, MetalLibrary
from stackproof.engines.metal.model import Signature


class CountingLibrary:
    """The kernels of a library that was compiled for ``RunMode.TRAFFIC``, counted together.

    Attributes:
        traffic: sums over all launches since this object was made, by name of the counter.
    """

    def __init__(self, library: MetalLibrary) -> None:
        self.traffic: Counter[str] = Counter()
        self._library = library

    def __getattr__(self, name: str) -> _CountingKernel:
        return _CountingKernel(self._library, getattr(self._library, name), self.traffic)

    def __dir__(self) -> Iterable[str]:
        return dir(self._library)


class _CountingKernel:
    def __init__(self, library: MetalLibrary, kernel: MetalKernel, traffic: Counter[str]) -> None:
        self._library = library
        self._kernel = kernel
        self._traffic = traffic

    @property
    def signature(self) -> Signature:
        return self._kernel.signature

    def __call__(
        self, *args: Any, threads: Extent | None = None, group_size: int | Sequence[int] | None = None
    ) -> None:
        self._kernel(*args, threads=threads, group_size=group_size)
        self._traffic.update(self._library.traffic)
