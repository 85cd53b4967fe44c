"""The table of a metal-run: how many cases each mode had, and the largest error of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from stackproof.ops import CaseResult

ERROR_UNIT = "epsilons of the dtype, against float64 (see stackproof.ops.measure)"


@dataclass
class Row:
    """One mode in one dtype.

    Attributes:
        op: aten name.
        run_mode: how the kernels were run (``plain``, ``detectors``, ...).
        mode: how the op was called.
        dtype: of the tensors.
        cases: how many.
        failed: how many of them have a problem.
        errors: by output, the largest error.
        cpu_errors: by output, the largest error of the CPU's kernel on those cases where it was asked.
    """

    op: str
    run_mode: str
    mode: str
    dtype: str
    cases: int = 0
    failed: int = 0
    errors: dict[str, float] = field(default_factory=dict)
    cpu_errors: dict[str, float] = field(default_factory=dict)

    def add(self, result: CaseResult) -> None:
        """Count one more case."""
        self.cases += 1
        self.failed += bool(result.problems)
        _keep_largest(self.errors, result.errors)
        _keep_largest(self.cpu_errors, result.cpu_errors)

    def as_json(self) -> dict[str, Any]:
        """The same as plain data."""
        return asdict(self)


def _keep_largest(largest: dict[str, float], errors: Mapping[str, float]) -> None:
    for output, error in errors.items():
        largest[output] = max(largest.get(output, 0.0), error)


class Table:
    """Rows by op, run mode, mode and dtype, in the order in which they first appear."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str, str, str], Row] = {}

    def add(self, op: str, run_mode: str, results: Iterable[CaseResult]) -> None:
        """Count the results of one unit."""
        for result in results:
            key = (op, run_mode, result.mode, result.dtype)
            self._rows.setdefault(key, Row(*key)).add(result)

    @property
    def worst_error(self) -> float | None:
        """The largest of all."""
        return max((error for row in self._rows.values() for error in row.errors.values()), default=None)

    @property
    def details(self) -> dict[str, Any]:
        """The table as a gate's result has it."""
        rows = self.rows
        return {"error_unit": ERROR_UNIT, "table": [row.as_json() for row in rows], "text": render(rows)}

    @property
    def rows(self) -> list[Row]:
        """Sorted by op, run mode (plain first), mode and dtype (widest first)."""
        order = {"float32": 0, "float16": 1, "bfloat16": 2}
        return sorted(
            self._rows.values(),
            key=lambda row: (row.op, row.run_mode != "plain", row.run_mode, row.mode, order.get(row.dtype, 3)),
        )


def render(rows: Sequence[Row]) -> str:
    """The table for people; errors in units of the dtype's epsilon, the CPU's own float32 beside ours."""
    lines = [f"largest errors in {ERROR_UNIT}"]
    heading = ""
    for row in rows:
        title = f"{row.op}, {row.run_mode}"
        if title != heading:
            heading = title
            lines += ["", title, f"  {'mode':38} {'dtype':9} {'cases':>6} {'failed':>6}  largest error (of the CPU)"]
        shown = "  ".join(f"{output} {_error(row, output)}" for output in row.errors)
        lines.append(f"  {row.mode:38} {row.dtype:9} {row.cases:6} {row.failed:6}  {shown}")
    return "\n".join(lines) + "\n"


def _error(row: Row, output: str) -> str:
    cpu = f" ({row.cpu_errors[output]:.3f})" if output in row.cpu_errors else ""
    return f"{row.errors[output]:.3f}{cpu}"
