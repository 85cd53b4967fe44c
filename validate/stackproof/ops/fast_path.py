"""A backward in Python, registered for the MPS key as if it were the host function."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import torch

from stackproof.engines.gpu.device import Device
from stackproof.engines.kernels import Kernels
from stackproof.ops import CaseResult
from stackproof.ops.registry import make, makers_of

OpFunction = Callable[..., Any]


class FastPathOp(Protocol):
    """What the fast path knows about one op."""

    def function(self, kernels: Kernels) -> OpFunction:
        """The op in Python over its kernels: takes and returns what the op's schema says, on any device."""
        ...

    def through_autograd(self, device: Device) -> Iterator[CaseResult]:
        """Call the public function whose gradient the op is, and compare; the op is registered meanwhile."""
        ...


def fast_path_for(op: str) -> FastPathOp | None:
    """What is known about an op, or ``None``: its kernels are then run, but not through autograd."""
    made: FastPathOp | None = make(makers_of(op).fast_path)
    return made


def has_mps_kernel(op: str) -> bool:
    """Whether the installed torch has a kernel of its own for the op on MPS."""
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{op}", "MPS"))


@contextlib.contextmanager
def registered(op: str, function: OpFunction) -> Iterator[None]:
    """While active, ``aten::op`` on MPS is ``function``; a kernel that was there before comes back afterwards."""
    library = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
    try:
        library.impl(op, function, "MPS")  # type: ignore[no-untyped-call]
        yield
    finally:
        library._destroy()  # type: ignore[no-untyped-call]
