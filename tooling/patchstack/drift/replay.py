"""Plan a series on many trees of one history, each kind of tree once.

What a plan comes to depends on the series' files and nothing else of a tree, so trees with the same blobs there are one
tree. torchgen is left out: it takes seconds a tree, and what it makes of the header changes only with torchgen itself
and the YAML files. It is run at the ends, see :mod:`patchstack.drift.find`. Closure is left out too: it depends on
headers all over the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import ClassVar

from patchstack.drift.condition import Condition, conditions_of, refused_conditions
from patchstack.edits import Edit, Outcome, Rung, Status
from patchstack.edits.regenerate import RegenerateShim
from patchstack.errors import MissingObjectError, TreeError
from patchstack.planning import plan_stack
from patchstack.planning.memo import Memory
from patchstack.series import Series
from patchstack.tree.git import GitCommitHash, Repository, Tree, TreeEntry
from patchstack.tree.native_functions import FUNCTIONS_PATH

Key = tuple[TreeEntry | None, ...]


@dataclass(frozen=True, kw_only=True)
class StoredShim(RegenerateShim):
    """The edit without torchgen: a header that lacks the declarations is taken to be one that can get them."""

    runs_torchgen: ClassVar[bool] = False

    def plan(self, tree: Tree) -> Outcome:
        settled = self.plan_without_torchgen(tree)
        return settled or Outcome(Status.APPLIES, self.anchor, rung=Rung.REGENERATED)


def paths_of(series: Series) -> tuple[str, ...]:
    """Every file of a tree that a plan of the series looks at."""
    paths = {FUNCTIONS_PATH}
    for change in series.changes:
        for items in (change.edits, change.upstream, change.requires, change.only_where):
            paths.update(item.path for item in items)
        for edit in change.edits:
            paths.update(one.path for listed in (edit.only_where, *edit.unless) for one in listed)
    return tuple(sorted(paths))


class Replay:
    """The conditions of the changes on trees of a history.

    Attributes:
        paths: the files that matter.
        visited: how many trees were planned on.
    """

    def __init__(self, repository: Repository, series: Series, on_visit: Callable[[int], None]) -> None:
        self.repository = repository
        self.paths = paths_of(series)
        self.visited = 0
        self._series = _without_torchgen(series)
        self._on_visit = on_visit
        self._memory = Memory()
        self._keys: dict[GitCommitHash, Key] = {}
        self._conditions: dict[Key, Mapping[str, Condition]] = {}

    def is_known(self, commit: GitCommitHash) -> bool:
        """Whether :meth:`at` costs nothing."""
        return self._key(commit) in self._conditions

    def at(self, commit: GitCommitHash) -> Mapping[str, Condition]:
        """The condition of every change on the tree of a commit, by change id.

        Raises:
            MissingObjectError: the repository does not hold one of the files.
        """
        key = self._key(commit)
        if key not in self._conditions:
            self.visited += 1
            self._on_visit(self.visited)
            self._conditions[key] = self._plan(commit)
        return self._conditions[key]

    def _key(self, commit: GitCommitHash) -> Key:
        if commit not in self._keys:
            tree = self._memory.tree(self.repository, commit)
            self._keys[commit] = tuple(tree.entry(path) for path in self.paths)
        return self._keys[commit]

    def _plan(self, commit: GitCommitHash) -> Mapping[str, Condition]:
        try:
            plan = plan_stack(self.repository, self._series, commit, closure=False, memory=self._memory)
            return conditions_of(plan)
        except MissingObjectError as error:  # a file that was not fetched must not pass for one that upstream took away
            error.where = f"{commit[:12]}:{error.where}"
            raise
        except TreeError as error:
            return refused_conditions(self._series.changes, Tree.at(self.repository, commit), error)


def _without_torchgen(series: Series) -> Series:
    changes = (replace(change, edits=tuple(map(_stored, change.edits))) for change in series.changes)
    return replace(series, changes=tuple(changes))


def _stored(edit: Edit) -> Edit:
    if not isinstance(edit, RegenerateShim):
        return edit
    return StoredShim(**{field.name: getattr(edit, field.name) for field in fields(edit)})
