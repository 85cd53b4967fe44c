"""What is known of the gate "metal-check" before it is imported."""

from __future__ import annotations

from stackproof.gates.spec import Keeps, Spec

SPEC = Spec(
    __name__,
    "metal-check",
    "the kernels compile as Metal would have them (address spaces, Metal version, static rules)",
    limits=(
        "Clang's C++ for OpenCL stands in for Apple's compiler, not found here: what only that rejects was not seen.",
        "The Metal library headers are this project's own: overloads that Apple adds or leaves out may differ.",
    ),
    keeps=Keeps.FILES,
)
