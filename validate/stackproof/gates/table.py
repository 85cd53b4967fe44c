"""The gates, in the order of the report: one line for the folder of each."""

from __future__ import annotations

from importlib import import_module

from stackproof.gates.spec import Spec

_FOLDERS = (
    "metal_check",
    "metal_run",
    "host_check",
    "host_run",
    "op_run",
    "build",
    "test_mps",
    "fc_window",
    "c_shim",
    "lint",
    "apple_kernels",
    "bench",
)

GATES: tuple[Spec, ...] = tuple(import_module(f"stackproof.gates.{folder}.spec").SPEC for folder in _FOLDERS)

PROVING = frozenset(spec.name for spec in GATES if spec.proves_kernels)
"""The gates that prove kernels by executing them."""
