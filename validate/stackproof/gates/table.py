"""The list of gates, in the order of the report."""

from __future__ import annotations

from stackproof.gates.spec import GateEntry, Keeps

_TENSORS = ("torch", "numpy")
_HOST = (*_TENSORS, "ziglang", "lief")

GATES: tuple[GateEntry, ...] = (
    GateEntry(
        "metal-check",
        "the kernels compile as Metal would have them (address spaces, Metal version, static rules)",
        "stackproof.gates.metal_check.gate:MetalCheckGate",
        keeps=Keeps.FILES,
    ),
    GateEntry(
        "metal-run",
        "the kernels run on the host: right values, no race, no access outside, nothing undefined",
        "stackproof.gates.metal_run.gate:MetalRunGate",
        needs=_TENSORS,
        keeps=Keeps.PROGRAMS,
        runs="the stack's kernels",
    ),
    GateEntry(
        "host-check",
        "the Objective-C++ host functions compile against the tree's ATen headers",
        "stackproof.gates.host_check.gate:HostCheckGate",
        needs=_HOST,
        keeps=Keeps.FILES,
        runs="the tree's torchgen",
        can_do_without=True,
    ),
    GateEntry(
        "host-run",
        "dispatcher, autograd, host function and kernels together on a stand-in device",
        "stackproof.gates.host_run.gate:HostRunGate",
        needs=(*_HOST, "expecttest"),
        keeps=Keeps.PROGRAMS,
        runs="the stack's host functions and kernels",
    ),
    GateEntry(
        "op-run",
        "every other op that the stack touches, from PyTorch's own samples on the stand-in device",
        "stackproof.gates.op_run.gate:OpRunGate",
        needs=(*_HOST, "expecttest"),
        keeps=Keeps.PROGRAMS,
        runs="the stack's host functions and kernels",
    ),
    GateEntry(
        "build",
        "an incremental PyTorch build of the stack (macOS)",
        "stackproof.gates.build.gate:BuildGate",
        runs="the tree's build",
    ),
    GateEntry(
        "test-mps",
        "the tests of test_mps.py that the series touches",
        "stackproof.gates.test_mps.gate:TestMpsGate",
        needs=(*_HOST, "expecttest"),
        keeps=Keeps.PROGRAMS,
        runs="the tree's tests, the stack's host functions and kernels",
    ),
    GateEntry(
        "fc-window",
        "schema changes: forward and backward compatibility, and the two-week window",
        "stackproof.gates.fc_window.gate:FcWindowGate",
        runs="the tree's torchgen, for entries that the installed torch cannot parse",
        can_do_without=True,
    ),
    GateEntry(
        "c-shim",
        "C-shim headers: no declaration changed, none stale",
        "stackproof.gates.c_shim.gate:CShimGate",
        runs="the tree's torchgen",
        can_do_without=True,
    ),
    GateEntry(
        "lint", "what lands is formatted as the tree's own linters want it", "stackproof.gates.lint.gate:LintGate"
    ),
    GateEntry(
        "apple-kernels",
        "our Metal headers, layouts and executor agree with what Apple's compiler made of the same sources",
        "stackproof.gates.apple_kernels.gate:AppleKernelsGate",
        needs=(*_TENSORS, "lief", "llvmlite"),
        keeps=Keeps.PROGRAMS,
        runs="the stack's kernels",
    ),
    GateEntry(
        "bench",
        "what the backward passes cost: traffic counted on the host, or time on a GPU beside PyTorch's own kernel",
        "stackproof.gates.bench.gate:BenchGate",
        needs=_TENSORS,
        keeps=Keeps.PROGRAMS,
        runs="the stack's kernels",
    ),
)

EXECUTING = frozenset({"metal-run", "host-run", "op-run", "test-mps"})
"""The gates that prove kernels by executing them."""
