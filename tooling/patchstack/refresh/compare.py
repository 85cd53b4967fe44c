"""``apply-stack diff``: what a series makes of two trees, or of one before and after its working changes.

The commits are written to the object store and named by no ref; ``git range-diff`` compares them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from patchstack.applying.execute import write_unnamed
from patchstack.applying.lock import run_lock
from patchstack.applying.onto import resolve_onto
from patchstack.capture.model import CaptureError
from patchstack.errors import UsageError
from patchstack.messages.model import GhstackTrailers
from patchstack.planning import StackPlan, plan_stack
from patchstack.pulls import link_stack
from patchstack.refresh.match import find_base
from patchstack.series import Series
from patchstack.stack.branch import read_branch
from patchstack.stack.record import Record
from patchstack.stack.refs import read_refs
from patchstack.tree.git import GitCommitHash, Repository

_PAIR = re.compile(r" *(?:\d+|-): +([0-9a-f]+|-+) ([=!<>]) +(?:\d+|-): +([0-9a-f]+|-+) (.*)\Z")
_WORDS = {"=": "same", "!": "differs", "<": "only old", ">": "only new"}


@dataclass(frozen=True)
class Stack:
    """Commits on a tree.

    Attributes:
        name: as it was asked for.
        onto: the commit below them.
        tip: the last one.
    """

    name: str
    onto: GitCommitHash
    tip: GitCommitHash


@dataclass(frozen=True)
class Comparison:
    """Two stacks and what ``git range-diff`` says of them."""

    old: Stack
    new: Stack
    text: str


def compare_trees(repository: Repository, series: Series, old: str, new: str) -> Comparison:
    """What a series gives on two commits.

    Raises:
        UsageError: there is no such commit.
        CaptureError: the series does not apply there.
    """
    made = []
    for name in (old, new):
        plan = plan_stack(repository, series, resolve_onto(repository, name).commit)
        made.append(_made(repository, plan, name, {}))
    return _compared(repository, *made)


def compare_branch(repository: Repository, series: Series, branch_name: str) -> Comparison:
    """The branch of a series beside what the series gives now on the commit that the branch is on.

    Raises:
        UsageError: there is no such branch, or nothing tells what it was built on.
        CaptureError: the series does not apply there.
    """
    known = Record(repository).read()
    refs = read_refs(repository, branch_name)
    if refs.tip is None:
        raise UsageError("no such branch", where=branch_name, next_command="apply-stack --onto REF, or diff OLD NEW")
    onto = find_base(repository, refs.tip, [entry for entry in known if entry.series == series.name])
    plan = plan_stack(repository, series, onto)
    links = link_stack(repository, plan, read_branch(repository, refs, onto, known), known)
    old = Stack(branch_name, onto, refs.tip)
    return _compared(repository, old, _made(repository, plan, series.name, links.by_change))


def _made(repository: Repository, plan: StackPlan, name: str, trailers: Mapping[str, GhstackTrailers]) -> Stack:
    for change in plan.blocked:
        said = "; ".join(map(str, change.conflicts)) or f"state '{change.state.value}'"
        next_command = f"apply-stack --onto {plan.onto} --resolve"
        problem = f"change '{change.change.id}' does not apply"
        raise CaptureError(problem, where=name, found=said, next_command=next_command)
    with run_lock(repository) as lock:
        commits = write_unnamed(repository, plan, lock.scratch, trailers)
    return Stack(name, plan.onto, commits[-1].hash if commits else plan.onto)


def _compared(repository: Repository, old: Stack, new: Stack) -> Comparison:
    ranges = [f"{stack.onto}..{stack.tip}" for stack in (old, new)]
    return Comparison(old, new, repository.text("range-diff", "--no-color", *ranges))


def lines(found: Comparison) -> Iterator[str]:
    """The report for a terminal."""
    for what, stack in (("old", found.old), ("new", found.new)):
        yield f"{what}: {stack.name}, {stack.onto[:12]}..{stack.tip[:12]}"
    yield from found.text.splitlines()
    if all(pair["is"] == "same" for pair in _pairs(found)):
        yield "the commits are the same"


def as_json(found: Comparison) -> dict[str, Any]:
    """The report as data."""
    stacks = {
        what: {"name": stack.name, "onto": stack.onto, "tip": stack.tip}
        for what, stack in (("old", found.old), ("new", found.new))
    }
    return {**stacks, "commits": list(_pairs(found)), "range_diff": found.text}


def _pairs(found: Comparison) -> Iterator[dict[str, str | None]]:
    for line in found.text.splitlines():
        if pair := _PAIR.match(line):
            old, sign, new, title = pair.groups()
            yield {
                "old": None if "-" in old else old,
                "new": None if "-" in new else new,
                "is": _WORDS[sign],
                "title": title,
            }
