"""Findings as GitHub workflow commands, which show up beside the lines of a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from patchstack.drift.github import annotation
from stackproof.model import GateResult


def workflow_commands(results: Sequence[GateResult]) -> Iterator[str]:
    """One ``::error`` or ``::notice`` line a finding."""
    for result in results:
        for finding in result.findings:
            level = "error" if finding.fails else "notice"
            title = f"{result.name} {finding.rule}".strip()
            yield annotation(level, title, finding.message, path=finding.path, line=finding.line)
