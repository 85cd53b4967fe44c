"""The list of gates, in the order of the report."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from importlib import import_module

from stackproof.model import Gate


class Keeps(enum.Enum):
    """What a gate builds in the cache, and so needs of it."""

    NOTHING = "nothing"
    FILES = "files"
    PROGRAMS = "programs"  # libraries that it loads, too


@dataclass(frozen=True)
class GateEntry:
    """Where a gate is found.

    Attributes:
        name: as typed after ``--only``.
        summary: one line for ``--list``.
        factory: ``module:callable`` that makes the gate. Imported on use only, since some gates need packages that
            others do not.
        keeps: what it builds in the cache.
        runs: whose code it executes, beside that of installed packages; empty where it only reads and compiles.
        can_do_without: whether it comes to a result without running that, where it is not needed or was run before.
        needs: importable packages without which the gate is not run; those that every installation has are left out.
    """

    name: str
    summary: str
    factory: str
    needs: tuple[str, ...] = ()
    keeps: Keeps = Keeps.NOTHING
    runs: str = ""
    can_do_without: bool = False

    def load(self) -> Gate:
        """Import and make the gate."""
        module, _, attribute = self.factory.partition(":")
        gate: Gate = getattr(import_module(module), attribute)()
        return gate


_TENSORS = ("torch", "numpy")
_HOST = (*_TENSORS, "ziglang")

GATES: tuple[GateEntry, ...] = (
    GateEntry(
        "metal-check",
        "the kernels compile as Metal would have them (address spaces, Metal version, static rules)",
        "stackproof.metal.check:MetalCheckGate",
        keeps=Keeps.FILES,
    ),
    GateEntry(
        "metal-run",
        "the kernels run on the host: right values, no race, no access outside, nothing undefined",
        "stackproof.metal_run.gate:MetalRunGate",
        needs=_TENSORS,
        keeps=Keeps.PROGRAMS,
        runs="the stack's kernels",
    ),
    GateEntry(
        "host-check",
        "the Objective-C++ host functions compile against the tree's ATen headers",
        "stackproof.host.check:HostCheckGate",
        needs=_HOST,
        keeps=Keeps.FILES,
        runs="the tree's torchgen",
        can_do_without=True,
    ),
    GateEntry(
        "host-run",
        "dispatcher, autograd, host function and kernels together on a stand-in device",
        "stackproof.host.run:HostRunGate",
        needs=(*_HOST, "expecttest"),
        keeps=Keeps.PROGRAMS,
        runs="the stack's host functions and kernels",
    ),
    GateEntry(
        "op-run",
        "every other op that the stack touches, from PyTorch's own samples on the stand-in device",
        "stackproof.op_run.gate:OpRunGate",
        needs=(*_HOST, "expecttest"),
        keeps=Keeps.PROGRAMS,
        runs="the stack's host functions and kernels",
    ),
    GateEntry(
        "build",
        "an incremental PyTorch build of the stack (macOS)",
        "stackproof.build.gate:BuildGate",
        runs="the tree's build",
    ),
    GateEntry(
        "test-mps",
        "the tests of test_mps.py that the series touches",
        "stackproof.host.mps_tests:TestMpsGate",
        needs=(*_HOST, "expecttest"),
        keeps=Keeps.PROGRAMS,
        runs="the tree's tests, the stack's host functions and kernels",
    ),
    GateEntry(
        "fc-window",
        "schema changes: forward and backward compatibility, and the two-week window",
        "stackproof.compat.gate:FcWindowGate",
        runs="the tree's torchgen, for entries that the installed torch cannot parse",
        can_do_without=True,
    ),
    GateEntry(
        "c-shim",
        "C-shim headers: no declaration changed, none stale",
        "stackproof.cshim.gate:CShimGate",
        runs="the tree's torchgen",
        can_do_without=True,
    ),
    GateEntry("lint", "what lands is formatted as the tree's own linters want it", "stackproof.lint.gate:LintGate"),
    GateEntry(
        "apple-kernels",
        "our Metal headers, layouts and executor agree with what Apple's compiler made of the same sources",
        "stackproof.apple.gate:AppleKernelsGate",
        needs=(*_TENSORS, "lief", "llvmlite"),
        keeps=Keeps.PROGRAMS,
        runs="the stack's kernels",
    ),
    GateEntry(
        "bench",
        "what the backward passes cost: traffic counted on the host, or time on a GPU beside PyTorch's own kernel",
        "stackproof.bench.gate:BenchGate",
        needs=_TENSORS,
        keeps=Keeps.PROGRAMS,
        runs="the stack's kernels",
    ),
)

EXECUTING = frozenset({"metal-run", "host-run", "op-run", "test-mps"})
"""The gates that prove kernels by executing them."""
