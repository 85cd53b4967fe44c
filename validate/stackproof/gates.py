"""The list of gates, in the order of the report.

A gate whose module is not written yet is here all the same: its row says "not run" instead of being missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

from stackproof.model import Gate, GateContext, GateResult, Verdict


@dataclass(frozen=True)
class GateEntry:
    """Where a gate is found.

    Attributes:
        name: as typed after ``--only``.
        summary: one line for ``--list``.
        factory: ``module:callable`` that makes the gate; empty while it does not exist. Imported on use only, since
            some gates need packages (torch, a compiler) that others do not.
    """

    name: str
    summary: str
    factory: str = ""

    def load(self) -> Gate:
        """Import and make the gate."""
        if not self.factory:
            return PlannedGate(self.name, self.summary)
        module, _, attribute = self.factory.partition(":")
        gate: Gate = getattr(import_module(module), attribute)()
        return gate


@dataclass(frozen=True)
class PlannedGate:
    """A gate of the design that this version does not have."""

    name: str
    summary: str

    def run(self, context: GateContext) -> GateResult:
        return GateResult(
            self.name, Verdict.NOT_RUN, reason="this version of validate-stack does not have this gate yet"
        )


GATES: tuple[GateEntry, ...] = (
    GateEntry(
        "metal-check",
        "the kernels compile as Metal would have them (address spaces, Metal version, static rules)",
        "stackproof.metal.check:MetalCheckGate",
    ),
    GateEntry(
        "metal-run",
        "the kernels run on the host: right values, no race, no access outside, nothing undefined",
        "stackproof.metal_run.gate:MetalRunGate",
    ),
    GateEntry(
        "host-check",
        "the Objective-C++ host functions compile against the tree's ATen headers",
        "stackproof.host.check:HostCheckGate",
    ),
    GateEntry(
        "host-run",
        "dispatcher, autograd, host function and kernels together on a stand-in device",
        "stackproof.host.run:HostRunGate",
    ),
    GateEntry("build", "an incremental PyTorch build of the stack (macOS)", "stackproof.build.gate:BuildGate"),
    GateEntry("test-mps", "the tests of test_mps.py that the series touches", "stackproof.host.mps_tests:TestMpsGate"),
    GateEntry(
        "fc-window",
        "schema changes: forward and backward compatibility, and the two-week window",
        "stackproof.compat.gate:FcWindowGate",
    ),
    GateEntry("c-shim", "C-shim headers: no declaration changed, none stale", "stackproof.cshim.gate:CShimGate"),
    GateEntry("lint", "what lands is formatted as the tree's own linters want it", "stackproof.lint.gate:LintGate"),
    GateEntry(
        "apple-kernels",
        "our Metal headers, layouts and executor agree with what Apple's compiler made of the same sources",
        "stackproof.apple.gate:AppleKernelsGate",
    ),
    GateEntry(
        "bench",
        "what the backward passes cost: traffic counted on the host, or time on a GPU beside PyTorch's own kernel",
        "stackproof.bench.gate:BenchGate",
    ),
)
