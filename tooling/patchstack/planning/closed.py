"""Refuse a plan whose result would not be closed: every name that it uses must be found where it is used.

A stack that only a compiler would refuse must not be announced as applied. What is not found becomes a conflict of the
edit that brought the use, or that took away what it needs.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from patchstack.closure import Contents, Missing, has_word, newly_missing
from patchstack.edits import Conflict, Edit, Status
from patchstack.edits.create_file import CreateFile
from patchstack.edits.cxx_edit import CXX_SUFFIXES, CxxEdit
from patchstack.errors import TreeError
from patchstack.planning.memo import digest, remembered_value
from patchstack.planning.model import ChangePlan, EditPlan
from patchstack.series import Series
from patchstack.tree.cxx import parse_cxx
from patchstack.tree.git import Tree

_HEADER_FOLDERS = ("aten/src/ATen/native/mps", "c10/metal", "aten/src/ATen/mps", "aten/src/ATen", "c10")


def refuse_unclosed(series: Series, plans: Sequence[ChangePlan], onto: Tree) -> list[ChangePlan]:
    """The plans, with a conflict for each use of a name that would not be found.

    Args:
        plans: of the changes in order, each with the tree that it leaves.
        onto: the tree below the first.
    """
    check = _Check(series)
    checked: list[ChangePlan] = []
    for plan, below in zip(plans, [onto, *(plan.tree for plan in plans)], strict=False):
        checked.append(check.change(plan, below, checked) if plan.becomes_commit else plan)
    return checked


class _Check:
    """What is known of the series and of headers, from one change to the next."""

    def __init__(self, series: Series) -> None:
        self._series = series
        self._contents = Contents()
        self._paths = list(
            dict.fromkeys(e.path for c in series.changes for e in c.edits if e.path.endswith(CXX_SUFFIXES))
        )

    def change(self, plan: ChangePlan, below: Tree, earlier: Sequence[ChangePlan]) -> ChangePlan:
        """The plan of one change, checked."""
        found = self._found(below, plan)
        blocked = {other.change.id for other in earlier if other.conflicts}
        new = [m for m in found if m.is_certain or self._brought_by(m.part)]
        new = [m for m in new if not blocked.intersection(self._brought_by(m.part))]
        return self._refused(plan, new, earlier) if new else plan

    def _found(self, below: Tree, plan: ChangePlan) -> list[Missing]:
        """What is newly missing: it depends on the two trees and the lists of files, nothing else."""

        def compute() -> list[Missing]:
            return newly_missing(below, plan.tree, plan.files, self._paths, self._contents)

        def encode(found: Sequence[Missing]) -> list[Any] | None:
            return None if self._contents.lacks_objects else [dataclasses.astuple(one) for one in found]

        def decode(stored: Sequence[Any]) -> list[Missing]:
            return [Missing(*one) for one in stored]

        facts = [[*plan.files], self._paths, below.base, _contents_of(below), _contents_of(plan.tree)]
        return remembered_value("closure", json.dumps(facts).encode(), compute, encode, decode)

    def _brought_by(self, name: str) -> Sequence[str]:
        return self._bring.get(name, ())

    @cached_property
    def _bring(self) -> Mapping[str, list[str]]:
        """For each name that the series' text defines, the changes that have it."""
        found: dict[str, list[str]] = {}
        for change in self._series.changes:
            for edit in change.edits:
                for name in _defined_by(edit):
                    if change.id not in found.setdefault(name, []):
                        found[name].append(change.id)
        return found

    def _refused(self, plan: ChangePlan, missing: Sequence[Missing], earlier: Sequence[ChangePlan]) -> ChangePlan:
        by_edit: dict[int, list[Missing]] = {}
        for one in missing:
            by_edit.setdefault(_edit_of(plan, one), []).append(one)
        edits = list(plan.edits)
        for index, found in by_edit.items():
            edits[index] = _stopped(edits[index], found, self._sources([m.part for m in found], plan, earlier))
        return dataclasses.replace(plan, edits=tuple(edits))

    def _sources(self, names: Sequence[str], plan: ChangePlan, earlier: Sequence[ChangePlan]) -> list[str]:
        """Where names could come from, as far as somebody knows."""
        states = {other.change.id: other.state.value for other in earlier}
        found: dict[str, list[str]] = {}
        elsewhere = []
        for name in dict.fromkeys(names):
            makers = [other for other in self._brought_by(name) if other != plan.change.id]
            if makers:
                state = states.get(makers[0], "not planned below it")
                found.setdefault(f"from {makers[0]}, which is {state}", []).append(name)
            else:
                elsewhere.append(name)
        for name, header in _headers_with(elsewhere, plan.tree).items():
            found.setdefault(f"in {header}, which is not included", []).append(name)
        return [f"{', '.join(listed)}: {where}" for where, listed in found.items()]


def _contents_of(tree: Tree) -> list[tuple[str, str]]:
    """What a tree has in place of the files of its base."""
    return [(path, digest(data)) for path, data in sorted(tree.replaced.items())]


def _defined_by(edit: Edit) -> Iterator[str]:
    text = _text(edit)
    if text and edit.path.endswith(CXX_SUFFIXES):
        yield from (d.name.rpartition("::")[2] for d in parse_cxx(text).definitions if d.kind != "registration")


def _text(edit: Edit) -> bytes:
    if isinstance(edit, CxxEdit):
        return edit.fragment.text
    return edit.content if isinstance(edit, CreateFile) else b""


def _edit_of(plan: ChangePlan, missing: Missing) -> int:
    """The edit that brought a use, or took away what it needs: of those that apply, the one that says so best."""

    def says(index: int) -> tuple[bool, bool, bool, int]:
        edit = plan.edits[index].edit
        text = _text(edit)
        has_user = bool(missing.user) and missing.user in _defined_by(edit)
        return (edit.path == missing.path, has_user, has_word(text, missing.part.encode()), -index)

    applied = [index for index, one in enumerate(plan.edits) if one.outcome.after is not None]
    return max(applied, key=says)


def _stopped(plan: EditPlan, found: Sequence[Missing], sources: Sequence[str]) -> EditPlan:
    sentences = []
    for (user, problem), names in _grouped(found).items():
        sentences.append(f"{user or 'it'} uses {', '.join(names)}, {problem}")
    path = found[0].path
    problem = "; ".join(sentences) + (f" ({'; '.join(sources)})" if sources else "")
    lines = tuple(dict.fromkeys(missing.line for missing in found))
    conflict = Conflict(path, plan.outcome.anchor, problem, matches=lines)
    return dataclasses.replace(
        plan, outcome=dataclasses.replace(plan.outcome, status=Status.CONFLICT, conflict=conflict)
    )


def _grouped(found: Sequence[Missing]) -> Mapping[tuple[str, str], list[str]]:
    """Names by who uses them and what is wrong with them."""
    groups: dict[tuple[str, str], list[str]] = {}
    for missing in found:
        names = groups.setdefault((missing.user, missing.problem), [])
        if missing.name not in names:
            names.append(missing.name)
    return groups


def _headers_with(names: Sequence[str], tree: Tree) -> dict[str, str]:
    """For each name the header of the tree that defines it, if one does: those near the MPS backend first."""
    found: dict[str, str] = {}
    paths = dict.fromkeys(path for folder in _HEADER_FOLDERS for path in tree.walk(folder) if path.endswith(".h"))
    for path in paths:
        wanted = [name for name in names if name not in found]
        if not wanted:
            break
        try:
            data = tree.read(path) or b""
        except TreeError:  # a hint is not worth a failure: a partial clone, a link
            continue
        for name in wanted:
            if has_word(data, name.encode()) and _defines(data, name):
                found[name] = path
    return found


def _defines(data: bytes, name: str) -> bool:
    file = parse_cxx(data)
    return any(d.name == name for d in (*file.definitions, *file.prototypes))
