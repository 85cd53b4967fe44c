"""A series in which some changes are what a person made of them, so that a plan goes on above these."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from patchstack.capture.choose import is_shim
from patchstack.capture.commits import read_commit
from patchstack.capture.model import FileChange
from patchstack.edits import Edit
from patchstack.planning import StackPlan
from patchstack.resolve.model import ABORT, ResolvedFile, ResolveError
from patchstack.series import Change, Series
from patchstack.tree.git import GitCommitHash, Repository


@dataclass(frozen=True)
class Result:
    """What a person made of a change.

    Attributes:
        commit: the commit.
        parent: the one below it.
        files: what it changes.
    """

    commit: GitCommitHash
    parent: GitCommitHash
    files: tuple[FileChange, ...]

    @property
    def contents(self) -> dict[str, bytes]:
        return {file.path: file.after for file in self.files}


def read_result(repository: Repository, commit: str) -> Result:
    """The result that a commit holds.

    Raises:
        CaptureError: it holds what no series could say: a deleted file, a link, nothing at all.
    """
    (parent,) = repository.commit(commit).parents
    made = GitCommitHash(commit)
    return Result(made, parent, read_commit(repository, made, parent).files)


def with_results(series: Series, results: Mapping[str, Result]) -> Series:
    """The series, with the edits of each change replaced by its results."""
    changes = tuple(_settled(change, results.get(change.id)) for change in series.changes)
    return dataclasses.replace(series, changes=changes)


def _settled(change: Change, result: Result | None) -> Change:
    if result is None:
        return change
    where = change.edits[0].where
    files = result.contents
    edits: list[Edit] = [ResolvedFile(path=path, content=text, where=where) for path, text in files.items()]
    edits += [edit for edit in change.edits if is_shim(edit.path) and edit.path not in files]  # torchgen makes it
    return dataclasses.replace(change, edits=tuple(edits), upstream=())


def require_same_below(
    repository: Repository, plan: StackPlan, results: Mapping[str, Result], trees: list[str]
) -> None:
    """Refuse results that were made on other trees than those below their changes now.

    Args:
        trees: those of the commits of the plan, bottom first.

    Raises:
        ResolveError: the series was edited meanwhile.
    """
    below = [repository.commit(plan.onto).tree, *trees]
    for change, tree in zip(plan.commits, below, strict=False):
        result = results.get(change.change.id)
        if result is not None and repository.commit(result.parent).tree != tree:
            raise ResolveError(
                f"what is below change '{change.change.id}' is not what it was resolved on: the series was edited",
                where=str(plan.series.manifest),
                next_command=ABORT,
            )
