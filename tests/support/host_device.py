"""A device for the fast path that every machine has: the same registration and calls, kernels compiled for the host."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from stackproof.engines.kernels import KernelLibrary
from stackproof.engines.metal import compile_library


class StandInDevice:
    """CPU tensors and kernels compiled for the host, reached through the same registration and the same calls.

    Args:
        cache: folder for sources and compiled libraries.
    """

    name = "cpu"
    run_mode = "fast path on the host library"
    limits: tuple[str, ...] = (
        "The fast path's Apple half was not run: kernels were compiled for this host, tensors were on the CPU.",
    )

    def __init__(self, cache: Path) -> None:
        self._cache = cache

    def compile(self, source: str) -> KernelLibrary:
        """Compile for the host."""
        folder = self._cache / "fastpath" / hashlib.sha256(source.encode()).hexdigest()[:20]
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / "embedded.metal"
        if not file.is_file() or file.read_text() != source:
            file.write_text(source)
        library: KernelLibrary = compile_library(file, [], cache=self._cache)
        return library

    @contextlib.contextmanager
    def dispatching(self, op: str) -> Iterator[None]:
        """Send the op's calls to the MPS key, which CPU tensors do not carry."""
        with _ToMpsKey(op):
            yield


class _ToMpsKey(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Below autograd: one op goes to the function of the MPS key, everything else where it belongs."""

    def __init__(self, op: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._op = getattr(torch.ops.aten, op).default

    def __torch_dispatch__(
        self, function: Any, types: Any, arguments: tuple[Any, ...] = (), keywords: dict[str, Any] | None = None
    ) -> Any:
        if function is self._op:
            return function._op_dk(torch._C.DispatchKey.MPS, *arguments, **(keywords or {}))
        return function(*arguments, **(keywords or {}))
