"""Where the fast path compiles and runs kernels: a Mac's GPU, through a stock torch wheel."""

from __future__ import annotations

import contextlib
from typing import Protocol

import torch

from stackproof.engines.kernels import KernelLibrary


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
