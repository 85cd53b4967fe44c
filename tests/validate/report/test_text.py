"""The report on a terminal and in a pipe."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from patchstack.errors import UsageError
from stackproof.model import Finding, GateResult, Verdict
from stackproof.report import ReportFiles, RunReport, lines, report_lines
from stackproof.report.terminal import show
from stackproof.runner.progress import Quiet, watcher


def shown(report: RunReport, *, terminal: bool) -> str:
    output = io.StringIO()
    show(report, Console(file=output, force_terminal=terminal, width=100, color_system="standard"))
    return output.getvalue()


def test_a_pipe_gets_plain_lines_and_no_escape_codes(report: RunReport) -> None:
    text = shown(report, terminal=False)
    assert "\x1b" not in text
    assert text.splitlines() == list(report_lines(report))


def test_a_terminal_gets_a_table_with_coloured_verdicts(report: RunReport) -> None:
    text = shown(report, terminal=True)
    assert "\x1b[1;31mfailed" in text
    assert "\x1b[1;32mpassed" in text
    assert "\x1b[33mnot run" in text
    assert "┃" in text


@pytest.mark.parametrize("terminal", [False, True], ids=["pipe", "terminal"])
def test_commits_come_first_and_the_verdict_last(report: RunReport, terminal: bool) -> None:
    text = shown(report, terminal=terminal)
    assert text.index("commit 1/2") < text.index("commit 2/2") < text.index("the whole stack, 000000000000..2222")
    assert "partial report: the run was interrupted" in text.splitlines()[-2]
    assert "verdict: failed" in text.splitlines()[-1]


def test_markup_in_a_message_is_printed_as_it_is() -> None:
    result = GateResult("g", Verdict.FAILED, cases=1, failed=1, findings=[Finding("[bold]not markup[/bold]")])
    for terminal in (False, True):
        assert "[bold]not markup[/bold]" in shown(RunReport("r", "b", "h", [result]), terminal=terminal)


def test_long_tables_and_many_findings_are_left_out_unless_asked_for() -> None:
    findings = [Finding(f"number {number}") for number in range(30)]
    details = {"text": "row\n" * 200}
    result = GateResult("g", Verdict.FAILED, cases=1, failed=1, findings=findings, details=details)
    short, long = list(lines([result])), list(lines([result], verbose=True))
    assert "g: a table of 200 lines is left out (--verbose, --html or --json show it)" in short
    assert "g: and 10 more (all of them with --verbose)" in short
    assert sum(line == "  row" for line in long) == 200
    assert "g: number 29" in long


def test_the_only_commit_of_a_stack_is_not_told_twice(report: RunReport) -> None:
    (_, second) = report.commits
    single = replace(report, base=second.base, commits=[second], partial=False)
    assert sum(line.startswith("metal-run ") for line in report_lines(single)) == 1


def test_nothing_moves_where_nobody_watches() -> None:
    with watcher() as observer:
        assert isinstance(observer, Quiet)


def test_a_report_replaces_an_older_one_whole_and_keeps_nothing_beside_it(report: RunReport, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text("old")
    ReportFiles(html=str(file)).write(report)
    assert file.read_text().startswith("<!DOCTYPE html>")
    assert list(tmp_path.iterdir()) == [file]
    assert file.stat().st_mode & 0o444 == 0o444


def test_a_report_that_cannot_be_written_is_noticed_before_the_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such folder"):
        ReportFiles(junit=str(tmp_path / "nowhere" / "x.xml")).require_writable()
    ReportFiles(json="-").require_writable()
