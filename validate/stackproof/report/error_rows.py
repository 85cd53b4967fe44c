"""The rows of a gate's table that carry errors by mode and dtype, as plots and data tables want them.

Gates hand over plain data in ``details["table"]``. What looks like an error row is one; a table of anything else is
left to whoever wants to print it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from stackproof.model import GateResult


@dataclass(frozen=True)
class ErrorRow:
    """The largest errors of one mode in one dtype.

    Attributes:
        group: what is compared with each other: the op and how it was run.
        mode: how the op was called.
        dtype: of the tensors.
        cases: how many were judged.
        failed: how many of them failed.
        errors: by output, the largest error in the unit that the gate states.
        cpu_errors: the same of the CPU's own kernel, where it was asked.
    """

    group: str
    mode: str
    dtype: str
    cases: int
    failed: int
    errors: Mapping[str, float]
    cpu_errors: Mapping[str, float]


def error_rows(result: GateResult) -> list[ErrorRow]:
    """The error rows of a result; none where it has no such table."""
    table = result.details.get("table")
    return list(_rows(table)) if isinstance(table, (list, tuple)) else []


def groups(rows: Sequence[ErrorRow]) -> dict[str, list[ErrorRow]]:
    """Rows by group, in the order in which groups first appear."""
    grouped: dict[str, list[ErrorRow]] = {}
    for row in rows:
        grouped.setdefault(row.group, []).append(row)
    return grouped


def outputs(rows: Sequence[ErrorRow]) -> list[str]:
    """The outputs that the rows have errors of, each once, in order."""
    return list(dict.fromkeys(name for row in rows for name in row.errors))


def _rows(table: Sequence[object]) -> Iterator[ErrorRow]:
    for row in table:
        if not isinstance(row, Mapping) or not isinstance(row.get("errors"), Mapping):
            continue
        group = ", ".join(str(row[key]) for key in ("op", "run_mode") if row.get(key))
        yield ErrorRow(
            group,
            str(row.get("mode", "")),
            str(row.get("dtype", "")),
            int(row.get("cases", 0)),
            int(row.get("failed", 0)),
            _numbers(row["errors"]),
            _numbers(row.get("cpu_errors") or {}),
        )


def _numbers(errors: Mapping[object, object]) -> dict[str, float]:
    """Errors as numbers; a report read back from JSON spells infinities as words."""
    return {str(name): float(value) if value is not None else math.nan for name, value in errors.items()}  # type: ignore[arg-type]
