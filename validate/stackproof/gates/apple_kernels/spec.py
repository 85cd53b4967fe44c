"""What is known of the gate "apple-kernels" before it is imported."""

from __future__ import annotations

from stackproof.gates.common.options import MatchOptions
from stackproof.gates.spec import Keeps, Spec

SPEC = Spec(
    __name__,
    "apple-kernels",
    "our Metal headers, layouts and executor agree with what Apple's compiler made of the same sources",
    MatchOptions,
    limits=(
        "Apple's compiler was not run: its output in a released wheel was translated and run on this host.",
        "What Metal leaves open (conversions out of range, last places, order of lanes) is this project's choice here.",
        "Nothing here shows an Apple GPU's precision, memory order or speed.",
    ),
    needs=("torch", "numpy", "lief", "llvmlite"),
    keeps=Keeps.PROGRAMS,
    runs="the stack's kernels",
)
