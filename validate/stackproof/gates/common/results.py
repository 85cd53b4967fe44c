"""How a gate comes to its verdict, and how what it has to say is merged: the same for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from stackproof.gates.spec import Spec
from stackproof.model import Finding, GateResult, Verdict


def not_run(spec: Spec, reason: str, limits: Sequence[str] | None = None) -> GateResult:
    """Nothing was judged."""
    return GateResult(spec.name, Verdict.NOT_RUN, reason=reason, limits=_limits(spec, limits))


def failed_early(spec: Spec, finding: Finding, limits: Sequence[str] | None = None) -> GateResult:
    """Nothing could be judged, and that is the fault of the stack."""
    return judged(spec, cases=0, findings=[finding], limits=limits)


def judged(
    spec: Spec,
    *,
    cases: int,
    failed: int = 0,
    findings: Sequence[Finding] = (),
    undecided: str = "",
    limits: Sequence[str] | None = None,
    worst_error: float | None = None,
    details: Mapping[str, Any] | None = None,
) -> GateResult:
    """The result of a gate that looked at the stack.

    It fails where a case failed, a finding fails, or there was no case at all.

    Args:
        spec: of the gate.
        cases: how many were judged.
        failed: how many of them failed.
        findings: in the order of the report.
        undecided: why it is not run, where nothing failed; empty where it passes.
        limits: what it does not show; those of the spec otherwise.
        worst_error: see :class:`GateResult`, as ``details``.
    """
    failed = max(failed, int(any(one.fails for one in findings)))
    verdict = Verdict.NOT_RUN if undecided else Verdict.PASSED if cases else Verdict.FAILED
    return GateResult(
        spec.name,
        Verdict.FAILED if failed else verdict,
        cases=max(cases, failed),
        failed=failed,
        worst_error=worst_error,
        reason="" if failed else undecided,
        findings=findings,
        details=details or {},
        limits=_limits(spec, limits),
    )


def merged(findings: Iterable[Finding], subject: Callable[[str], str]) -> list[Finding]:
    """Each rule at each place once, with the number of the others.

    Args:
        findings: in the order in which they came.
        subject: what a message without a line is about, from the message.
    """
    groups: dict[tuple[str, str, int, str, bool], list[Finding]] = {}
    for one in findings:
        about = "" if one.line else subject(one.message)
        groups.setdefault((one.rule, one.path, one.line, about, one.fails), []).append(one)
    return [
        replace(one, message=f"{one.message} ({len(others)} more like it)") if others else one
        for one, *others in groups.values()
    ]


def _limits(spec: Spec, limits: Sequence[str] | None) -> Sequence[str]:
    return spec.limits if limits is None else limits
