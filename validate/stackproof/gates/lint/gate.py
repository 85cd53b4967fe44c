"""The gate ``lint``: what a range writes is formatted as the tree's own linters want it."""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from patchstack.tree.git import Tree
from stackproof.base_commit.findings import failing, noted
from stackproof.gates.common.changes import AddedLines, added_lines
from stackproof.gates.common.guard import guarded
from stackproof.gates.lint.formatters import ClangFormat, Ruff, ToolNotRunError, tool_version
from stackproof.gates.lint.messages import LintMessage
from stackproof.gates.lint.patterns import LinterPatterns, read_patterns
from stackproof.gates.lint.whitespace import check_whitespace
from stackproof.model import Finding, GateContext, GateResult, Verdict

LIMITS = (
    "only lines that the range wrote are judged",
    "flake8, mypy, clang-tidy and the import sorter of the tree are not run",
)


class LintGate:
    """Lints the lines that ``context.head`` has over ``context.base``; takes no options."""

    name = "lint"
    summary = "what lands is formatted as the tree's own linters want it"

    def run(self, context: GateContext) -> GateResult:
        """Lint the range; ``details["lint_messages"]`` holds the lines that a ``lintrunner`` adapter would print."""
        return guarded(self.name, lambda: _judge(self.name, context))


def _judge(name: str, context: GateContext) -> GateResult:
    head = Tree.at(context.repository, context.head)
    patterns = read_patterns(head)
    changed = added_lines(context.repository, context.base, context.head)
    if not changed:
        return GateResult(name, Verdict.NOT_RUN, reason="the range changes no text file")
    not_run: Counter[str] = Counter()
    messages = tuple(_messages(head, changed, patterns, not_run))
    findings = tuple(message.as_finding() for message in messages)
    if failing(findings):
        findings = _as_below(Tree.at(context.repository, context.base), head, patterns, findings)
    failed = sum(finding.fails for finding in findings)
    verdict = Verdict.FAILED if failed else Verdict.NOT_RUN if not_run else Verdict.PASSED
    reasons = "; ".join(f"{why} ({count} {'file' if count == 1 else 'files'})" for why, count in not_run.items())
    return GateResult(
        name,
        verdict,
        cases=len(changed),
        failed=len({finding.path for finding in findings if finding.fails}),
        reason=f"not run: {reasons}" if reasons and verdict is Verdict.FAILED else reasons,
        findings=findings,
        details={
            "lint_messages": [message.as_json() for message in messages],
            "not_run": dict(not_run),
            "patterns": "the tree's .lintrunner.toml" if patterns.from_tree else "defaults of validate-stack",
            "tools": {tool: tool_version(tool) for tool in ("clang-format", "ruff")},
        },
        limits=LIMITS,
    )


def _as_below(base: Tree, head: Tree, patterns: LinterPatterns, findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings, with what the range only moved as notes."""
    paths = {finding.path for finding in findings}
    whole = {path: AddedLines(((1, sys.maxsize),)) for path in paths}
    theirs, ours = (
        [message.as_finding() for message in _messages(tree, whole, patterns, Counter())] for tree in (base, head)
    )
    written = {(finding.rule, finding.path, finding.line) for finding in findings}
    # Lines that stayed where they were account for their share of what the base has.
    stayed = [finding for finding in ours if (finding.rule, finding.path, finding.line) not in written]
    return tuple(noted([*stayed, *findings], theirs, head=head, base=base)[len(stayed) :])


def _messages(
    head: Tree, changed: Mapping[str, AddedLines], patterns: LinterPatterns, not_run: Counter[str]
) -> Iterator[LintMessage]:
    """Messages in the order of paths and lines; what a tool could not judge is counted in ``not_run``."""
    with tempfile.TemporaryDirectory(prefix="stackproof-lint-") as scratch:
        yield from _messages_in(head, changed, patterns, Path(scratch), not_run)


def _messages_in(
    head: Tree, changed: Mapping[str, AddedLines], patterns: LinterPatterns, scratch: Path, not_run: Counter[str]
) -> Iterator[LintMessage]:
    formatters = (ClangFormat(head, scratch), Ruff(head, scratch))
    for path, added in sorted(changed.items()):
        content = head.read(path)
        if content is None or not added.ranges:
            continue
        found = list(check_whitespace(path, content, added, patterns))
        for formatter in formatters:
            if patterns.applies(formatter.code, path):
                try:
                    found += formatter.check(path, content, added)
                except ToolNotRunError as error:
                    not_run[f"{formatter.code}: {error}"] += 1
        yield from sorted(found, key=lambda message: message.line or 0)
