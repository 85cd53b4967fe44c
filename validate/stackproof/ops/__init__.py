"""Proofs of single ops: what to run their kernels on, and what must come out."""

from stackproof.ops.model import CaseResult, LeftToTreeError, OpProof, WorkUnit
from stackproof.ops.registry import proof_for, proven_ops

__all__ = ["CaseResult", "LeftToTreeError", "OpProof", "WorkUnit", "proof_for", "proven_ops"]
