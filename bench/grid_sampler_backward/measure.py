"""The table: PyTorch's own kernel, change 1 and the selected candidate, on every row, in one run.

    python measure.py BUILD_FOLDER --out FOLDER [--upstream FILE]

Writes results.json and results.md, with the device named. ``--upstream``: what upstream.py measured, the milliseconds
of upstream's own MPS kernels by row label; a column of its own.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from candidates import Case, Library, backward, change_one
from loading import load_libraries
from rows import Row, other_rows, pr_rows
from selection import choose
from timing import Timing, copy_bandwidth, measure


@dataclass(frozen=True)
class Result:
    """One row, in milliseconds.

    Attributes:
        group: of the row.
        label: of the row.
        own: PyTorch's kernel for this device.
        change_one: the kernel of change 1; ``None`` in three dimensions.
        candidate: the selected kernels, layout changes and zero-filling included.
        selected: their division of the work.
        steps: median of each launch of the candidate alone.
        upstream: given from outside.
        bandwidth: share of the copy bandwidth that the bytes that must move come to.
    """

    group: str
    label: str
    own: Timing
    change_one: Timing | None
    candidate: Timing
    selected: str
    steps: tuple[float, ...]
    upstream: float | None
    bandwidth: float

    @property
    def speedup(self) -> float:
        """Over PyTorch's own kernel."""
        return self.own.median / self.candidate.median


def necessary_bytes(case: Case) -> int:
    """What any kernel must read and write: grad_output, input, grid, and grad_input twice since it is zeroed first."""
    tensors = [case.grad_output, case.input, case.input, case.grid, case.grid]
    if case.interpolation != "nearest":
        tensors.append(case.input)
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def run(library: Library, row: Row, bandwidth: float, upstream: dict[str, float]) -> Result:
    """Measure one row."""
    case = row.case("cuda")
    spread, turn = choose(case)
    work = backward(library, case, spread, turn)
    candidate = measure(work)
    return Result(
        row.group,
        row.label,
        measure(case.reference),
        measure(change_one(library, case)) if case.dimensions == 2 else None,
        candidate,
        spread.suffix,
        tuple(measure(step, 5).median for step in work.steps),
        upstream.get(row.label),
        necessary_bytes(case) / candidate.median / 1e9 / bandwidth,
    )


def geometric_mean(numbers: Sequence[float]) -> float:
    """Of positive numbers."""
    return math.exp(sum(map(math.log, numbers)) / len(numbers)) if numbers else math.nan


def markdown(device: str, bandwidth: float, results: Sequence[Result]) -> str:
    """The report."""
    text = [
        f"Measured on {device} (PyTorch {torch.__version__}, copy {bandwidth:.2f} TB/s), a stand-in: no Apple",
        "GPU was measured. The same Metal source, compiled to PTX; medians of 11, milliseconds, second-level cache",
        "flushed; zero-filling, layout changes and rounding included.",
        "",
    ]
    for group in dict.fromkeys(result.group for result in results):
        rows = [result for result in results if result.group == group]
        text += [f"### {group}", ""]
        text += ["| row | PyTorch CUDA | change 1 | upstream MPS | candidate | over CUDA | bandwidth | kernel |"]
        text += ["|---|--:|--:|--:|--:|--:|--:|---|"]
        text += [_line(result) for result in rows]
        text += ["", *_summary(rows), ""]
    return "\n".join(text)


def _line(result: Result) -> str:
    own, found = result.own, result.candidate
    change = f"{result.change_one.median:.3f}" if result.change_one else "-"
    upstream = f"{result.upstream:.3f}" if result.upstream else "-"
    spread = f"{found.median:.3f} ({found.low:.3f}-{found.high:.3f})"
    return (
        f"| {result.label} | {own.median:.3f} | {change} | {upstream} | {spread} | {result.speedup:.2f}"
        f" | {result.bandwidth:.0%} | {result.selected} |"
    )


def _summary(rows: Sequence[Result]) -> list[str]:
    ratios: list[tuple[str, Callable[[Result], float | None]]] = [
        ("PyTorch CUDA", lambda r: r.own.median),
        ("change 1", lambda r: r.change_one.median if r.change_one else None),
        ("upstream MPS", lambda r: r.upstream),
    ]
    lines = []
    for name, time in ratios:
        found = [(value / row.candidate.median, row) for row in rows if (value := time(row)) is not None]
        if found:
            worst, row = min(found, key=lambda pair: pair[0])
            mean = geometric_mean([ratio for ratio, _ in found])
            lines.append(f"Over {name}: geometric mean {mean:.2f}, lowest {worst:.2f} ({row.label}).")
    return lines


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--upstream", type=Path)
    arguments = parser.parse_args()
    library = load_libraries(arguments.build)
    upstream = json.loads(arguments.upstream.read_text())["milliseconds"] if arguments.upstream else {}
    bandwidth = copy_bandwidth()
    results = []
    for row in pr_rows() + other_rows():
        results.append(run(library, row, bandwidth, upstream))
        torch.cuda.empty_cache()
    device = torch.cuda.get_device_name()
    content = {"device": device, "torch": torch.__version__, "copy_tb_s": bandwidth}
    content["results"] = [asdict(result) for result in results]
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "results.json").write_text(json.dumps(content, indent=1))
    (arguments.out / "results.md").write_text(markdown(device, bandwidth, results) + "\n")
    print(f"{len(results)} rows measured on {device}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
