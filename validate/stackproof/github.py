"""Findings as GitHub workflow commands, which show up beside the lines of a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stackproof.model import Finding, GateResult


def workflow_commands(results: Sequence[GateResult]) -> Iterator[str]:
    """One ``::error`` or ``::notice`` line a finding."""
    for result in results:
        for finding in result.findings:
            yield _annotation(result.name, finding)


def _annotation(gate: str, finding: Finding) -> str:
    level = "error" if finding.fails else "notice"
    title = f"{gate} {finding.rule}".strip()
    properties = [f"title={_property(title)}"]
    if finding.path:
        properties.append(f"file={_property(finding.path)}")
    if finding.path and finding.line:
        properties.append(f"line={finding.line}")
    return f"::{level} {','.join(properties)}::{_data(finding.message)}"


def _data(text: str) -> str:
    """Escaping of a command's message."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Escaping of a command's property."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
