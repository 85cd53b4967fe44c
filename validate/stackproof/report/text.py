"""The run for a person, without colours: what goes into a pipe, a log or a terminal that has none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from stackproof.launches import launch_lines
from stackproof.model import Finding, GateResult, Verdict
from stackproof.report.model import UNPROVED, RunReport, headline

_SHOWN_FINDINGS = 20
_SHOWN_TABLE_LINES = 40
PARTIAL = "partial report: the run was interrupted"


def report_lines(report: RunReport, *, verbose: bool = False) -> Iterator[str]:
    """The whole run: each commit's gates, then those of the range, then the verdict."""
    for heading, results in report.parts():
        if report.commits:
            yield heading or f"the whole stack, {report.base[:12]}..{report.head[:12]}"
        yield from gate_lines(results, verbose=verbose)
        if heading:
            yield ""
    yield from closing_lines(report)


def lines(results: Sequence[GateResult], *, verbose: bool = False) -> Iterator[str]:
    """One list of results with its verdict: one row a gate, then what failed, then what was not shown."""
    yield from gate_lines(results, verbose=verbose)
    yield f"verdict: {headline(results)}"


def gate_lines(results: Sequence[GateResult], *, verbose: bool = False) -> Iterator[str]:
    """One row a gate, then what was found, then what was not shown."""
    yield f"{'gate':<14} {'verdict':<8} {'cases':>7} {'failed':>7} {'worst error':>12} {'seconds':>8}"
    for result in results:
        cells = row_cells(result)
        row = f"{cells[0]:<14} {cells[1]:<8} {cells[2]:>7} {cells[3]:>7} {cells[4]:>12} {cells[5]:>8}"
        yield f"{row}  {result.reason}".rstrip()
    for result in results:
        yield from remark_lines(result, verbose=verbose)


def row_cells(result: GateResult) -> tuple[str, str, str, str, str, str]:
    """Name, verdict, cases, failed, worst error and seconds as text; counts are empty where nothing ran."""
    worst = "" if result.worst_error is None else f"{result.worst_error:.3g}"
    counts = ("", "") if result.verdict is Verdict.NOT_RUN else (str(result.cases), str(result.failed))
    return (result.name, result.verdict.value, *counts, worst, f"{result.seconds:.1f}")


def remark_lines(result: GateResult, *, verbose: bool = False) -> Iterator[str]:
    """What a gate looked at, its table, findings and limits."""
    yield from (f"{result.name}: {line}" for line in launch_lines(result))
    unit = result.details.get("error_unit")
    if unit and result.worst_error is not None:
        yield f"{result.name}: the worst error is in units of {unit}"
    yield from _table_lines(result, verbose=verbose)
    yield from _finding_lines(result, verbose=verbose)
    yield from (f"{result.name}: not shown by this: {limit}" for limit in result.shown_limits)


def closing_lines(report: RunReport) -> Iterator[str]:
    """The last lines of every report."""
    if report.partial:
        yield PARTIAL
    yield from unproved_lines(report)
    yield from (f"required but not run: {one}" for one in report.required_not_run)
    yield f"verdict: {report.headline}"


def unproved_lines(report: RunReport) -> Iterator[str]:
    """The kernels that no gate launched, of each part of the report that has some, all of them named."""
    for heading, base, head, _results in report.ranges():
        kernels = report.unproved.get((base, head))
        if kernels:
            where = f" ({heading})" if heading else ""
            yield f"{UNPROVED}: kernel {', '.join(kernels)}: no gate launched what the stack brings{where}"


def table_text(result: GateResult) -> list[str]:
    """A gate's own readable table (``details["text"]``, or lines in ``details["table"]``), empty where it has none."""
    text = result.details.get("text")
    if isinstance(text, str):
        return text.splitlines()
    table = result.details.get("table")
    if isinstance(table, (list, tuple)) and all(isinstance(line, str) for line in table):
        return [str(line) for line in table]
    return []


def counted_findings(result: GateResult) -> str:
    """``2 findings, 1 note``; empty where there is nothing to count."""
    fails = sum(finding.fails for finding in result.findings)
    numbers = ((fails, "finding"), (len(result.findings) - fails, "note"))
    return ", ".join(f"{number} {word}{'' if number == 1 else 's'}" for number, word in numbers if number)


def finding_text(finding: Finding) -> str:
    """``path:line: message [rule]``, the parts that there are."""
    place = f"{finding.path}:{finding.line}: " if finding.line else f"{finding.path}: " if finding.path else ""
    rule = f" [{finding.rule}]" if finding.rule else ""
    return f"{'' if finding.fails else 'note: '}{place}{finding.message}{rule}"


def _table_lines(result: GateResult, *, verbose: bool) -> Iterable[str]:
    table = table_text(result)
    if len(table) > _SHOWN_TABLE_LINES and not verbose:
        return [f"{result.name}: a table of {len(table)} lines is left out (--verbose, --html or --json show it)"]
    return [f"  {line}" for line in table]


def _finding_lines(result: GateResult, *, verbose: bool) -> Iterator[str]:
    found = sorted(result.findings, key=lambda finding: not finding.fails)
    shown = found if verbose else found[:_SHOWN_FINDINGS]
    for finding in shown:
        yield f"{result.name}: {finding_text(finding)}"
    if len(found) > len(shown):
        yield f"{result.name}: and {len(found) - len(shown)} more (all of them with --verbose)"
