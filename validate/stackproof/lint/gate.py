"""The gate ``lint``: what a range writes is formatted as the tree's own linters want it."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from patchstack.git import Tree
from stackproof.compat.changes import AddedLines, added_lines
from stackproof.compat.guard import guarded
from stackproof.lint.formatters import ClangFormat, Ruff, ToolNotRunError, tool_version
from stackproof.lint.messages import LintMessage
from stackproof.lint.patterns import LinterPatterns, read_patterns
from stackproof.lint.whitespace import check_whitespace
from stackproof.model import GateContext, GateResult, Verdict

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
    with tempfile.TemporaryDirectory(prefix="stackproof-lint-") as scratch:
        messages = tuple(_messages(head, changed, patterns, Path(scratch), not_run))
    findings = tuple(message.as_finding() for message in messages)
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


def _messages(
    head: Tree, changed: Mapping[str, AddedLines], patterns: LinterPatterns, scratch: Path, not_run: Counter[str]
) -> Iterator[LintMessage]:
    """Messages in the order of paths and lines; what a tool could not judge is counted in ``not_run``."""
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
