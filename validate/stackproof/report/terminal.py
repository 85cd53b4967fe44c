"""The run on a terminal: the same facts as the plain text, with a table and colours."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from stackproof.model import GateResult, Verdict
from stackproof.report.model import RunReport
from stackproof.report.text import closing_lines, counted_findings, finding_text, remark_lines, report_lines, row_cells

_STYLES = {Verdict.PASSED: "bold green", Verdict.FAILED: "bold red", Verdict.NOT_RUN: "yellow"}


def show(report: RunReport, console: Console, *, verbose: bool = False) -> None:
    """Print the run: a coloured table on a terminal, plain lines anywhere else."""
    if not console.is_terminal:
        for line in report_lines(report, verbose=verbose):
            print(line, file=console.file)
        return
    for heading, results in report.parts():
        title = heading or (f"the whole stack, {report.base[:12]}..{report.head[:12]}" if report.commits else "")
        console.print(_table(results, title))
        for result in results:
            _print_remarks(result, console, verbose=verbose)
    for line in closing_lines(report):
        style = _STYLES[report.verdict if report.outcome == report.verdict.value else Verdict.NOT_RUN]
        console.print(Text(line, style=style))


def _table(results: Sequence[GateResult], title: str) -> Table:
    table = Table(title=Text(title) if title else None, title_justify="left", header_style="bold")
    for heading in ("gate", "verdict"):
        table.add_column(heading, no_wrap=True)
    for heading in ("cases", "failed", "worst error", "seconds"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("remark", overflow="fold")
    for result in results:
        name, verdict, *numbers = row_cells(result)
        remark = result.reason or counted_findings(result)
        table.add_row(
            Text(name), Text(verdict, style=_STYLES[result.verdict]), *(Text(cell) for cell in numbers), Text(remark)
        )
    return table


def _print_remarks(result: GateResult, console: Console, *, verbose: bool) -> None:
    failing = {f"{result.name}: {finding_text(finding)}" for finding in result.findings if finding.fails}
    for line in remark_lines(result, verbose=verbose):
        style = "red" if line in failing else "dim" if ": not shown by this: " in line else ""
        console.print(Text(line, style=style), soft_wrap=True)
