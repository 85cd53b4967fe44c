"""The two devices of the fast path: a Mac's GPU, and a stand-in with the same call shape for every other machine."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from stackproof.metal import compile_library
from stackproof.ops import KernelLibrary


class Device(Protocol):
    """Where kernels are compiled and run.

    Attributes:
        name: of the torch device that tensors are put on.
        run_mode: what the report calls a run on it.
        limits: what a run on it does not show.
    """

    name: str
    run_mode: str
    limits: tuple[str, ...]

    def compile(self, source: str) -> KernelLibrary:
        """Compile Metal source; raises what the compiler raises."""
        ...

    def dispatching(self, op: str) -> contextlib.AbstractContextManager[None]:
        """While active, ``aten::op`` on this device's tensors is the function registered for the MPS key."""
        ...


class MpsDevice:
    """An Apple GPU, through a stock torch wheel."""

    name = "mps"
    run_mode = "compile_shader on mps, stock torch"
    limits: tuple[str, ...] = (
        "The backward was registered from Python: the stack's Objective-C++ host function was not run.",
        "Tensors beyond the size that is copied to the GPU were left out.",
    )

    def compile(self, source: str) -> KernelLibrary:
        """Compile with Apple's compiler, as torch does at run time."""
        library: KernelLibrary = torch.mps.compile_shader(source)
        return library

    def dispatching(self, op: str) -> contextlib.AbstractContextManager[None]:
        """Nothing to do: tensors on ``mps`` get there by themselves."""
        return contextlib.nullcontext()


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
