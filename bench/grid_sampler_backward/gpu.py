"""Everything that is run on the machine with the NVIDIA GPU, within a time limit: right values first, then the tables.

    python gpu.py FOLDER --out FOLDER [--seconds 180]

FOLDER is what build.py made. In order: a sample of the correctness matrix; the rows of pull request 179756, 3D and the
other tables beside PyTorch's own CUDA kernels and the kernels of the change below; the crossovers that the thresholds
come from; and, if there is a compute-sanitizer, memcheck and racecheck on small shapes. What the time did not suffice
for is named. Writes results.json and results.md.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from matrix import Checked, check

from patchstack.errors import PatchstackError
from stackproof.engines.gpu import GpuLibrary, load_ptx
from stackproof.engines.metal.struct_layout import StructTable
from stackproof.gates.bench.speed import Measured, speed_markdown
from stackproof.gates.bench.timing import Clock, clock_for
from stackproof.ops.grid_sampler.bench.passes import Kernels, case_of, scheme_of
from stackproof.ops.grid_sampler.bench.rows import LAYOUTS, Row, all_rows
from stackproof.ops.grid_sampler.fast.division import FEW_CHANNELS, choose, divisions
from stackproof.ops.grid_sampler.fast.launches import Planner
from stackproof.ops.grid_sampler.fast.passes import pass_of

AFTER, BEFORE, OWN = "stack", "change below", "PyTorch CUDA"
TOOLS = ("memcheck", "racecheck")
# Set aside for the sanitizer, in seconds: most of it is starting up.
_SANITIZING = 70.0
_CROSSOVER_CHANNELS = (1, 2, 4, 8, 12, 16, 32, 48, 64)


@dataclass(frozen=True)
class Crossover:
    """One shape by every division of the work, in milliseconds."""

    row: str
    own: float
    chosen: str
    divisions: dict[str, float]


def open_kernels(folder: Path) -> dict[str, Kernels]:
    """Both sets of kernels.

    Raises:
        SystemExit: there are none, or no GPU to load them on.
    """
    names = [path.parent for path in sorted(folder.glob("*/build.json"))]
    if not names:
        raise SystemExit(f"{folder}: no compiled kernels there (python build.py {folder})")
    try:
        libraries = [GpuLibrary(load_ptx(path)) for path in names]
    except PatchstackError as error:
        raise SystemExit(str(error)) from None
    headers = [tuple(file.read_bytes() for file in sorted(path.glob("header*.h"))) for path in names]
    return {path.name: Kernels(*one) for path, *one in zip(names, libraries, headers, strict=True)}


def measured(clock: Clock, kernels: dict[str, Kernels], row: Row) -> Measured:
    """One row, by everybody."""
    times = {}
    for name, key in ((AFTER, "stack"), (BEFORE, "below")):
        scheme = scheme_of(kernels[key].library, row)
        assert scheme is not None
        times[name] = clock.measure(scheme.prepare(kernels[key], row, case_of(row, "cuda")))
    case = case_of(row, "cuda")
    times[OWN] = clock.measure(case.reference)
    return Measured(row, times)


def crossover_rows() -> Iterator[Row]:
    """Shapes whose number of channels grows, on random and smooth grids."""
    for channels in _CROSSOVER_CHANNELS:
        for interpolation, shape in (
            ("bilinear", (4, channels, 256, 256)),
            ("bicubic", (4, channels, 256, 256)),
            ("bilinear", (2, channels, 32, 64, 64)),
            ("nearest", (4, channels, 256, 256)),
        ):
            for grid in ("random", "affine"):
                for dtype in (torch.float32, torch.float16):
                    yield Row("crossover", shape, shape[2:], interpolation, dtype, LAYOUTS[0], grid)


def crossover(clock: Clock, kernels: dict[str, Kernels], row: Row) -> Crossover:
    """One shape by each division that there are kernels for, and by the change below."""
    case = case_of(row, "cuda")
    stack, below = kernels["stack"], kernels["below"]
    planner = Planner(StructTable(*stack.headers).layout)
    scheme = scheme_of(below.library, row)
    assert scheme is not None
    times = {BEFORE: clock.measure(scheme.prepare(below, row, case), 5).median}
    for division in divisions() if case.mode.interpolation in FEW_CHANNELS else ():
        if division.staged:
            plan = planner.plan(case.tensors, case.mode, division)
            times[division.label] = clock.measure(pass_of(stack.library, plan), 5).median
    own = clock.measure(case.reference, 5).median
    chosen = choose(case.tensors, case.mode)
    return Crossover(row.label, own, chosen.label if chosen else BEFORE, times)


def sanitized(folder: Path, tool: str, seconds: float) -> dict[str, Any]:
    """A small sample of the matrix under compute-sanitizer."""
    program = shutil.which("compute-sanitizer") or next(Path("/usr/local").glob("cuda*/bin/compute-sanitizer"), None)
    if program is None:
        return {"tool": tool, "verdict": "not run", "why": "no compute-sanitizer here"}
    command = [str(program), "--tool", tool, "--error-exitcode", "9"]
    command += [sys.executable, __file__, str(folder), "--check-only", "97"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=max(seconds, 1.0), check=False)
    except subprocess.TimeoutExpired:
        return {"tool": tool, "verdict": "not run", "why": f"not done within {seconds:.0f} s"}
    verdict = {0: "passed", 1: "wrong values", 9: "errors"}.get(done.returncode, f"exit {done.returncode}")
    return {"tool": tool, "verdict": verdict, "output": (done.stdout + done.stderr)[-1500:]}


class Report:
    """What is known so far; written after each part, so that a run that is stopped leaves what it has."""

    def __init__(self, out: Path, clock: Clock) -> None:
        self.out = out
        self.rows: list[Measured] = []
        self.copy = clock.copy_bandwidth()
        self.content: dict[str, Any] = {"device": clock.name(), "torch": torch.__version__, "copy_tb_s": self.copy}

    def write(self) -> None:
        """Both files."""
        self.out.mkdir(parents=True, exist_ok=True)
        records = [
            {"row": one.row.label, "group": one.row.group, **{name: asdict(time) for name, time in one.times.items()}}
            for one in self.rows
        ]
        (self.out / "results.json").write_text(json.dumps({**self.content, "rows": records}, indent=1, default=str))
        title = (
            f"Measured on {self.content['device']} (PyTorch {torch.__version__}, copy {self.copy:.2f} TB/s), a"
            " stand-in: no Apple GPU was measured. The same Metal source, compiled to PTX; medians of 11, milliseconds,"
            " second-level cache flushed; zero-filling, layout changes and rounding included."
        )
        (self.out / "results.md").write_text(speed_markdown(title, self.rows, AFTER, self.copy))


def _checked(found: Checked) -> dict[str, Any]:
    return {"comparisons": found.comparisons, "worst": found.worst, "findings": found.findings[:40]}


def run(folder: Path, out: Path, seconds: float) -> int:
    """All parts in turn; 1 if a value was wrong."""
    end = time.monotonic() + seconds
    kernels = open_kernels(folder)
    clock = clock_for("cuda")
    report = Report(out, clock)
    report.content["loading_s"] = seconds - (end - time.monotonic())
    found = check(kernels["stack"], kernels["below"], "cuda", every=7)
    report.content["matrix"] = _checked(found)
    print(f"{found.comparisons} comparisons, {len(found.findings)} outside, worst {found.worst}", flush=True)
    print("\n".join(found.findings[:10]), flush=True)
    order = ("PR 179756", "3D", "few channels")
    rows = sorted(all_rows(), key=lambda row: order.index(row.group) if row.group in order else len(order))
    waiting = [("row", row) for row in rows]
    waiting[96:96] = [("crossover", row) for row in crossover_rows()]
    crossovers, left = [], []
    for kind, row in waiting:
        if time.monotonic() > end - _SANITIZING:
            left.append(row.label)
            continue
        if kind == "row":
            report.rows.append(measured(clock, kernels, row))
        else:
            crossovers.append(asdict(crossover(clock, kernels, row)))
        clock.free()
    report.content |= {"crossovers": crossovers, "not_run": left}
    report.write()
    with ThreadPoolExecutor() as pool:
        left_s = end - time.monotonic()
        report.content["sanitizer"] = list(pool.map(lambda tool: sanitized(folder, tool, left_s), TOOLS))
    report.write()
    print([(one["tool"], one["verdict"], one.get("why", "")) for one in report.content["sanitizer"]])
    print((out / "results.md").read_text()[-11000:])
    return 1 if found.findings else 0


def check_only(folder: Path, every: int) -> int:
    """A sample of the matrix and nothing else; 1 if a value was wrong."""
    found = check(open_kernels(folder)["stack"], None, "cuda", every=every)
    print(f"{found.comparisons} comparisons, {len(found.findings)} outside")
    return 1 if found.findings else 0


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=Path())
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--check-only", type=int, default=0, help="each n-th case of the matrix, for a sanitizer")
    arguments = parser.parse_args()
    if arguments.check_only:
        return check_only(arguments.folder, arguments.check_only)
    return run(arguments.folder, arguments.out, arguments.seconds)


if __name__ == "__main__":
    sys.exit(main())
