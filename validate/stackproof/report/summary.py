"""Several reports as one Markdown table: a line for each, a column for each gate, and below it what failed.

It reads the JSON that runs wrote, on whatever machines, so that one page shows them all.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from patchstack.errors import UsageError

_SHOWN = 30
_MARKS = {"passed": "✅ passed", "failed": "❌ failed", "not run": "not run", "unproved": "❓ unproved"}
_EXPECTED = "a file that validate-stack --json wrote"


def read_report(path: Path) -> Mapping[str, Any]:
    """The JSON of a run.

    Raises:
        UsageError: it is none.
    """
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
        verdict, gates = report["verdict"], report["gates"]
        found = all({"name", "verdict", "cases", "failed", "findings", "reason"} <= gate.keys() for gate in gates)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise UsageError("not a report", where=str(path), expected=_EXPECTED) from None
    if not found or verdict not in _MARKS:
        raise UsageError("not a report", where=str(path), expected=_EXPECTED)
    return report  # type: ignore[no-any-return]


def markdown(reports: Mapping[str, Mapping[str, Any]]) -> str:
    """The table.

    Args:
        reports: what :func:`read_report` gave, by name.
    """
    gates = list(dict.fromkeys(gate["name"] for one in reports.values() for gate in one["gates"]))
    rows = [["report", "verdict", *gates], ["---"] * (len(gates) + 2)]
    for name, one in reports.items():
        by_name = {gate["name"]: gate for gate in one["gates"]}
        verdict = _MARKS[one["verdict"]] + (" (partial)" if one.get("partial") else "")
        rows.append([_cell(name), verdict, *(_verdict(by_name.get(gate)) for gate in gates)])
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([*lines, *_below(reports)]) + "\n"


def _verdict(gate: Mapping[str, Any] | None) -> str:
    if gate is None:
        return ""
    if gate["verdict"] == "passed":
        return f"✅ {gate['cases']:,}"
    if gate["verdict"] == "failed":
        return f"❌ {gate['failed']:,} of {gate['cases']:,}"
    return "not run"


def _below(reports: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    failed: dict[str, list[str]] = {}
    reasons: dict[str, list[str]] = {}
    for name, one in reports.items():
        for gate in one["gates"]:
            for finding in gate["findings"]:
                if finding["fails"]:
                    failed.setdefault(_finding(gate["name"], finding), []).append(name)
            if gate["verdict"] == "not run":
                reasons.setdefault(f"{gate['name']}: {_cell(gate['reason'])}", []).append(name)
        for part in one.get("unproved", ()):
            failed.setdefault(f"no gate launched {', '.join(map(str, part['kernels'][:5]))}", []).append(name)
    yield from _listed("What failed", failed, len(reports))
    yield from _listed("What was not run", reasons, len(reports))


def _listed(title: str, entries: Mapping[str, Sequence[str]], count: int) -> Iterator[str]:
    if not entries:
        return
    yield from ("", f"**{title}**", "")
    for text, names in list(entries.items())[:_SHOWN]:
        where = "all" if len(set(names)) == count > 1 else ", ".join(dict.fromkeys(names))
        yield f"- {text} ({where})"
    if len(entries) > _SHOWN:
        yield f"- and {len(entries) - _SHOWN} more"


def _finding(gate: str, finding: Mapping[str, Any]) -> str:
    place = f"`{finding['path']}:{finding['line']}`" if finding["line"] else f"`{finding['path']}`"
    rule = f" {finding['rule']}" if finding["rule"] else ""
    return f"{gate}{rule}{f', {place}' if finding['path'] else ''}: {_cell(finding['message'])}"


def _cell(text: str) -> str:
    """Text that leaves the table whole and mentions nobody."""
    plain = " ".join(str(text).split()).replace("|", "\\|").replace("<", "&lt;")
    return plain.replace("@", "@\u200b")
