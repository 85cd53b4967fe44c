"""Which op has a proof. The series manifest names ops; nothing else in the project asks for one by name."""

from __future__ import annotations

from importlib import import_module

from stackproof.ops.model import OpProof

# ``module:callable`` that makes the proof; imported on use, since proofs need torch.
_PROOFS = {
    "grid_sampler_2d_backward": "stackproof.ops.grid_sampler_2d_backward.proof:GridSampler2dBackwardProof",
}


def proven_ops() -> tuple[str, ...]:
    """The ops that have a proof, by aten name."""
    return tuple(_PROOFS)


def proof_for(op: str) -> OpProof | None:
    """The proof of an op, or ``None`` where nobody wrote one."""
    if op not in _PROOFS:
        return None
    module, _, attribute = _PROOFS[op].partition(":")
    proof: OpProof = getattr(import_module(module), attribute)()
    return proof
