"""Plan a whole series on a tree: every edit of every change, all conflicts together."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Collection, Mapping, Sequence

from patchstack.edits import Edit, Outcome, Status
from patchstack.edits.regenerate import RegenerateShim, generate_together
from patchstack.errors import ChoiceError, TreeError, UsageError
from patchstack.planning.closed import refuse_unclosed
from patchstack.planning.lines import AS_THEY_ARE, Lineage
from patchstack.planning.memo import Memory
from patchstack.planning.model import ChangePlan, ChangeState, EditPlan, StackPlan
from patchstack.planning.parts import LANDED, compare, likeness
from patchstack.planning.replacing import refuse_dangling
from patchstack.planning.shared import SharedEdits
from patchstack.planning.three_way import with_merge
from patchstack.planning.upstream import lacking, marker_holds, refuse_unknown_ops, unmet_conditions, why_left_out
from patchstack.series import Applicability, Change, Series, in_words
from patchstack.tree.git import GitCommitHash, Repository, Tree
from patchstack.tree.native_functions import FUNCTIONS_PATH


def plan_stack(
    repository: Repository,
    series: Series,
    onto: GitCommitHash,
    *,
    only: Collection[str] = (),
    replace: Collection[str] = (),
    closure: bool = True,
    memory: Memory | None = None,
) -> StackPlan:
    """Plan the changes of a series on top of a commit.

    Args:
        only: ids of the changes to plan; empty for all.
        replace: ids of the changes that replace what the tree has in their place.
        closure: whether to check that every name which the result uses is found; it reads headers all over the tree.
        memory: what was planned before in this process; for plans on many trees.

    Raises:
        UsageError: ``only`` or ``replace`` names a change that the series does not have, that is left out or not
            applicable, or a change is left out that another needs.
        TreeError: the commit is not a PyTorch tree, or lacks something that every edit of a change builds on.
    """
    started = time.perf_counter()
    selected = _select(series, only, replace)
    memory = memory or Memory()
    tree = memory.tree(repository, onto)
    if not tree.exists(FUNCTIONS_PATH):
        raise TreeError("not a PyTorch tree", where=onto[:12], expected=FUNCTIONS_PATH, next_command="--repo PATH")
    unmet = {change.id: unmet_conditions(change, tree) for change in series.changes}
    _refuse_not_applicable(unmet, only, replace)
    for change in selected:  # a file that cannot be read is told with its own lines, not those of an edited text
        for marker in change.upstream:
            marker_holds(marker, tree)
    refuse_unknown_ops((change for change in selected if not unmet[change.id]), tree, series.manifest)
    planner = _Planner(series, replace, memory, tree)
    plans: list[ChangePlan] = []
    for change in selected:
        below = plans[-1].tree if plans else tree
        plans.append(_left_out(change, below, why) if (why := unmet[change.id]) else planner.change(change, below))
    _refuse_unmet_needs(series, plans, unmet, tree, replace)
    _refuse_lacking(series, plans, [tree, *(plan.tree for plan in plans)], onto)
    before_closure = time.perf_counter()
    plans = refuse_unclosed(series, plans, tree) if closure else plans
    closure_s = time.perf_counter() - before_closure
    total = time.perf_counter() - started
    seconds = {"plan": total - planner.torchgen_s - closure_s, "torchgen": planner.torchgen_s, "closure": closure_s}
    return StackPlan(series, onto, tuple(plans), seconds)


def _select(series: Series, only: Collection[str], replace: Collection[str]) -> tuple[Change, ...]:
    known = [change.id for change in series.changes]
    for option, names in (("--only", only), ("--replace", replace)):
        unknown = [name for name in names if name not in known]
        if unknown:
            problem = f"series '{series.name}' has no change '{unknown[0]}'"
            raise UsageError(problem, where=option, expected=f"one of {', '.join(known)}")
    left_out = [name for name in replace if only and name not in only]
    if left_out:
        chosen = tuple(name for name in known if name in {*only, *left_out})
        raise ChoiceError(
            f"change '{left_out[0]}' is to be replaced and left out at once",
            where="--replace",
            next_command=" ".join(f"--only {name}" for name in chosen),
            only=chosen,
            replace=tuple(replace),
        )
    return tuple(change for change in series.changes if not only or change.id in only)


def _refuse_not_applicable(
    unmet: Mapping[str, Sequence[Applicability]], only: Collection[str], replace: Collection[str]
) -> None:
    for option, names in (("--only", only), ("--replace", replace)):
        for name in names:
            if unmet[name]:
                raise ChoiceError(
                    f"change '{name}' is not applicable: it is for trees in which {in_words(unmet[name])}",
                    where=f"{option} {name}",
                    next_command=f"without {option} {name}, or --onto REF of a tree that it is for",
                    only=tuple(other for other in only if not unmet[other]),
                    replace=tuple(other for other in replace if not unmet[other]),
                )


def _left_out(change: Change, below: Tree, unmet: tuple[Applicability, ...]) -> ChangePlan:
    """The plan of a change that is not applicable: nothing."""
    return ChangePlan(change, ChangeState.NOT_APPLICABLE, (), {}, below, unmet=unmet)


class _Planner:
    """What is carried from one change to the next.

    Attributes:
        torchgen_s: seconds spent in torchgen, which is another program, apart from planning itself.
    """

    def __init__(self, series: Series, replace: Collection[str], memory: Memory, onto: Tree) -> None:
        self.torchgen_s = 0.0
        self._onto = onto
        self._memory = memory
        self._shared = SharedEdits(series)
        self._replace = replace
        self._is_whole = True  # whether every change below is in the tree as a whole, which torchgen needs
        self._lines = AS_THEY_ARE
        self._made: list[Edit] = []  # edits that the tree has by now, for the bases of three-way merges

    def change(self, change: Change, tree: Tree) -> ChangePlan:
        """Plan one change on a tree that has the ones below it."""
        markers = {str(marker): marker_holds(marker, tree) for marker in change.upstream}
        carried = bool(markers) and all(markers.values())
        edits, after, lines = self._edits(change, tree, replace=False)
        state = _state(edits, carried=carried, marked=any(markers.values()))
        has_some = state not in (ChangeState.ABSENT, ChangeState.IDENTICAL)
        parts = compare((plan.edit for plan in edits if not plan.outcome.neutral), tree) if has_some else ()
        if carried and has_some and likeness(parts) >= LANDED:
            state = ChangeState.LANDED
        parts = tuple(map(self._lines.part, parts))
        replaces = has_some and change.id in self._replace
        if replaces:
            edits, after, lines = self._edits(change, tree, replace=True)
            edits = refuse_dangling(edits, after, lines)
        # A change that stops the run is still laid under the next one as far as it goes, so that the next one's
        # conflicts are its own.
        is_there = state.is_carried and not replaces
        self._lines = self._lines if is_there else lines
        self._is_whole &= is_there or not _has_stopped(edits)
        self._made += _made(edits, state, replaces=replaces)
        if is_there or not any(plan.outcome.conflict for plan in edits):
            self._shared.settle(change)
        return ChangePlan(change, state, tuple(edits), markers, tree if is_there else after, parts, replaces)

    def _edits(self, change: Change, tree: Tree, *, replace: bool) -> tuple[list[EditPlan], Tree, Lineage]:
        """The edits of a change, each on what the ones before it leave; what all of them leave, and its lines."""
        edits: list[EditPlan] = []
        lines = self._lines
        for edit in change.edits:
            if why := why_left_out(edit, self._onto):
                outcome = Outcome(Status.NOT_APPLICABLE, edit.describe(), note=why, neutral=True)
                edits.append(EditPlan(edit, outcome, None))
                continue
            outcome = self._shared.judged(change, edit, self._outcome(change, edit, tree, edits, replace=replace))
            if outcome.status is Status.SATISFIED and _brought(edits, edit):
                outcome = dataclasses.replace(outcome, neutral=True, note="an edit before it brought it")
            before = tree.read(edit.path) if outcome.after is not None else None
            edits.append(EditPlan(edit, lines.outcome(outcome, edit.path), before, lines))
            if outcome.after is not None:
                lines = lines.edited(edit, change.id, before, outcome.after)
                tree = tree.with_files({edit.path: outcome.after})
        return edits, tree, lines

    def _outcome(self, change: Change, edit: Edit, tree: Tree, earlier: list[EditPlan], *, replace: bool) -> Outcome:
        if isinstance(edit, RegenerateShim):
            return self._regenerated(change, edit, tree, earlier)
        outcome = edit.replace(tree) if replace else self._memory.outcome(edit, tree)
        if outcome.status is Status.DIFFERENT and replace:
            return outcome
        below = [*self._made, *(p.edit for p in earlier if p.outcome.status is not Status.NOT_APPLICABLE)]
        return with_merge(edit, tree, outcome, [other for other in below if other.path == edit.path])

    def _regenerated(self, change: Change, edit: Edit, tree: Tree, earlier: list[EditPlan]) -> Outcome:
        if not self._is_whole or _has_stopped(earlier):
            return Outcome(Status.NOT_APPLICABLE, "torchgen", note="not run: other edits do not apply")
        started = time.perf_counter()
        generate_together(change.edits[change.edits.index(edit) :], tree)
        outcome = edit.plan(tree)
        self.torchgen_s += time.perf_counter() - started
        return outcome


def _brought(earlier: Collection[EditPlan], edit: Edit) -> bool:
    """Whether an edit of the same change has just put there what another would: one of two places for one text."""
    return any(plan.outcome.status is Status.APPLIES and plan.edit.result == edit.result for plan in earlier)


def _has_stopped(edits: Collection[EditPlan]) -> bool:
    """Whether one of the edits does not apply, so that the tree lacks what it would bring."""
    return any(plan.outcome.status in (Status.CONFLICT, Status.DIFFERENT) for plan in edits)


def _made(edits: list[EditPlan], state: ChangeState, *, replaces: bool) -> list[Edit]:
    """The edits whose text the tree has by now, with a reviewer's edits or without."""
    if state is ChangeState.PRESENT and not replaces:
        return []
    done = {Status.APPLIES, Status.SATISFIED} | ({Status.DIFFERENT} if state is ChangeState.LANDED else set())
    return [plan.edit for plan in edits if plan.outcome.status in done]


def _state(edits: list[EditPlan], *, carried: bool, marked: bool) -> ChangeState:
    statuses = [plan.outcome.status for plan in edits if plan.outcome.status is not Status.NOT_APPLICABLE]
    telling = [plan.outcome.status for plan in edits if not plan.outcome.neutral]
    # an entry that is not there to be removed shows nothing by itself: it may have been renamed
    shown = any(p.outcome.status is Status.SATISFIED and not (p.outcome.neutral or p.outcome.conflict) for p in edits)
    if statuses and all(status is Status.SATISFIED for status in statuses) and (shown or carried):
        return ChangeState.IDENTICAL
    if any(plan.outcome.status is Status.DIFFERENT and plan.edit.kind == "add-dispatch-key" for plan in edits):
        return ChangeState.DIFFERENT
    if carried:
        return ChangeState.PRESENT
    if Status.DIFFERENT in statuses:
        return ChangeState.DIFFERENT if Status.SATISFIED not in telling else ChangeState.PARTIAL
    if marked or Status.SATISFIED in telling:
        return ChangeState.PARTIAL
    return ChangeState.ABSENT


def _refuse_lacking(series: Series, plans: list[ChangePlan], trees: list[Tree], onto: GitCommitHash) -> None:
    """Where a tree lacks what a change builds on, anchors cannot match: say that instead of listing them.

    Args:
        trees: for each plan, the tree below it, which has what the changes before it bring.
    """
    missing: dict[str, list[str]] = {}  # what, and what it is needed for
    for plan, tree in zip(plans, trees, strict=False):
        if not (plan.state.is_carried or plan.unmet) or plan.replaces:
            for need in plan.change.requires:
                if what := lacking(need, tree):
                    missing.setdefault(what, []).append(need.reason)
    if missing:
        listed = "; ".join(f"{what} ({', '.join(dict.fromkeys(reasons))})" for what, reasons in missing.items())
        raise TreeError(
            f"this tree is too old or too new for series '{series.name}': it lacks {listed}",
            where=onto[:12],
            next_command="--onto REF of a commit that has them, or --reference 2.11 (instead of --repo)",
        )


def _refuse_unmet_needs(
    series: Series,
    plans: list[ChangePlan],
    unmet: Mapping[str, Sequence[Applicability]],
    tree: Tree,
    replace: Collection[str],
) -> None:
    """Refuse to leave out what a change builds on, unless the tree has it, or is none of those that lack it."""
    planned = {plan.change.id for plan in plans}
    by_id = {change.id: change for change in series.changes}

    def lacks(change: Change) -> list[str]:
        left_out = [name for name in change.needs if name not in planned and not unmet[name]]
        return [name for name in left_out if not all(marker_holds(marker, tree) for marker in by_id[name].upstream)]

    for plan in plans:
        missing = [] if plan.state.is_carried else lacks(plan.change)
        if missing:
            wanted, todo = set(planned), [*missing]
            while todo:  # what is needed may need more
                wanted.add(name := todo.pop())
                todo += set(lacks(by_id[name])) - wanted
            chosen = tuple(change.id for change in series.changes if change.id in wanted)
            names = " and ".join(f"'{name}'" for name in missing)
            raise ChoiceError(
                f"change '{plan.change.id}' builds on {names}, which --only leaves out and this tree lacks",
                next_command=" ".join(f"--only {name}" for name in chosen),
                only=chosen,
                replace=tuple(replace),
            )
