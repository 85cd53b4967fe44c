"""What a run did not show because it was not run: each gate with its reason and what to type to run it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stackproof.model import Verdict
from stackproof.report.model import RunReport

NOT_ASKED = "not asked for"
_WHOLE = "the whole stack"
_NEXT = re.compile(r"\s*\(next: (?P<command>.*)\)$", re.DOTALL)


@dataclass(frozen=True)
class NotRun:
    """One gate that was not run, for one reason.

    Attributes:
        gate: its name.
        where: the parts of the run that this is true of: starts of commit ids, or the whole stack.
        reason: why, without the advice.
        commands: what to type, in this order.
    """

    gate: str
    where: tuple[str, ...]
    reason: str
    commands: tuple[str, ...]


def not_run_rows(report: RunReport) -> list[NotRun]:
    """Gates that were asked for first, each reason once; then the gates that were not asked for."""
    found: dict[tuple[str, str], list[str]] = {}
    heads: dict[tuple[str, str], str] = {}
    for heading, base, head, results in report.ranges():
        for result in results:
            if result.verdict is Verdict.NOT_RUN:
                key = (result.name, result.reason)
                found.setdefault(key, []).append(head[:12] if heading else _WHOLE)
                heads[key] = _alone(result.name, base, head)
    asked = [_row(gate, tuple(where), reason, heads[gate, reason]) for (gate, reason), where in found.items()]
    others = [
        NotRun(gate, (_WHOLE,), NOT_ASKED, (_alone(gate, report.base, report.head),)) for gate in report.not_asked
    ]
    return asked + others


def _row(gate: str, where: tuple[str, ...], reason: str, alone: str) -> NotRun:
    advice = _NEXT.search(reason)
    if advice is None:
        return NotRun(gate, where, reason, (alone,))
    return NotRun(gate, where, reason[: advice.start()], (advice["command"], alone))


def _alone(gate: str, base: str, head: str) -> str:
    return f"validate-stack --only {gate} --base {base[:12]} --head {head[:12]}"
