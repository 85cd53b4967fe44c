"""Draws ``results/wide.json``: how many times faster the series is, kind by kind, as geometric means.

python bench/grid_sampler_backward/plot_wide.py > docs/assets/fast-backward.svg
"""

from __future__ import annotations

import json
import math
import sys
from collections import defaultdict
from pathlib import Path

from stackproof.report.svg import Bar, bar_plot, standalone

_FILE = Path(__file__).parent / "results" / "wide.json"
_MOST = 20.0
"""Longer bars would hide the others."""


def plot() -> str:
    """The plot, over the rows that the series takes."""
    kinds: dict[str, list[dict[str, list[float]]]] = defaultdict(list)
    for row in json.loads(_FILE.read_text())["rows"]:
        if "stack" in row:
            bits = "float32" if row["dtype"] == "float32" else "16 bits"
            kinds[f"{row['group']}, {bits}"].append(row)
    bars = []
    for kind, rows in kinds.items():
        means = {
            f"PyTorch {name.upper()}" if name == "cuda" else "upstream's MPS kernels": _mean(rows, name)
            for name in ("cuda", "upstream")
        }
        bars.append(Bar(f"{kind} ({len(rows)})", {name: min(value, _MOST) for name, value in means.items()}))
    return standalone(bar_plot(bars, f"times faster than ..., bars end at {_MOST:.0f}; one H200, no Apple GPU"))


def _mean(rows: list[dict[str, list[float]]], other: str) -> float:
    return math.exp(sum(math.log(row[other][0] / row["stack"][0]) for row in rows) / len(rows))


if __name__ == "__main__":
    sys.stdout.write(plot())
