"""What a GPU measured, for a terminal, as bars and as plain data: the stack over whoever else ran, kind by kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from stackproof.gates.bench.speed import Measured, geometric_mean, others_than
from stackproof.ops.grid_sampler.bench.rows import necessary_bytes
from stackproof.report.svg import Bar, bar_plot

# Names of the columns.
BEFORE, AFTER = "base commit", "stack"


def _kinds(measured: Sequence[Measured]) -> dict[str, list[Measured]]:
    found: dict[str, list[Measured]] = {}
    for one in measured:
        found.setdefault(f"{one.row.group}, {one.row.interpolation}, {one.row.dtype_name}", []).append(one)
    return found


def _ratios(rows: Sequence[Measured], over: str) -> list[float]:
    return [ratio for one in rows if (ratio := one.speedup(over, AFTER)) is not None]


def text(measured: Sequence[Measured]) -> str:
    """Speed-ups of the stack by kind of rows, for a terminal: geometric mean and lowest."""
    others = others_than(AFTER, measured)
    lines = [f"{'stack over ...':<48}" + "".join(f"{name:>22}" for name in others)]
    for kind, rows in _kinds(measured).items():
        cells = [
            f"{geometric_mean(ratios):.2f}, lowest {min(ratios):.2f}" if (ratios := _ratios(rows, name)) else "-"
            for name in others
        ]
        lines.append(f"{kind:<48}" + "".join(f"{cell:>22}" for cell in cells))
    return "\n".join(lines)


def plot(measured: Sequence[Measured]) -> str:
    """The same as bars."""
    bars = [Bar(kind, dict(_means(rows))) for kind, rows in _kinds(measured).items()]
    return bar_plot([bar for bar in bars if bar.values], "times faster than")


def _means(rows: Sequence[Measured]) -> Iterator[tuple[str, float]]:
    for name in others_than(AFTER, rows):
        if ratios := _ratios(rows, name):
            yield name, geometric_mean(ratios)


def records(measured: Sequence[Measured], copy: float) -> list[dict[str, str | float | None]]:
    """One flat record a row, for the JSON report; ``copy`` is the copy bandwidth in terabytes a second."""
    return [_record(one, copy) for one in measured]


def _record(one: Measured, copy: float) -> dict[str, str | float | None]:
    record: dict[str, str | float | None] = {"group": one.row.group, "row": one.row.label}
    for name in (*others_than(AFTER, [one]), AFTER):
        record |= {f"{name}, {what}": value for what, value in asdict(one.times[name]).items()}
    share = one.bandwidth(AFTER) / copy
    return record | {"must_move_bytes": necessary_bytes(one.row), "share_of_copy_bandwidth": share}
