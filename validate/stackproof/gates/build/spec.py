"""What is known of the gate "build" before it is imported."""

from __future__ import annotations

from stackproof.gates.common.options import OpsOptions
from stackproof.gates.spec import Spec

SPEC = Spec(
    __name__,
    "build",
    "an incremental PyTorch build of the stack (macOS)",
    OpsOptions,
    limits=(
        (
            "Built for this Mac without CUDA, distributed, oneDNN, FBGEMM, XNNPACK, Kineto and the C++ tests; "
            "CI builds more."
        ),
    ),
    runs="the tree's build",
)
