"""Metal compute kernels on any host: type-checked with their address spaces, executed, and watched while they run.

What calls kernels needs torch and is imported on first use: checking them, and reading Apple's, goes without.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from stackproof.engines.errors import CallError, CompileError, Diagnostic, MetalError, RewriteError, ToolchainError
from stackproof.engines.metal.model import (
    ALL_DETECTORS,
    ElementType,
    Parameter,
    ParameterKind,
    Report,
    ReportKind,
    RunMode,
    Signature,
    ThreadId,
)

if TYPE_CHECKING:
    from stackproof.engines.metal.library import MetalKernel, MetalLibrary, compile_library
    from stackproof.engines.metal.variants import fast_math_sensitivity, order_dependence

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

_NEED_TORCH = {
    "MetalKernel": "library",
    "MetalLibrary": "library",
    "compile_library": "library",
    "fast_math_sensitivity": "variants",
    "order_dependence": "variants",
}


def __getattr__(name: str) -> Any:
    if name not in _NEED_TORCH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_NEED_TORCH[name]}"), name)
