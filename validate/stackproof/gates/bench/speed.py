"""What was measured of each row, beside each other, and the tables that such pull requests have."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

from stackproof.gates.bench.timing import Timing
from stackproof.ops.grid_sampler.bench.rows import Row, necessary_bytes


@dataclass(frozen=True)
class Measured:
    """One row.

    Attributes:
        row: what was run.
        times: by who ran it, in milliseconds.
    """

    row: Row
    times: Mapping[str, Timing]

    def speedup(self, over: str, of: str) -> float | None:
        """How many times faster ``of`` is than ``over``; ``None`` where one of them was not run."""
        if over not in self.times or of not in self.times:
            return None
        return self.times[over].median / self.times[of].median

    def bandwidth(self, who: str) -> float:
        """Terabytes a second of the bytes that must move."""
        return necessary_bytes(self.row) / self.times[who].median / 1e9


def aten_backward(row: Row, device: str) -> Callable[[], object]:
    """PyTorch's own operator on a row's tensors, both gradients, to be run any number of times."""
    operator = getattr(torch.ops.aten, row.op)
    tensors = row.tensors(device)
    return lambda: operator(*tensors, *row.modes, [True, True])


def geometric_mean(numbers: Sequence[float]) -> float:
    """Of positive numbers; NaN of none."""
    return math.exp(sum(map(math.log, numbers)) / len(numbers)) if numbers else math.nan


def paragraph(text: str) -> str:
    """Lines as long as those of a commit message."""
    return textwrap.fill(text, 72, break_long_words=False, break_on_hyphens=False)


def markdown_table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table."""
    return [f"| {' | '.join(head)} |", "|" + "---|" * len(head), *(f"| {' | '.join(line)} |" for line in lines)]


def speed_markdown(
    title: str, measured: Sequence[Measured], after: str, copy: float, single: Sequence[str] = ()
) -> str:
    """A paragraph, then for each group of rows a table and what it comes to.

    Args:
        title: what was measured, and where.
        measured: in the order of the tables.
        after: whom the others are compared with.
        copy: terabytes a second that a copy on the device moves.
        single: groups whose rows are shown one by one; the others are summed up. All without any.
    """
    parts = [paragraph(title)]
    groups = dict.fromkeys(one.row.group for one in measured)
    for group in groups:
        rows = [one for one in measured if one.row.group == group]
        lines = list(_comparisons(rows, after))
        if group in single or not single:
            lines = [*_table(rows, after, copy), *(["", *lines] if lines else [])]
        parts.append("\n".join([f"**{group}**", "", *lines]))
    return "\n\n".join(parts) + "\n"


def others_than(after: str, measured: Sequence[Measured]) -> list[str]:
    """Whoever else ran anything, in the order in which they were run."""
    return [name for name in dict.fromkeys(name for one in measured for name in one.times) if name != after]


def _table(rows: Sequence[Measured], after: str, copy: float) -> list[str]:
    others = others_than(after, rows)
    head = ["interpolation", "dtype", "shape", "layout", "grid", *(f"{name}, ms" for name in others)]
    head += [f"{after}, ms (spread)", *(f"over {name}" for name in others), "of copy bandwidth"]
    return markdown_table(head, [_line(one, others, after, copy) for one in rows])


def _line(one: Measured, others: Sequence[str], after: str, copy: float) -> list[str]:
    row = one.row
    cells = [row.interpolation, row.dtype_name, str(row.shape), row.layout, row.grid]
    cells += [f"{one.times[name].median:.3f}" if name in one.times else "-" for name in others]
    if after not in one.times:
        return [*cells, "-", *("-" for _ in others), "-"]
    ratios = [one.speedup(name, after) for name in others]
    cells += [str(one.times[after]), *("-" if ratio is None else f"{ratio:.2f}" for ratio in ratios)]
    return [*cells, f"{one.bandwidth(after) / copy:.0%}"]


def _comparisons(rows: Sequence[Measured], after: str) -> Iterator[str]:
    for name in others_than(after, rows):
        found = [(ratio, one.row) for one in rows if (ratio := one.speedup(name, after)) is not None]
        if found:
            lowest, row = min(found, key=lambda pair: pair[0])
            mean = geometric_mean([ratio for ratio, _ in found])
            yield f"{after} over {name}: geometric mean {mean:.2f}, lowest {lowest:.2f} ({row.label})."
