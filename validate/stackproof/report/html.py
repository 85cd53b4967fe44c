"""The run as one HTML file: the table of the terminal, plots of errors and times, every finding, every limit.

Nothing is loaded from anywhere and nothing is scripted, so the file can be attached to a pull request and opened years
later.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from stackproof.launches import launch_lines
from stackproof.model import Finding, GateResult, Verdict
from stackproof.report.error_rows import ErrorRow, error_rows, groups
from stackproof.report.html_details import details, plot, summary
from stackproof.report.model import RunReport
from stackproof.report.style import STYLE
from stackproof.report.svg import error_plot, legend, time_plot
from stackproof.report.text import PARTIAL, counted_findings, row_cells, table_text, unproved_lines


def render(report: RunReport) -> str:
    """The document, ending with a line feed."""
    title = f"validate-stack: {report.outcome}"
    body = "\n".join(_body(report))
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _body(report: RunReport) -> Iterator[str]:
    yield f"<h1>validate-stack {_badge(report.outcome)}</h1>"
    yield f"<p>{escape(report.headline)}</p>"
    for line in (*unproved_lines(report), *(f"required but not run: {one}" for one in report.required_not_run)):
        yield f'<p class="partial">{escape(line)}</p>'
    yield _facts(report)
    if report.partial:
        yield f'<p class="partial">{PARTIAL[0].upper()}{PARTIAL[1:]}. What it did not get to is marked as not run.</p>'
    yield "<h2>The whole stack</h2>" if report.commits else "<h2>Gates</h2>"
    yield _summary(report.results, "")
    if report.commits:
        yield _commit_matrix(report)
    yield "<h2>Time</h2>"
    yield f'<div class="scroll">{time_plot(report.results)}</div>'
    yield from _gates(report.results, "")
    for number, commit in enumerate(report.commits, 1):
        if not report.is_whole(commit):
            yield f"<h2>Commit {number}: {escape(commit.title)} {_badge(report.outcome_of(commit))}</h2>"
            yield _summary(commit.results, f"c{number}-")
            yield from _gates(commit.results, f"c{number}-")


def _gates(results: Sequence[GateResult], anchor: str) -> Iterator[str]:
    """What each gate that ran has to tell beyond its row."""
    for result in results:
        if _has_section(result):
            yield from _gate(result, anchor)


def _has_section(result: GateResult) -> bool:
    return result.verdict is not Verdict.NOT_RUN or bool(result.findings)


def _facts(report: RunReport) -> str:
    facts = {
        "repository": report.repository,
        "range": f"{report.base[:12]}..{report.head[:12]}",
        "started": report.started.strftime("%Y-%m-%d %H:%M:%S %Z"),
        "took": f"{report.seconds:.1f} s",
        **report.environment,
    }
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts.items())
    return f'<dl class="facts">{rows}</dl>'


def _summary(results: Sequence[GateResult], anchor: str) -> str:
    numbers = "".join(f'<th class="number">{name}</th>' for name in ("cases", "failed", "worst error", "seconds"))
    head = f"<th>gate</th><th>verdict</th>{numbers}<th>remarks</th>"
    rows = "".join(_summary_row(result, anchor) for result in results)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _summary_row(result: GateResult, anchor: str) -> str:
    name, _, *numbers = row_cells(result)
    link = f'<a href="#{anchor}{escape(name)}">{escape(name)}</a>' if _has_section(result) else escape(name)
    cells = "".join(f'<td class="number">{cell}</td>' for cell in numbers)
    remarks = escape("; ".join(text for text in (result.reason, counted_findings(result)) if text))
    verdict = f"<td class='name'>{link}</td><td>{_badge(result.verdict)}</td>"
    return f"<tr>{verdict}{cells}<td>{remarks}{_limits(result)}</td></tr>"


def _limits(result: GateResult) -> str:
    if not result.shown_limits:
        return ""
    items = "".join(f"<li>{escape(limit)}</li>" for limit in result.shown_limits)
    return f'<div class="limits">Not shown by this:<ul>{items}</ul></div>'


def _commit_matrix(report: RunReport) -> str:
    names = list(dict.fromkeys(result.name for commit in report.commits for result in commit.results))
    head = "<th>commit</th>" + "".join(f"<th>{escape(name)}</th>" for name in names)
    rows = []
    for number, commit in enumerate(report.commits, 1):
        anchor = "" if report.is_whole(commit) else f"c{number}-"
        by_name = {result.name: result for result in commit.results}
        cells = "".join(f"<td>{_matrix_cell(by_name.get(name), anchor)}</td>" for name in names)
        rows.append(f"<tr><td><code>{escape(commit.commit[:12])}</code> {escape(commit.title)}</td>{cells}</tr>")
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    return f'<h2>Each commit on its own</h2><div class="scroll">{table}</div>'


def _matrix_cell(result: GateResult | None, anchor: str) -> str:
    if result is None:
        return ""
    badge = _badge(result.verdict)
    return f'<a href="#{anchor}{escape(result.name)}">{badge}</a>' if _has_section(result) else badge


def _gate(result: GateResult, anchor: str) -> Iterator[str]:
    yield f'<h3 id="{anchor}{escape(result.name)}">{escape(result.name)} {_badge(result.verdict)}</h3>'
    yield summary(result)
    yield from (f"<p>{escape(line)}</p>" for line in launch_lines(result))
    yield _findings(result.findings)
    rows = error_rows(result)
    unit = str(result.details.get("error_unit", "the gate's unit"))
    for number, (group, inside) in enumerate(groups(rows).items()):
        yield _errors(group, inside, unit, opened=number == 0)
    text = table_text(result)
    if text and not rows:
        yield f"<pre>{escape(chr(10).join(text))}</pre>"
    yield plot(result)
    yield from details(result)


def _errors(group: str, rows: Sequence[ErrorRow], unit: str, *, opened: bool) -> str:
    cases, failed = sum(row.cases for row in rows), sum(row.failed for row in rows)
    summary = f"Errors of {escape(group)}: {cases} cases, {failed} failed"
    return (
        f"<details{' open' if opened else ''}><summary>{summary}</summary>"
        f'<p class="dim">Largest error of each mode, in {escape(unit)}. The dashed line is 1, the left edge is 0 or '
        f"nearly 0, the right edge may be more; a red rim marks a mode that failed.</p>"
        f'<p>{legend(rows)}</p><div class="scroll">{error_plot(rows, unit)}</div>'
        f"<details><summary>as numbers</summary>{_error_table(rows)}</details></details>"
    )


def _error_table(rows: Sequence[ErrorRow]) -> str:
    outputs = list(dict.fromkeys(name for row in rows for name in row.errors))
    numbers = ["cases", "failed", *outputs, *(f"{output}, CPU" for output in outputs)]
    head = "<th>mode</th><th>dtype</th>" + "".join(f'<th class="number">{escape(name)}</th>' for name in numbers)
    body = []
    for row in rows:
        values = [str(row.cases), str(row.failed)]
        values += [_error(row.errors.get(output)) for output in outputs]
        values += [_error(row.cpu_errors.get(output)) for output in outputs]
        cells = "".join(f'<td class="number">{value}</td>' for value in values)
        body.append(f"<tr><td>{escape(row.mode)}</td><td>{escape(row.dtype)}</td>{cells}</tr>")
    table = f"<table class='dense'><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
    return f'<div class="scroll">{table}</div>'


def _error(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def _findings(findings: Sequence[Finding]) -> str:
    if not findings:
        return ""
    rows = "".join(_finding(finding) for finding in sorted(findings, key=lambda finding: not finding.fails))
    head = "<th></th><th>rule</th><th>place</th><th>finding</th>"
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _finding(finding: Finding) -> str:
    kind = '<span class="failed">fails</span>' if finding.fails else "note"
    place = f"{finding.path}:{finding.line}" if finding.line else finding.path
    return (
        f'<tr class="{"" if finding.fails else "note"}"><td>{kind}</td><td><code>{escape(finding.rule)}</code></td>'
        f'<td class="place">{escape(place)}</td><td>{escape(finding.message)}</td></tr>'
    )


def _badge(verdict: Verdict | str) -> str:
    text = verdict.value if isinstance(verdict, Verdict) else verdict
    return f'<span class="badge {text.replace(" ", "-")}">{text}</span>'
