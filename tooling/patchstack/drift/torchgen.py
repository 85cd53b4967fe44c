"""Regenerated headers, judged at the ends only.

torchgen takes seconds a tree, and dozens of trees would be minutes. What a header becomes is its own affair: it depends
on torchgen and the YAML files, never on an anchor. So it is run on the last tree, and on the first one where the last
is refused.
"""

from __future__ import annotations

from collections.abc import Mapping

from patchstack.drift.condition import Facet
from patchstack.drift.model import When
from patchstack.edits.regenerate import RegenerateShim
from patchstack.errors import MissingObjectError, TreeError
from patchstack.planning import plan_stack
from patchstack.series import Series
from patchstack.tree.git import GitCommitHash, Repository


def refused_by_torchgen(
    repository: Repository, series: Series, since: GitCommitHash, onto: GitCommitHash
) -> Mapping[str, tuple[Facet, When]]:
    """By change id, a header that cannot be regenerated at ``onto``, and whether it could at ``since``.

    Raises:
        MissingObjectError: torchgen cannot be laid out.
    """
    if not any(isinstance(edit, RegenerateShim) for change in series.changes for edit in change.edits):
        return {}
    now = _refused(repository, series, onto)
    before = _refused(repository, series, since) if now else {}
    return {name: (facet, When.BEFORE if name in before else When.BETWEEN) for name, facet in now.items()}


def _refused(repository: Repository, series: Series, commit: GitCommitHash) -> Mapping[str, Facet]:
    try:
        plan = plan_stack(repository, series, commit, closure=False)
    except MissingObjectError:
        raise
    except TreeError:  # which the replay reports, with what is missing
        return {}
    found: dict[str, Facet] = {}
    for change in plan.changes:
        for edit in change.edits:
            conflict = edit.outcome.conflict
            if isinstance(edit.edit, RegenerateShim) and conflict in change.conflicts and conflict is not None:
                name = f"torchgen: {edit.edit.path}"
                found[change.change.id] = Facet(
                    name, "refused", True, edit.edit.path, f"{conflict} (torchgen is run at both ends only)", conflict
                )
    return found
