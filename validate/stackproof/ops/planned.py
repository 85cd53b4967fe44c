"""The kernels of a series as it would be applied to a tree: no branch is made, and nothing is written but a cache.

What is measured or tested before it is applied has to be the text that would land, and not a copy of it.
"""

from __future__ import annotations

from pathlib import Path

from patchstack.errors import UsageError
from patchstack.planning import plan_stack
from patchstack.series import load_series
from patchstack.tree.git import Repository
from stackproof.ops import OpProof
from stackproof.ops.sources import OpSource, written_source


def planned_source(
    repository: Path, onto: str, change: str, proof: OpProof, cache: Path, series: str | None = None
) -> OpSource:
    """The kernels of an op in the tree that a change and those below it would leave.

    Args:
        repository: a PyTorch checkout.
        onto: the commit that the series would be put on.
        change: id of the change.
        proof: of the op.
        cache: the files are written to a folder of it that is named by their content.
        series: name of the series; the only one by default.

    Raises:
        PatchstackError: no such commit or change, the series does not apply, or the tree lacks the op's files.
    """
    with Repository.open(repository) as checkout:
        commit = checkout.resolve_commit(onto)
        if commit is None:
            raise UsageError("no such commit", where=onto)
        plan = plan_stack(checkout, load_series(series), commit)
        found = next((one for one in plan.changes if one.change.id == change), None)
        if found is None:
            known = ", ".join(one.change.id for one in plan.changes)
            raise UsageError("the series has no such change", where=change, expected=f"one of {known}")
        if plan.blocked:
            stopped = plan.blocked[0].change.id
            raise UsageError(f"change '{stopped}' does not apply to {onto}", next_command="apply-stack --dry-run")
        return written_source(found.tree, proof, cache)
