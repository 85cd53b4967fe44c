"""Metal compute kernels on any host: type-checked with their address spaces, executed, and watched while they run."""

from __future__ import annotations

from stackproof.metal.errors import CallError, CompileError, MetalError, RewriteError, ToolchainError
from stackproof.metal.library import MetalKernel, MetalLibrary, compile_library
from stackproof.metal.model import (
    ALL_DETECTORS,
    Diagnostic,
    ElementType,
    Parameter,
    ParameterKind,
    Report,
    ReportKind,
    RunMode,
    Signature,
    ThreadId,
)
from stackproof.metal.variants import fast_math_sensitivity, order_dependence

__all__ = [
    "ALL_DETECTORS",
    "CallError",
    "CompileError",
    "Diagnostic",
    "ElementType",
    "MetalError",
    "MetalKernel",
    "MetalLibrary",
    "Parameter",
    "ParameterKind",
    "Report",
    "ReportKind",
    "RewriteError",
    "RunMode",
    "Signature",
    "ThreadId",
    "ToolchainError",
    "compile_library",
    "fast_math_sensitivity",
    "order_dependence",
]
