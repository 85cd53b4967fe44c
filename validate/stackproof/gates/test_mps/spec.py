"""What is known of the gate "test-mps" before it is imported, and its options."""

from __future__ import annotations

from dataclasses import dataclass

from stackproof.gates.common.options import OpsOptions, SmallOptions, option
from stackproof.gates.spec import Keeps, Spec


@dataclass(frozen=True)
class Options(SmallOptions, OpsOptions):
    """Parts of the tests; the small table is for kernels on a Mac's GPU.

    Attributes:
        tests: parts of the names of tests, instead of those that follow from the stack.
    """

    tests: tuple[str, ...] = option((), "Only tests whose name has one of these texts.", "TEXT,..")


SPEC = Spec(
    __name__,
    "test-mps",
    "the tests of test_mps.py that the series touches",
    Options,
    limits=(
        "The tests ran on the stand-in device: no Metal, no Apple GPU, no macOS.",
        "The installed torch ran them; host functions, kernels, tests and lists of expected failures are the stack's.",
    ),
    needs=("torch", "numpy", "ziglang", "lief", "expecttest"),
    keeps=Keeps.PROGRAMS,
    runs="the tree's tests, the stack's host functions and kernels",
    proves_kernels=True,
)
