"""How to go on after a conflict: choices of changes that were planned themselves, and that apply.

What looks like a way out may end in the next conflict: a change that is replaced may leave another one without its
anchor, and a change that is left out may have brought text that another one builds on. So every choice is planned
before it is advised.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from patchstack.errors import TreeError, UsageError
from patchstack.planning.model import StackPlan


@dataclass(frozen=True)
class Advice:
    """A choice of changes that applies without a conflict.

    Attributes:
        only: values of ``--only``; empty where no change is left out.
        replace: values of ``--replace``.
        does: what it does, one clause.
        commits: how many commits it gives.
    """

    only: tuple[str, ...]
    replace: tuple[str, ...]
    does: str
    commits: int

    @property
    def options(self) -> tuple[str, ...]:
        """The options of the command that make the choice."""
        chosen = [("--only", name) for name in self.only] + [("--replace", name) for name in self.replace]
        return tuple(word for pair in chosen for word in pair)

    def __str__(self) -> str:
        return f"{' '.join(self.options) or 'without --replace, it'} {self.does}"


Plan = Callable[[Collection[str], Collection[str]], StackPlan]
"""A plan of the same series on the same tree with other values of ``--only`` and ``--replace``."""


def advice_for(
    plan: StackPlan, only: Collection[str], replace: Collection[str], plan_again: Plan
) -> tuple[Advice, ...]:
    """The ways out of the conflicts of a plan; empty where no choice of changes helps.

    Args:
        plan: one with conflicts.
        only: the values of ``--only`` that it was made with.
        replace: those of ``--replace``.
        plan_again: makes the plan of another choice.
    """
    stopped = {change.change.id for change in plan.blocked if change.state.stops and not change.replaces}
    choices = [{*replace, *stopped}, {*replace}] if stopped else [{*replace}]
    ways = (_way_out(plan, only, choice, replace, plan_again) for choice in choices)
    found: dict[tuple[str, ...], Advice] = {}
    for way in ways:
        if way is not None:
            found.setdefault(way.options, way)
    return tuple(found.values())


def _way_out(
    plan: StackPlan, only: Collection[str], choice: set[str], replace: Collection[str], plan_again: Plan
) -> Advice | None:
    """What is left of a choice when what stops is not replaced, or left out, again and again; ``None`` for nothing.

    Args:
        choice: the changes to replace what the tree has.
    """
    applicable = [change.change.id for change in plan.changes if not change.unmet]
    chosen = applicable
    tried = plan if choice == set(replace) else _planned(plan_again, only, choice)
    while tried is not None and tried.blocked:
        replaced = {change.change.id for change in tried.blocked if change.replaces}
        out = set() if replaced else set(_with_dependents(tried))
        chosen = [name for name in chosen if name not in out]
        choice = choice.intersection(chosen) - replaced
        tried = _planned(plan_again, only if chosen == applicable else chosen, choice) if chosen else None
    if tried is None or not tried.commits:
        return None
    kept = [name for name in replace if name in chosen and name not in choice]
    does = [_REPLACES] if any(change.replaces for change in tried.changes) else []
    does += [] if chosen == applicable else [_LEAVES_OUT]
    does += [f"keeps the tree's text of {', '.join(kept)}"] if kept else []
    listed = [change.id for change in plan.series.changes if change.id in choice]
    return Advice(
        tuple(only if chosen == applicable else chosen), tuple(listed), " and ".join(does), len(tried.commits)
    )


_REPLACES = "replaces the tree's text with the series'"
_LEAVES_OUT = "leaves out what stops"


def _planned(plan_again: Plan, only: Collection[str], replace: Collection[str]) -> StackPlan | None:
    """The plan of a choice; ``None`` where it is refused as a whole."""
    try:
        return plan_again(only, replace)
    except (UsageError, TreeError):
        return None


def _with_dependents(plan: StackPlan) -> Iterator[str]:
    """The changes that stop a plan, and those that need one of them."""
    out: set[str] = {change.change.id for change in plan.blocked}
    for change in plan.changes:
        if change.change.id in out or out & set(change.change.needs):
            out.add(change.change.id)
            yield change.change.id
