"""The kernels of both commits, written where a compiler finds them."""

from __future__ import annotations

from collections.abc import Sequence

from patchstack.tree.git import GitCommitHash, Tree
from stackproof.model import Finding, GateContext
from stackproof.ops import OpProof, proof_for
from stackproof.ops.grid_sampler.bench.rows import Row
from stackproof.ops.sources import OpSource, written_source

BASE, HEAD = "base", "head"


def sources_of(context: GateContext, rows: Sequence[Row]) -> dict[str, OpSource]:
    """Of the head; and of the base if it has backward kernels, and others than the head.

    Args:
        context: the range.
        rows: of ops that have one source file.

    Raises:
        PatchstackError: the head has no such source.
    """
    proof = proof_for(rows[0].op)
    assert proof is not None
    sources = {HEAD: _source(context, context.head, proof)}
    base = Tree.at(context.repository, context.base)
    if all(base.exists(path) for path in (proof.source, *proof.headers)):
        before = _source(context, context.base, proof)
        if before.root != sources[HEAD].root and _has_backward(before):
            sources[BASE] = before
    return sources


def rows_that_fail(findings: Sequence[Finding]) -> int:
    """How many rows findings fail that begin with the label of one."""
    return len({one.message.partition(": ")[0] for one in findings if one.fails})


def _source(context: GateContext, commit: GitCommitHash, proof: OpProof) -> OpSource:
    return written_source(Tree.at(context.repository, commit), proof, context.cache)


def _has_backward(source: OpSource) -> bool:
    return b"_backward" in (source.root / source.path).read_bytes()
