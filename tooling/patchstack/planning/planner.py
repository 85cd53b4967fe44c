"""Plan a whole series on a tree: every edit of every change, all conflicts together."""

from __future__ import annotations

import time
from collections.abc import Collection

from patchstack.edits import Edit, Outcome, Status
from patchstack.edits.regenerate import RegenerateShim
from patchstack.errors import TreeError, UsageError
from patchstack.git import GitCommitHash, Repository, Tree
from patchstack.planning.history import commits_behind
from patchstack.planning.memo import remembered
from patchstack.planning.model import ChangePlan, ChangeState, EditPlan, StackPlan
from patchstack.planning.upstream import lacking, marker_holds
from patchstack.series import Change, Series
from patchstack.source.native_functions import FUNCTIONS_PATH


def plan_stack(
    repository: Repository,
    series: Series,
    onto: GitCommitHash,
    *,
    only: Collection[str] = (),
    ask_history: bool = True,
) -> StackPlan:
    """Plan the changes of a series on top of a commit.

    Args:
        only: ids of the changes to plan; empty for all.
        ask_history: whether to look for the upstream commit behind each conflict, which can take seconds.

    Raises:
        UsageError: ``only`` names a change the series does not have, or leaves out one that another needs.
        TreeError: the commit is not a PyTorch tree, or lacks something that every edit of a change builds on.
    """
    started = time.perf_counter()
    selected = _select(series, only)
    tree = Tree.at(repository, onto)
    if not tree.exists(FUNCTIONS_PATH):
        raise TreeError(
            "not a PyTorch tree", where=onto[:12], expected=FUNCTIONS_PATH, next_command="apply-stack --repo PATH"
        )
    clock = _Clock()
    plans: list[ChangePlan] = []
    for change in selected:
        plans.append(_plan_change(change, plans[-1].tree if plans else tree, clock))
    _refuse_lacking(series, plans, [tree, *(plan.tree for plan in plans)], onto)
    _refuse_unmet_needs(series, plans, only, tree)
    moved_by = commits_behind(repository, onto, plans) if ask_history else {}
    total = time.perf_counter() - started
    seconds = {"plan": total - clock.torchgen, "torchgen": clock.torchgen}
    return StackPlan(series, onto, tuple(plans), moved_by, seconds)


class _Clock:
    """Seconds spent in torchgen, which is another program, apart from planning itself."""

    torchgen = 0.0


def _select(series: Series, only: Collection[str]) -> tuple[Change, ...]:
    known = {change.id for change in series.changes}
    unknown = [name for name in only if name not in known]
    if unknown:
        raise UsageError(
            f"series '{series.name}' has no change '{unknown[0]}'",
            where="--only",
            expected=f"one of {', '.join(change.id for change in series.changes)}",
        )
    return tuple(change for change in series.changes if not only or change.id in only)


def _plan_change(change: Change, tree: Tree, clock: _Clock) -> ChangePlan:
    markers = {str(marker): marker_holds(marker, tree) for marker in change.upstream}
    carried = bool(markers) and all(markers.values())
    after, edits = tree, list[EditPlan]()
    for edit in change.edits:
        plan = _plan_edit(edit, after, edits, clock)
        edits.append(plan)
        if plan.outcome.after is not None:
            after = after.with_files({edit.path: plan.outcome.after})
    state = _state(edits, carried=carried, marked=any(markers.values()))
    # A change that stops the run is still laid under the next one as far as it goes, so that the next one's conflicts
    # are its own.
    is_there = state in (ChangeState.IDENTICAL, ChangeState.PRESENT)
    return ChangePlan(change, state, tuple(edits), markers, tree if is_there else after)


def _plan_edit(edit: Edit, tree: Tree, earlier: list[EditPlan], clock: _Clock) -> EditPlan:
    if not isinstance(edit, RegenerateShim):
        outcome = remembered(edit, tree, edit.plan)
        return EditPlan(edit, outcome, tree.read(edit.path) if outcome.after is not None else None)
    if any(plan.outcome.status in (Status.CONFLICT, Status.DIFFERENT) for plan in earlier):
        return EditPlan(edit, Outcome(Status.NOT_APPLICABLE, "torchgen", note="not run: other edits do not apply"))
    started = time.perf_counter()
    outcome = edit.plan(tree)
    clock.torchgen += time.perf_counter() - started
    return EditPlan(edit, outcome, tree.read(edit.path) if outcome.after is not None else None)


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
    missing: dict[str, None] = {}
    for plan, tree in zip(plans, trees, strict=False):
        if plan.state not in (ChangeState.IDENTICAL, ChangeState.PRESENT):
            missing.update(dict.fromkeys(filter(None, (lacking(need, tree) for need in plan.change.requires))))
    if missing:
        raise TreeError(
            f"this tree is too old or too new for series '{series.name}': it lacks {'; '.join(missing)}",
            where=onto[:12],
            next_command="apply-stack --onto a newer commit, or --reference 2.11 for a tree that has them",
        )


def _refuse_unmet_needs(series: Series, plans: list[ChangePlan], only: Collection[str], tree: Tree) -> None:
    planned = {plan.change.id for plan in plans}
    by_id = {change.id: change for change in series.changes}
    for plan in plans:
        for needed in plan.change.needs:
            if needed in planned or plan.state in (ChangeState.IDENTICAL, ChangeState.PRESENT):
                continue
            if not all(marker_holds(marker, tree) for marker in by_id[needed].upstream):
                raise UsageError(
                    f"change '{plan.change.id}' builds on '{needed}', which --only leaves out and this tree lacks",
                    next_command=f"--only {needed} --only {plan.change.id}",
                )
