"""Proofs of single ops: what to run their kernels on, and what must come out."""

from stackproof.ops.model import CaseResult, KernelFunction, KernelLibrary, Kernels, LeftToTreeError, OpProof, WorkUnit
from stackproof.ops.registry import proof_for, proven_ops

__all__ = [
    "CaseResult",
    "KernelFunction",
    "KernelLibrary",
    "Kernels",
    "LeftToTreeError",
    "OpProof",
    "WorkUnit",
    "proof_for",
    "proven_ops",
]
