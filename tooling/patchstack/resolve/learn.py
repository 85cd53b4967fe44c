"""Teach a series what was resolved: it must give the results on the new tree, and on the old ones what it gave there.

Nothing is written before both were tried.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from patchstack.capture.choose import is_shim
from patchstack.capture.compose import Composer
from patchstack.capture.folder import difference, draft, publish, require_own
from patchstack.edits.cxx_edit import CXX_SUFFIXES
from patchstack.errors import PatchstackError, UsageError
from patchstack.planning import StackPlan, plan_stack
from patchstack.planning.upstream import defined_names
from patchstack.refresh.run import made_files
from patchstack.resolve.lessons import Topic, lessons
from patchstack.resolve.model import Aim, Learned
from patchstack.resolve.settled import Result
from patchstack.series import Change, Series, UpstreamMarker, find_series, load_series
from patchstack.stack.record import Record
from patchstack.tree.git import GitCommitHash, Repository, Tree

_MOST_OLD = 3
_SHORT = 12


def learn(repository: Repository, aim: Aim, plan: StackPlan, results: Mapping[str, Result]) -> Learned:
    """Add to a series what makes it give the results by itself, where something does.

    Args:
        plan: the stack with the results.
    """
    folder = find_series(aim.series)
    try:
        require_own(folder)
    except UsageError as error:
        return Learned(missing=dict.fromkeys(results, str(error)))
    series = load_series(aim.series)
    teacher = _Teacher(repository, aim, series, plan, results, _old_plans(repository, series, aim))
    with draft(folder) as copy:
        added, missing = list[str](), dict[str, str]()
        for change in plan.commits:
            if change.change.id in results:
                said, why = teacher.teach(copy, change.change.id)
                added += said
                missing |= {change.change.id: why} if why else {}
        verified = tuple(one.onto for one in (plan, *teacher.old))
        if not added:
            return Learned((), missing, verified)
        if problem := teacher.problem(copy, missing):
            return Learned(missing=dict.fromkeys(results, problem))
        diff = difference(folder, copy)
        publish(copy, folder)
    return Learned(tuple(added), missing, verified, diff)


def _old_plans(repository: Repository, series: Series, aim: Aim) -> list[StackPlan]:
    """What the series gives on the last commits that it was applied to, and still applies to."""
    made = [entry.onto for entry in reversed(Record(repository).read()) if entry.series == series.name]
    plans = list[StackPlan]()
    for onto in dict.fromkeys(made):
        if onto != aim.onto and len(plans) < _MOST_OLD and repository.resolve_commit(onto) is not None:
            try:
                plan = plan_stack(repository, series, GitCommitHash(onto))
            except PatchstackError:
                continue
            plans += [] if plan.blocked else [plan]
    return plans


@dataclass(frozen=True)
class _Case:
    """A tree on which a change must give certain files."""

    below: Tree
    onto: Tree
    files: Mapping[str, bytes]


class _Teacher:
    """What is known of the trees.

    Attributes:
        old: plans of the series on trees that it applies to.
    """

    def __init__(
        self,
        repository: Repository,
        aim: Aim,
        series: Series,
        plan: StackPlan,
        results: Mapping[str, Result],
        old: Sequence[StackPlan],
    ) -> None:
        self.old = old
        self._repository = repository
        self._aim = aim
        self._paths = list(dict.fromkeys(edit.path for change in series.changes for edit in change.edits))
        self._plan = plan
        self._results = results
        self._new = Tree.at(repository, plan.onto)

    def teach(self, copy: Path, identity: str) -> tuple[list[str], str]:
        """Teach a draft one result: what was added, and why something is missing, if it is."""
        result, added, missing = self._results[identity], list[str](), list[str]()
        change = _change(load_series(str(copy)), identity)
        paths = dict.fromkeys([*(edit.path for edit in change.edits), *result.contents])
        for path in paths:
            if is_shim(path) or self._gives(copy, identity, path):
                continue
            said = self._taught(copy, identity, path)
            (added if said else missing).append(said or path)
        why = "no place or condition tells this tree from those from before" if self.old else _UNKNOWN
        return added, f"{', '.join(missing)}: {why}" if missing else ""

    def _taught(self, copy: Path, identity: str, path: str) -> str:
        """What was added for one file; empty where nothing helps."""
        wanted = self._results[identity].contents.get(path)
        if wanted is None:
            return ""
        change = _change(load_series(str(copy)), identity)
        below = Tree.at(self._repository, self._results[identity].parent)
        topic = Topic(change, path, below, self._new, wanted)
        trial = copy.with_name("trial")
        try:
            for lesson in lessons(topic, *self._markers(path)):
                shutil.rmtree(trial, ignore_errors=True)
                shutil.copytree(copy, trial, symlinks=True)
                composer = Composer(trial)
                lesson.write(composer)
                composer.save()
                if self._gives(trial, identity, path):
                    shutil.rmtree(copy)
                    trial.rename(copy)
                    return f"{identity}: {lesson.says}"
        except PatchstackError:  # nothing says it
            return ""
        return ""

    def _gives(self, folder: Path, identity: str, path: str) -> bool:
        """Whether a draft gives a file of a change, on the new tree and on the old ones."""
        try:
            change = _change(load_series(str(folder)), identity)
        except PatchstackError:
            return False
        own = dataclasses.replace(change, edits=tuple(edit for edit in change.edits if edit.path == path))
        for case in self._cases(identity):
            made = made_files(case.below, case.onto, own)
            if made is None or made.get(path) != case.files.get(path):
                return False
        return True

    def _cases(self, identity: str) -> Iterator[_Case]:
        result = self._results[identity]
        yield _Case(Tree.at(self._repository, result.parent), self._new, result.contents)
        for plan in self.old:
            onto = Tree.at(self._repository, plan.onto)
            below = onto
            for one in plan.changes:
                if one.change.id == identity and one.becomes_commit:
                    yield _Case(below, onto, one.files)
                below = one.tree

    def _markers(self, path: str) -> tuple[list[UpstreamMarker], list[UpstreamMarker]]:
        """Names that only the new tree defines, and names that only the old ones do: in the file, else in others."""
        only_new, only_old = list[UpstreamMarker](), list[UpstreamMarker]()
        for other in dict.fromkeys([path, *self._paths]) if self.old else ():
            new = _names(self._new, other)
            olds = [_names(Tree.at(self._repository, plan.onto), other) for plan in self.old]
            only_new += [UpstreamMarker("defines", other, name) for name in sorted(new - set().union(*olds))]
            in_all = set.intersection(*olds)
            only_old += [UpstreamMarker("defines", other, name) for name in sorted(in_all - new)]
        return only_new, only_old

    def problem(self, copy: Path, missing: Mapping[str, str]) -> str:
        """Why the draft as a whole does not give the results on the new tree, or something else on an old one."""
        aim = self._aim
        try:
            series = load_series(str(copy))
            for known in self.old:
                if not _same(known, plan_stack(self._repository, series, known.onto)):
                    return f"the series would give something else on {known.onto[:_SHORT]}"
            if missing:  # the rest is a person's, and what the series does above it is in the plan
                return ""
            found = plan_stack(self._repository, series, self._plan.onto, only=aim.only, replace=aim.replace)
        except PatchstackError as error:
            return str(error)
        return "" if _same(self._plan, found) else "the series would not give the results"


_UNKNOWN = "no other place has its text, and the record knows no commit from before to tell this tree from"


def _change(series: Series, identity: str) -> Change:
    return next(change for change in series.changes if change.id == identity)


def _names(tree: Tree, path: str) -> set[str]:
    data = tree.read(path) if path.endswith((*CXX_SUFFIXES, ".py")) else None
    return defined_names(data, path) if data is not None else set()


def _same(one: StackPlan, other: StackPlan) -> bool:
    """Whether two plans make the same commits of the same changes."""
    files = [{change.change.id: dict(change.files) for change in plan.commits} for plan in (one, other)]
    return not other.blocked and files[0] == files[1]
