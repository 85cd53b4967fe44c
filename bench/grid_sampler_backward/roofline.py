"""What bounds the kernels of the fast backward: Nsight Compute's counters of every launch of some rows.

    python roofline.py FOLDER --out FOLDER    # an NVIDIA GPU, with ncu; FOLDER is what `wide.py build` made

Writes roofline.json and roofline.md. Where there is no ncu, or it cannot read the counters, it says so and ends with 1.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from gpu import open_kernels

from stackproof.engines.metal.struct_layout import StructTable
from stackproof.ops.grid_sampler.bench.passes import case_of
from stackproof.ops.grid_sampler.bench.rows import LAYOUTS, PR_SHAPES, SHAPES_3D, Row, necessary_bytes
from stackproof.ops.grid_sampler.fast.division import choose
from stackproof.ops.grid_sampler.fast.launches import Launch, Planner
from stackproof.ops.grid_sampler.fast.passes import bind

METRICS = {
    "gpu__time_duration.sum": "ns",
    "dram__bytes.sum": "dram",
    "lts__t_sectors_op_red.sum": "reductions",
    "smsp__inst_executed.sum": "instructions",
    "smsp__issue_active.avg.pct_of_peak_sustained_active": "issue",
    "launch__registers_per_thread": "registers",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "resident",
}


def rows() -> list[Row]:
    """Large shapes, and those on which the change is behind."""
    narrow, large, contiguous, both = PR_SHAPES[1], PR_SHAPES[3], LAYOUTS[0], LAYOUTS[2]
    chosen: list[tuple[Any, ...]] = [
        (large, "bilinear", torch.float32, contiguous, "uniform"),
        (large, "bilinear", torch.float32, contiguous, "shear"),
        (large, "bilinear", torch.float32, contiguous, "zoom out"),
        (large, "bilinear", torch.float32, both, "uniform"),
        (large, "bilinear", torch.float32, both, "affine"),
        (large, "bilinear", torch.float16, both, "uniform"),
        (large, "bicubic", torch.float32, contiguous, "uniform"),
        (large, "bicubic", torch.float32, both, "shear"),
        ((4, 33, 128, 128), "bilinear", torch.float32, contiguous, "shear"),
        (narrow, "bilinear", torch.float32, contiguous, "shear"),
        (SHAPES_3D[3], "bilinear", torch.float32, contiguous, "shear"),
    ]
    return [Row("roofline", shape, shape[2:], *rest) for shape, *rest in chosen]


def launch_all(folder: Path) -> None:
    """Launch every kernel of every row once; what a row launches goes to standard output as one line of JSON."""
    stack = open_kernels(folder)["stack"]
    planner = Planner(StructTable(*stack.headers).layout)
    for row in rows():
        case = case_of(row, "cuda")
        division = choose(case.tensors, case.mode)
        assert division
        plan = planner.plan(case.tensors, case.mode, division)
        names = []
        for step in plan.steps:
            if isinstance(step, Launch):
                bind(stack.library, step.kernel, *step.arguments, threads=step.threads, group_size=step.group_size)()
                names.append(step.kernel)
            else:
                step.tensor.zero_()
        torch.cuda.synchronize()
        print(json.dumps({"row": row.label, "bytes": necessary_bytes(row), "kernels": names}), flush=True)


def profiled(folder: Path) -> list[dict[str, Any]]:
    """Rows with the counters of each kernel, launches of one kernel added up.

    Raises:
        SystemExit: no ncu, or no counters.
    """
    ncu = shutil.which("ncu")
    if ncu is None:
        raise SystemExit("not run: no ncu on the PATH")
    command = [ncu, "--clock-control", "none", "--csv", "--print-units", "base", "-k", "regex:__metal_entry"]
    command += ["--metrics", ",".join(METRICS), sys.executable, __file__, str(folder), "--launch"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    start = next((number for number, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        raise SystemExit(f"not run: ncu gave no counters: {(done.stdout + done.stderr)[-800:]}")
    launches: dict[int, dict[str, float]] = {}
    for line in csv.DictReader(io.StringIO("\n".join(line for line in lines[start:] if line.startswith('"')))):
        counters = launches.setdefault(int(line["ID"]), {})
        counters[METRICS[line["Metric Name"]]] = float(line["Metric Value"].replace(",", ""))
    each = iter(launches[number] for number in sorted(launches))
    said = [json.loads(line) for line in lines if line.startswith('{"row"')]
    return [{**row, "kernels": _summed(row["kernels"], each)} for row in said]


def _summed(names: list[str], each: Iterator[dict[str, float]]) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for name in names:
        counters, total = next(each), found.setdefault(name, {})
        for key, value in counters.items():
            summed = key in ("ns", "dram", "reductions", "instructions")
            total[key] = total.get(key, 0.0) + value if summed else value
    return found


def markdown(found: list[dict[str, Any]], device: str) -> str:
    """The table."""
    head = "DRAM, GB (TB/s) | reductions, million | instructions of simdgroups, million | issue slots busy"
    text = [
        f"# What bounds the kernels\n\n{device}, Nsight Compute, one launch each, launches of one kernel added up.",
        "Reductions are 32-byte sectors in the second-level cache. No Apple GPU was measured.\n",
        f"| row, kernel | ms | {head} | registers | simdgroups resident |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in found:
        text.append(f"| **{row['row']}** (needs {row['bytes'] / 1e9:.3g} GB) | | | | | | | |")
        for name, one in row["kernels"].items():
            speed = one["dram"] / one["ns"] / 1e3
            text.append(
                f"| {name} | {one['ns'] / 1e6:.3g} | {one['dram'] / 1e9:.3g} ({speed:.2g}) | "
                f"{one['reductions'] / 1e6:.3g} | {one['instructions'] / 1e6:.3g} | {one['issue']:.0f}% | "
                f"{one['registers']:.0f} | {one['resident']:.0f}% |"
            )
    return "\n".join(text) + "\n"


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--launch", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.launch:
        launch_all(given.folder)
        return 0
    found = profiled(given.folder)
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "roofline.json").write_text(json.dumps(found, indent=1))
    (given.out / "roofline.md").write_text(text := markdown(found, torch.cuda.get_device_name()))
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
