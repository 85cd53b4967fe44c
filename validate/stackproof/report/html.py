"""The run as one HTML file: the table of the terminal, plots of errors and times, every finding, every limit.

Nothing is loaded from anywhere and nothing is scripted, so the file can be attached to a pull request and opened years
later. The markup is in ``templates``, which escape all text; here is what they ask for.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stackproof.launches import launch_lines
from stackproof.model import GateResult, Verdict
from stackproof.report.error_rows import ErrorRow, error_rows, groups, outputs
from stackproof.report.json import plain
from stackproof.report.model import RunReport
from stackproof.report.not_run import not_run_rows
from stackproof.report.svg import error_plot, legend, time_plot
from stackproof.report.text import counted_findings, row_cells, table_text, unproved_lines

if TYPE_CHECKING:
    from jinja2 import Template

_LONGEST = 20_000  # characters of a detail; the rest is in the JSON
_SHOWN_ELSEWHERE = ("table", "text", "error_unit", "summary", "plot", "markdown")


def render(report: RunReport) -> str:
    """The document, ending with a line feed."""
    facts = {
        **({"series": report.series} if report.series else {}),
        "repository": report.repository,
        "range": f"{report.base[:12]}..{report.head[:12]}",
        "started": report.started.strftime("%Y-%m-%d %H:%M:%S %Z"),
        "took": f"{report.seconds:.1f} s",
        **report.environment,
    }
    names = dict.fromkeys(result.name for commit in report.commits for result in commit.results)
    return _page().render(report=report, facts=facts, gate_names=names)


@functools.cache
def _page() -> Template:
    # Imported on use: it takes longer than a short run without an HTML report.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("stackproof.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    filters = (
        *(_cell, _error_groups, _has_section, _other_details),
        *(counted_findings, error_plot, launch_lines, legend, not_run_rows, outputs, row_cells, table_text, time_plot),
        unproved_lines,
    )
    environment.filters |= {function.__name__.lstrip("_"): function for function in filters}
    environment.filters["zip"] = zip
    return environment.get_template("page.html.j2")


def _has_section(result: GateResult) -> bool:
    """Whether a gate has more to tell than its row."""
    return result.verdict is not Verdict.NOT_RUN or bool(result.findings)


def _error_groups(result: GateResult) -> dict[str, list[ErrorRow]]:
    return groups(error_rows(result))


def _other_details(result: GateResult) -> tuple[dict[str, list[Mapping[str, Any]]], str]:
    """The details that are shown nowhere else: lists of records by name, and everything else as it is in the JSON."""
    shown = {name: plain(value) for name, value in result.details.items() if name not in _SHOWN_ELSEWHERE}
    tables = {name: value for name, value in shown.items() if _is_records(value)}
    rest = {name: value for name, value in shown.items() if name not in tables and value not in ([], {}, "", None)}
    return tables, _cut(json.dumps(rest, indent=2, ensure_ascii=False)) if rest else ""


def _is_records(value: Any) -> bool:
    """Whether this is a list of flat mappings with the same keys."""
    if not isinstance(value, list) or not value or not all(isinstance(row, Mapping) and row for row in value):
        return False
    cells = [cell for row in value for cell in row.values()]
    return len({tuple(row) for row in value}) == 1 and not any(isinstance(cell, (list, dict)) for cell in cells)


def _cell(value: Any) -> str:
    """What a cell of a table shows of a value."""
    if isinstance(value, bool) or value is None:
        return "" if value is None else "yes" if value else "no"
    return _cut(f"{value:.3g}" if isinstance(value, float) else str(value))


def _cut(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}\n... {len(text) - _LONGEST} more characters in the JSON report"
