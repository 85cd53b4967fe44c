"""What is known of the gate "op-run" before it is imported."""

from __future__ import annotations

from stackproof.gates.common.options import KindsOptions
from stackproof.gates.spec import Keeps, Spec

SPEC = Spec(
    __name__,
    "op-run",
    "every other op that the stack touches, from PyTorch's own samples on the stand-in device",
    KindsOptions,
    needs=("torch", "numpy", "ziglang", "lief", "expecttest"),
    keeps=Keeps.PROGRAMS,
    runs="the stack's host functions and kernels",
    proves_kernels=True,
)
