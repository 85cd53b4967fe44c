"""Times PyTorch's own grid sampler backward on this machine's device, for a pull request: the table, as Markdown.

    python bench_grid_sampler_backward.py --json before.json                        # the build without the change
    python bench_grid_sampler_backward.py --before before.json --json after.json    # the build with it

It needs nothing but PyTorch. Medians of --samples after two runs to warm up, with the spread; a buffer larger than the
caches is written before each sample. ``--rows all`` adds what the table of pull request 179756 leaves out; ``--rows
wide`` has grids of every kind, all layouts and 1 to 512 channels. (On the CPU it only shows that the script works.)
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path

import torch

from stackproof.gates.bench.speed import Measured, aten_backward, speed_markdown
from stackproof.gates.bench.timing import Clock, Timing
from stackproof.ops.grid_sampler.bench.rows import PR_GROUP, Row, all_rows, pr_rows, quick_rows, wide_rows

ROWS = {"pr": pr_rows, "all": all_rows, "wide": wide_rows, "quick": quick_rows}


def measure_rows(clock: Clock, rows: list[Row], before: Mapping[str, Timing], samples: int) -> list[Measured]:
    """Every row that this build has a kernel for, beside what ``before`` has of it by label."""
    measured = []
    for number, row in enumerate(rows, 1):
        times = {"before": before[row.label]} if row.label in before else {}
        try:
            times["after" if before else "this build"] = clock.measure(aten_backward(row, clock.device), samples)
        except NotImplementedError as error:
            print(f"not run: {row.label}: {str(error).partition('. ')[0]}", file=sys.stderr)
        measured.append(Measured(row, times))
        clock.free()
        print(f"{number}/{len(rows)} {row.label}", file=sys.stderr)
    return measured


def read_times(file: Path) -> dict[str, Timing]:
    """What an earlier run wrote.

    Raises:
        SystemExit: the file is not what this script writes.
    """
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        times = {label: Timing(*map(float, numbers)) for label, numbers in content["milliseconds"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SystemExit(f"{file}: not a file of --json ({type(error).__name__}: {error})") from None
    if not all(time.median > 0 for time in times.values()):
        raise SystemExit(f"{file}: not a file of --json (a time that is not above 0)")
    return times


def main(arguments: list[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    parser.add_argument("--device", choices=("mps", "cuda", "cpu"), default=default)
    parser.add_argument("--rows", choices=tuple(ROWS), default="pr")
    parser.add_argument("--samples", type=int, default=11, help="of each row")
    parser.add_argument("--before", type=Path, help="what --json wrote with the other build")
    parser.add_argument("--json", type=Path, help="where to write the times, for --before")
    given = parser.parse_args(arguments)
    if given.samples < 1:
        parser.error(f"--samples {given.samples}: expected at least 1")
    there = {"mps": torch.backends.mps.is_available(), "cuda": torch.cuda.is_available(), "cpu": True}
    if not there[given.device]:
        parser.error(f"--device {given.device}: this PyTorch has none (next: --device cpu)")
    if given.json and not given.json.absolute().parent.is_dir():
        parser.error(f"--json {given.json}: no such folder")
    before = read_times(given.before) if given.before else {}
    clock = Clock(given.device)
    copy = clock.copy_bandwidth()
    measured = measure_rows(clock, ROWS[given.rows](), before, given.samples)
    done = [one for one in measured if one.times]
    where = f"{clock.name()} (PyTorch {torch.__version__}, copy {copy:.2f} TB/s)"
    title = f"Measured on {where}, medians of {given.samples} in ms."
    after = "after" if before else "this build"
    print(speed_markdown(title, done, after, copy, [PR_GROUP] if given.rows == "all" else []), end="")
    if given.json:
        own = {one.row.label: one.times for one in done}
        times = {label: time for label, found in own.items() for name, time in found.items() if name != "before"}
        content = {"device": clock.name(), "torch": torch.__version__, "copy_tb_s": copy}
        numbers = {label: (time.median, time.low, time.high) for label, time in times.items()}
        given.json.write_text(json.dumps({**content, "milliseconds": numbers}, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
