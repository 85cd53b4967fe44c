"""The gate ``lint``: what a range writes is formatted as the tree's own linters want it."""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from patchstack.tree.git import Tree
from stackproof.base_commit.findings import failing, noted
from stackproof.gates.common.changes import AddedLines, added_lines
from stackproof.gates.common.guard import guarded
from stackproof.gates.common.options import NoOptions
from stackproof.gates.common.results import judged, not_run
from stackproof.gates.lint.formatters import ClangFormat, Ruff, ToolNotRunError, tool_version
from stackproof.gates.lint.messages import LintMessage
from stackproof.gates.lint.patterns import LinterPatterns, read_patterns
from stackproof.gates.lint.spec import SPEC
from stackproof.gates.lint.whitespace import check_whitespace
from stackproof.model import Finding, GateContext, GateResult, Verdict


def run(context: GateContext, _options: NoOptions) -> GateResult:
    """Lint the range; ``details["lint_messages"]`` holds the lines that a ``lintrunner`` adapter would print."""
    return guarded(SPEC, lambda: _judge(context))


def _judge(context: GateContext) -> GateResult:
    head = Tree.at(context.repository, context.head)
    patterns = read_patterns(head)
    changed = added_lines(context.repository, context.base, context.head)
    if not changed:
        return not_run(SPEC, "the range changes no text file", ())
    unread: Counter[str] = Counter()
    messages = tuple(_messages(head, changed, patterns, unread))
    findings = tuple(message.as_finding() for message in messages)
    if failing(findings):
        findings = _as_below(Tree.at(context.repository, context.base), head, patterns, findings)
    reasons = "; ".join(f"{why} ({count} {'file' if count == 1 else 'files'})" for why, count in unread.items())
    result = judged(
        SPEC,
        cases=len(changed),
        failed=len({finding.path for finding in findings if finding.fails}),
        undecided=reasons,
        findings=findings,
        details={
            "lint_messages": [message.as_json() for message in messages],
            "not_run": dict(unread),
            "patterns": "the tree's .lintrunner.toml" if patterns.from_tree else "defaults of validate-stack",
            "tools": {tool: tool_version(tool) for tool in ("clang-format", "ruff")},
        },
    )
    # What failed may have been looked at in part only.
    return replace(result, reason=f"not run: {reasons}") if reasons and result.verdict is Verdict.FAILED else result


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
    head: Tree, changed: Mapping[str, AddedLines], patterns: LinterPatterns, unread: Counter[str]
) -> Iterator[LintMessage]:
    """Messages in the order of paths and lines; what a tool could not judge is counted in ``unread``."""
    with tempfile.TemporaryDirectory(prefix="stackproof-lint-") as scratch:
        yield from _messages_in(head, changed, patterns, Path(scratch), unread)


def _messages_in(
    head: Tree, changed: Mapping[str, AddedLines], patterns: LinterPatterns, scratch: Path, unread: Counter[str]
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
                    unread[f"{formatter.code}: {error}"] += 1
        yield from sorted(found, key=lambda message: message.line or 0)
