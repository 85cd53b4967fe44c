"""What is known of the gate "c-shim" before it is imported."""

from __future__ import annotations

from stackproof.gates.spec import Spec

SPEC = Spec(
    __name__,
    "c-shim",
    "C-shim headers: no declaration changed, none stale",
    limits=(
        "declarations are compared as text: a type that keeps its name and changes its size elsewhere is not seen",
    ),
    runs="the tree's torchgen",
    can_do_without=True,
)
