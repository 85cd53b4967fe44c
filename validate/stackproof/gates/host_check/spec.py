"""What is known of the gate "host-check" before it is imported."""

from __future__ import annotations

from stackproof.gates.spec import Keeps, Spec

SPEC = Spec(
    __name__,
    "host-check",
    "the Objective-C++ host functions compile against the tree's ATen headers",
    limits=(
        (
            "The system headers are stubs: that Apple's frameworks have these methods, on every supported macOS, "
            "is not shown."
        ),
        "The arm64 object was made by clang with this project's headers, not by Apple's compiler, and was not linked.",
    ),
    needs=("torch", "numpy", "ziglang", "lief"),
    keeps=Keeps.FILES,
    runs="the tree's torchgen",
    can_do_without=True,
)
