"""What a gate hands over besides findings and errors: its own words, its lists as tables, the rest folded away."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from stackproof.model import GateResult
from stackproof.report.json import plain

_LONGEST = 20_000  # characters of a detail; the rest is in the JSON
_SHOWN_ELSEWHERE = ("table", "text", "error_unit", "summary", "plot", "markdown")


def summary(result: GateResult) -> str:
    """The gate's own summary as a paragraph, empty where it has none."""
    text = result.details.get("summary")
    return f"<p>{escape(text)}</p>" if isinstance(text, str) and text else ""


def plot(result: GateResult) -> str:
    """The gate's own plot, which is SVG that :mod:`stackproof.report.svg` made; empty where it has none."""
    svg = result.details.get("plot")
    return f'<div class="scroll">{svg}</div>' if isinstance(svg, str) and svg else ""


def details(result: GateResult) -> Iterator[str]:
    """Each list of records as a table, then everything else as it is in the JSON."""
    rest: dict[str, Any] = {}
    for name, value in result.details.items():
        if name in _SHOWN_ELSEWHERE or value in ([], {}, "", None):
            continue
        value = plain(value)
        if _is_records(value):
            yield _folded(f"{name} ({len(value)})", _table(value))
        else:
            rest[name] = value
    if rest:
        yield _folded("details", f"<pre>{escape(_cut(json.dumps(rest, indent=2, ensure_ascii=False)))}</pre>")


def _is_records(value: Any) -> bool:
    """Whether this is a list of flat mappings with the same keys."""
    if not isinstance(value, list) or not value or not all(isinstance(row, Mapping) and row for row in value):
        return False
    cells = [cell for row in value for cell in row.values()]
    return len({tuple(row) for row in value}) == 1 and not any(isinstance(cell, (list, dict)) for cell in cells)


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in rows[0])
    body = "".join(f"<tr>{''.join(_cell(cell) for cell in row.values())}</tr>" for row in rows)
    return f'<div class="scroll"><table class="dense"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return f"<td>{'' if value is None else 'yes' if value else 'no'}</td>"
    text = f"{value:.3g}" if isinstance(value, float) else str(value)
    return f"<td>{escape(_cut(text))}</td>"


def _cut(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}\n... {len(text) - _LONGEST} more characters in the JSON report"


def _folded(title: str, inside: str) -> str:
    return f"<details><summary>{escape(title)}</summary>{inside}</details>"
