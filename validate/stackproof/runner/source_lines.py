"""The lines of the tree that findings are about, so that a report can be read without the tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from patchstack.errors import PatchstackError
from patchstack.tree.git import GitCommitHash, Repository, Tree
from stackproof.model import Finding, GateResult
from stackproof.report.model import RunReport

SOURCE = "source"
_AROUND = 1  # lines on each side
_MOST = 200  # findings of a gate
_WIDEST = 200  # characters


def with_sources(report: RunReport) -> RunReport:
    """The report, each finding that has a place with the lines there, ``> `` before its own, in its details."""
    with Repository.open(Path(report.repository)) as repository:
        commits = tuple(replace(one, results=_all(repository, one.commit, one.results)) for one in report.commits)
        return replace(report, results=_all(repository, report.head, report.results), commits=commits)


def _all(repository: Repository, head: str, results: Sequence[GateResult]) -> list[GateResult]:
    tree, lines = Tree.at(repository, GitCommitHash(head)), dict[str, list[str]]()
    return [
        replace(
            one,
            findings=[_with_source(tree, finding, lines) for finding in one.findings[:_MOST]]
            + list(one.findings[_MOST:]),
        )
        for one in results
    ]


def _with_source(tree: Tree, finding: Finding, known: dict[str, list[str]]) -> Finding:
    if not finding.line or not finding.path:
        return finding
    if finding.path not in known:
        try:
            known[finding.path] = (tree.read(finding.path) or b"").decode(errors="replace").splitlines()
        except PatchstackError:  # a name that no file of the tree has
            known[finding.path] = []
    lines = known[finding.path]
    if finding.line > len(lines):
        return finding
    shown = range(max(finding.line - _AROUND, 1), min(finding.line + _AROUND, len(lines)) + 1)
    text = [f"{'>' if number == finding.line else ' '} {number:4} {lines[number - 1][:_WIDEST]}" for number in shown]
    return replace(finding, details={**finding.details, SOURCE: text})
