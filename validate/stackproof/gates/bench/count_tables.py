"""The tables of what was counted: for a terminal, for a pull request, and as bars."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import fmean

import torch

from stackproof.gates.bench.counts import RowCount
from stackproof.gates.bench.speed import markdown_table, paragraph
from stackproof.gates.bench.traffic import Traffic
from stackproof.ops.grid_sampler.bench.rows import PR_GROUP, necessary_bytes
from stackproof.report.svg import Bar, bar_plot

SECTORS = "A sector is a piece of 32 bytes that a simdgroup's lanes touch together, counted each time."
Figure = Callable[[RowCount, Traffic], float]

_MEGA = 1e6
_UNIT = "per element (one channel of one position)"
COUNTED = (
    "Counted on the host, by running every thread of the kernels at small shapes. A count is no time, and nothing ran "
    "on a GPU."
)


def _per_element(name: str) -> Figure:
    return lambda count, traffic: count.per_element(traffic, name)


# Counts are those of float32; half has the loads and stores of one more rounding.
_FIGURES: tuple[tuple[str, Figure, torch.dtype], ...] = (
    ("atomics", _per_element("atomics"), torch.float32),
    ("loads", _per_element("loads"), torch.float32),
    ("stores", _per_element("stores"), torch.float32),
    ("atomic sectors", _per_element("atomic_sectors"), torch.float32),
    ("sectors", _per_element("sectors"), torch.float32),
    ("float16 sectors", _per_element("sectors"), torch.float16),
    ("x must move", RowCount.over_necessary, torch.float32),
)


def kinds(counts: Sequence[RowCount]) -> dict[str, list[RowCount]]:
    """Rows that differ in shape and dtype only, by group, interpolation, layout and grid, in the table's order."""
    found: dict[str, list[RowCount]] = {}
    for count in counts:
        row = count.row
        # Some groups are named after what all their rows have.
        words = dict.fromkeys((row.group, row.interpolation, row.layout, row.grid))
        found.setdefault(", ".join(words), []).append(count)
    return found


def has_base(counts: Sequence[RowCount]) -> bool:
    """Some row was counted on the base commit too."""
    return any(count.base is not None for count in counts)


def _schemes(counts: Sequence[RowCount]) -> str:
    """How the kernels that were counted divide the work, ``base > head`` where there is a base."""
    after = ", ".join(dict.fromkeys(count.head.scheme for count in counts))
    before = ", ".join(dict.fromkeys(count.base.scheme for count in counts if count.base is not None))
    return f"{before} > {after}" if before else after


def text(counts: Sequence[RowCount]) -> str:
    """One line a kind of rows, averaged over its shapes, for a terminal."""
    width = 15
    lines = [("rows, mean over shapes", [name for name, _, _ in _FIGURES])]
    lines += [(kind, list(_cells(rows))) for kind, rows in kinds(counts).items()]
    label = max(len(line[0]) for line in lines)
    head = f"traffic {_UNIT}{', base > head' if has_base(counts) else ''}; kernels: {_schemes(counts)}"
    return "\n".join([head, *(f"{name:<{label}}" + "".join(f" {c:>{width}}" for c in cells) for name, cells in lines)])


def _cells(rows: Sequence[RowCount]) -> Iterator[str]:
    """The figures of one kind of rows: means, ``base > head`` where there is a base."""
    for _, figure, dtype in _FIGURES:
        same = [row for row in rows if row.row.dtype is dtype]
        before = [figure(row, row.base.total) for row in same if row.base is not None]
        after = f"{fmean(figure(row, row.head.total) for row in same):.2f}" if same else ""
        yield f"{fmean(before):.2f} > {after}" if before else after


def markdown(counts: Sequence[RowCount]) -> str:
    """For a pull request: upstream's rows one by one, everything as means; a table each."""
    parts = [paragraph(f"{COUNTED} {SECTORS} Bytes are scaled from the shape that ran to the row's.")]
    rows = [count for count in counts if count.row.group == PR_GROUP]
    if rows:
        parts.append("\n".join(_pr_table(rows)))
    head = ["rows, mean over shapes", *(name for name, _, _ in _FIGURES)]
    lines = [[kind, *_cells(rows)] for kind, rows in kinds(counts).items()]
    how = ", before > after" if has_base(counts) else ""
    parts += [paragraph(f"Traffic {_UNIT}{how}; kernels: {_schemes(counts)}."), "\n".join(markdown_table(head, lines))]
    return "\n\n".join(parts) + "\n"


def _pr_table(counts: Sequence[RowCount]) -> list[str]:
    base = has_base(counts)
    head = ["interpolation", "dtype", "shape", "layout", "ran"]
    head += ["before, MB", "after, MB", "before / after"] if base else ["moved, MB"]
    return markdown_table([*head, "must move, MB"], [_pr_line(count, base=base) for count in counts])


def _pr_line(count: RowCount, *, base: bool) -> list[str]:
    row, after = count.row, count.moved(count.head.total)
    cells = [row.interpolation, row.dtype_name, str(row.shape), row.layout, str(count.ran.shape)]
    if base:
        before = count.moved(count.base.total) if count.base else None
        cells += ["", f"{after / _MEGA:.1f}", ""] if before is None else [
            f"{before / _MEGA:.1f}", f"{after / _MEGA:.1f}", f"{before / after:.2f}"
        ]  # fmt: skip
    else:
        cells.append(f"{after / _MEGA:.1f}")
    return [*cells, f"{necessary_bytes(row) / _MEGA:.1f}"]


def plot(counts: Sequence[RowCount]) -> str:
    """Bytes of sectors moved over bytes that must move in float32, by kind of rows, as SVG."""
    bars = []
    for kind, rows in kinds([count for count in counts if count.row.dtype is torch.float32]).items():
        before = [row.over_necessary(row.base.total) for row in rows if row.base is not None]
        values = {"base": fmean(before)} if before else {}
        bars.append(Bar(kind, values | {"head": fmean(row.over_necessary(row.head.total) for row in rows)}))
    return bar_plot(bars, "bytes of all sectors touched, over the bytes that must move, float32")
