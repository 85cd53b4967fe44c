"""What is known of the gate "host-run" before it is imported."""

from __future__ import annotations

from stackproof.gates.common.options import KindsOptions
from stackproof.gates.spec import Keeps, Spec

SPEC = Spec(
    __name__,
    "host-run",
    "dispatcher, autograd, host function and kernels together on a stand-in device",
    KindsOptions,
    needs=("torch", "numpy", "ziglang", "lief", "expecttest"),
    keeps=Keeps.PROGRAMS,
    runs="the stack's host functions and kernels",
    proves_kernels=True,
)
