"""The run as JSON: strict JSON, which has no infinities and no NaN."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from stackproof.model import Finding, GateResult
from stackproof.report.model import CommitReport, RunReport


def as_json(report: RunReport) -> dict[str, Any]:
    """The whole run as plain data.

    ``verdict`` counts every commit, and is "unproved" where no gate failed and the stack has kernels that none
    launched; ``gates`` are those of the whole range, ``commits`` those of each commit.
    """
    return {
        "verdict": report.outcome,
        "unproved": [
            {"base": base, "head": head, "kernels": list(kernels)} for (base, head), kernels in report.unproved.items()
        ],
        "required_not_run": list(report.required_not_run),
        "partial": report.partial,
        "repository": report.repository,
        "base": report.base,
        "head": report.head,
        "base_tree": report.base_tree,
        "head_tree": report.head_tree,
        "series": report.series,
        "command": report.command,
        "started": report.started.isoformat(),
        "seconds": round(report.seconds, 3),
        "environment": dict(report.environment),
        "gates": [_gate(result) for result in report.results],
        "commits": [_commit(commit, report.outcome_of(commit)) for commit in report.commits],
    }


def render(report: RunReport) -> str:
    """The same as text, ending with a line feed."""
    return json.dumps(as_json(report), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def plain(value: Any) -> Any:
    """Any value as something that strict JSON has: infinities and NaN as words, what JSON does not know as text."""
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (str, int, bool)) or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, (Sequence, set, frozenset)) and not isinstance(value, bytes):
        return [plain(inner) for inner in value]
    return str(value)


def _commit(commit: CommitReport, outcome: str) -> dict[str, Any]:
    return {
        "commit": commit.commit,
        "base": commit.base,
        "tree": commit.tree,
        "base_tree": commit.base_tree,
        "title": commit.title,
        "verdict": outcome,
        "gates": [_gate(result) for result in commit.results],
    }


def _gate(result: GateResult) -> dict[str, Any]:
    return {
        "name": result.name,
        "verdict": result.verdict.value,
        "cases": result.cases,
        "failed": result.failed,
        "worst_error": plain(result.worst_error),
        "seconds": round(result.seconds, 3),
        "reason": result.reason,
        "limits": list(result.limits),
        "findings": [_finding(finding) for finding in result.findings],
        "details": plain(result.details),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "message": finding.message,
        "path": finding.path,
        "line": finding.line,
        "rule": finding.rule,
        "fails": finding.fails,
        "details": plain(finding.details),
    }
