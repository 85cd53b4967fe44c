"""The table of the fast backward: CUDA's own kernels, upstream's MPS kernels and the series', in one run.

    python wide.py build FOLDER [--ptxas FILE]    # any machine: the stack's kernels and those of the 2.13 wheel, to PTX
    python wide.py measure FOLDER --out FOLDER    # a GPU: right values, the table, groups of images, compute-sanitizer

Upstream's column is what its host functions launch, from the 2.13 wheel as Apple compiled it. Calls that the change
does not take run upstream's kernels on a tree that has them, so they have no third column.

Small rows are compared with float64. Where a sample lies on a pixel, float may take the pixel beside it, and grad_grid
jumps there: a row is wrong if its error is above what is allowed and above upstream's on the same row.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from gpu import TOOLS, open_kernels, sanitized
from matrix import check, difference

from stackproof.engines.metal.struct_layout import Field, StructLayout, StructTable
from stackproof.gates.bench.timing import Clock, Timing, clock_for
from stackproof.ops.grid_sampler.bench.passes import Kernels, case_of
from stackproof.ops.grid_sampler.bench.rows import LAYOUTS, PR_SHAPES, Row, necessary_bytes, wide_rows
from stackproof.ops.grid_sampler.families.parameters import parameter_values
from stackproof.ops.grid_sampler.families.upstream import SamplerKernel, backward_kernels
from stackproof.ops.grid_sampler.fast.division import choose
from stackproof.ops.grid_sampler.fast.launches import Launch, Plan, Planner
from stackproof.ops.grid_sampler.fast.passes import Case, Library, Step, bind
from stackproof.ops.grid_sampler.modes import Sampler

RELEASE = "2.13"
_GROUP = 256
_MIB = 1 << 20
# Of scratch memory, what a group of images may need; the first is one image at a time, the last the whole batch.
_BUDGETS = (1, 64 * _MIB, 128 * _MIB, 3 << 26, 256 * _MIB, 1 << 50)
_ALLOWED = {torch.float32: 2e-5, torch.float16: 1.5e-3, torch.bfloat16: 1e-2}
_ERRORS_UP_TO = 1 << 21
_SANITIZING = 75.0

Work = Callable[[], object]


@dataclass(frozen=True)
class Entry:
    """A row, with both gradients or with that of the grid alone."""

    row: Row
    grid_only: bool = False

    @property
    def label(self) -> str:
        """For tables."""
        return self.row.label + (", grad_grid alone" if self.grid_only else "")

    @property
    def group(self) -> str:
        """What it belongs to."""
        return "grad_grid alone" if self.grid_only else self.row.group


def entries() -> list[Entry]:
    """The whole table."""
    rows = wide_rows()
    alone = [row for row in rows if row.shape in PR_SHAPES[2:] and row.grid == "shear" and row.layout == LAYOUTS[0]]
    return [*map(Entry, rows), *(Entry(row, grid_only=True) for row in alone)]


def _upstream_kernels(row: Row) -> tuple[SamplerKernel, ...]:
    return backward_kernels(Sampler(row.dimensions), case_of(row, "meta").mode, row.dtype, wide=False)


def build(folder: Path, ptxas: str) -> None:
    """Fill the folder."""
    from build import build as build_stack

    from patchstack.cache import cache_dir
    from patchstack.reference.progress import on_standard_error
    from stackproof.engines.apple.build import AirSource
    from stackproof.engines.apple.ptx import compile_ptx_kernels
    from stackproof.engines.apple.release import release_library

    build_stack(folder, "2.11", ptxas)
    shutil.rmtree(folder / "below")  # takes a minute to load, and is not in the table
    release = release_library(RELEASE, progress=on_standard_error)
    names = list(dict.fromkeys(one.name for row in wide_rows() for one in _upstream_kernels(row)))
    sources = [AirSource.of(release, name) for name in names]
    made = compile_ptx_kernels(sources, cache_dir())
    target = folder / "upstream"
    target.mkdir(parents=True, exist_ok=True)
    for file in ("library.ptx", "build.json"):
        shutil.copyfile(made / file, target / file)
    layouts = {name: _plain(one.kernel().struct("params")) for name, one in zip(names, sources, strict=True)}
    (target / "layouts.json").write_text(json.dumps(layouts))
    if ptxas:
        command = [ptxas, "-arch=sm_90", "-O3", "library.ptx", "-o", "library.cubin"]
        subprocess.run(command, cwd=target, check=True)


def _plain(layout: StructLayout) -> Any:
    fields = [(one.path, one.offset, one.code, one.count) for one in layout.fields]
    return {"name": layout.name, "size": layout.size, "alignment": layout.alignment, "fields": fields}


def layouts_of(folder: Path) -> dict[str, StructLayout]:
    """What each of upstream's kernels takes, as Apple's compiler laid it out."""
    read = json.loads((folder / "upstream" / "layouts.json").read_text())
    return {
        name: StructLayout(one["name"], one["size"], one["alignment"], tuple(Field(*field) for field in one["fields"]))
        for name, one in read.items()
    }


@dataclass(frozen=True)
class Runs:
    """Work, and what it leaves."""

    steps: tuple[Step, ...]
    grad_input: torch.Tensor | None
    grad_grid: torch.Tensor

    def __call__(self) -> object:
        for step in self.steps:
            step()
        return None


def stack_work(library: Library, plan: Plan) -> Runs:
    """A plan, bound to kernels."""
    steps: list[Step] = []
    for step in plan.steps:
        if isinstance(step, Launch):
            grid = {"threads": step.threads, "group_size": step.group_size}
            steps.append(bind(library, step.kernel, *step.arguments, **grid))
        else:
            steps.append(step.tensor.zero_)
    return Runs(tuple(steps), plan.grad_input, plan.grad_grid)


def upstream_work(library: Library, layouts: dict[str, StructLayout], entry: Entry, case: Case) -> Runs:
    """What upstream's host functions launch; in 3D they take contiguous copies first."""
    is_3d, grid_only = entry.row.dimensions == 3, entry.grid_only
    steps: list[Step] = []
    tensors = {"grad_output": case.grad_output, "input": case.input, "grid": case.grid}
    for name, tensor in tensors.items():
        if is_3d and not tensor.is_contiguous():
            tensors[name] = copy = torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)
            steps.append(partial(copy.copy_, tensor))
    grad_input = torch.empty(case.input.shape, dtype=case.input.dtype, device=case.input.device)
    grad_grid = torch.zeros(case.grid.shape, dtype=case.grid.dtype, device=case.grid.device)
    buffers = {**tensors, "output": case.grad_output, "grad_input": grad_input, "grad_grid": grad_grid}
    if not grid_only:
        steps.append(grad_input.zero_)
    if entry.row.interpolation == "nearest":
        steps.append(grad_grid.zero_)
    for one in _upstream_kernels(entry.row):
        if grid_only and one.gradient == "input":
            continue
        layout = layouts[one.name]
        values = parameter_values(layout, case.mode, buffers)
        if grid_only and "compute_grad_input" in values:
            values = {**values, "compute_grad_input": False}

        def later(*arguments: Any, threads: Any = None, group_size: Any = None, name: str = one.name) -> None:
            grid = (threads,) if isinstance(threads, int) else tuple(threads)
            group = tuple(group_size) if group_size else (min(grid[0], _GROUP),)
            steps.append(bind(library, name, *arguments, threads=grid, group_size=group))

        one.launch(later, buffers, layout.pack(values))
    return Runs(tuple(steps), None if grid_only else grad_input, grad_grid)


def own_work(entry: Entry, case: Case) -> Work:
    """PyTorch's own operator of the device."""
    operator = getattr(torch.ops.aten, entry.row.op)
    arguments = (
        case.grad_output,
        case.input,
        case.grid,
        int(case.mode.interpolation),
        int(case.mode.padding),
        case.align_corners,
    )
    mask = [not entry.grid_only, True]
    return lambda: operator(*arguments, mask)


def errors(found: Runs, right: tuple[torch.Tensor, torch.Tensor]) -> float:
    """The largest, relative to the largest value."""
    largest = difference(found.grad_grid, right[1])
    return max(largest, difference(found.grad_input, right[0])) if found.grad_input is not None else largest


class Table:
    """Measures entries, and keeps what it found."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        opened = open_kernels(folder)
        self.stack: Kernels = opened["stack"]
        self.upstream = opened["upstream"].library
        self.layouts = layouts_of(folder)
        self.clock = clock
        self.rows: list[dict[str, Any]] = []
        self.wrong: list[str] = []

    def planner(self, **options: Any) -> Planner:
        """Of the stack's launches."""
        return Planner(StructTable(*self.stack.headers).layout, **options)

    def measure(self, entry: Entry) -> None:
        """One row, by everybody; small ones are compared with float64 first."""
        case = case_of(entry.row, "cuda")
        division = choose(case.tensors, case.mode, compute_grad_input=not entry.grid_only)
        work: dict[str, Work] = {"cuda": own_work(entry, case)}
        work["upstream"] = upstream_work(self.upstream, self.layouts, entry, case)
        scratch = 0
        if division:
            plan = self.planner().plan(case.tensors, case.mode, division, compute_grad_input=not entry.grid_only)
            work["stack"], scratch = stack_work(self.stack.library, plan), plan.scratch
        record: dict[str, Any] = {"row": entry.label, "group": entry.group, "shape": entry.row.shape}
        record |= {"dtype": entry.row.dtype_name, "layout": entry.row.layout, "grid": entry.row.grid}
        record |= {"interpolation": entry.row.interpolation, "scratch": scratch, "bytes": necessary_bytes(entry.row)}
        if case.input.numel() <= _ERRORS_UP_TO:
            right = case.reference(torch.float64)
            for name, one in work.items():
                if isinstance(one, Runs):
                    one()
                    record[f"{name} error"] = error = errors(one, right)
                    allowed = max(_ALLOWED[entry.row.dtype], 1.2 * record.get("upstream error", 0.0))
                    if name == "stack" and not error <= allowed:
                        self.wrong.append(f"{entry.label}: {error:.2g}")
        for name, one in work.items():
            record[name] = _timing(self.clock.measure(one, 9))
        self.rows.append(record)
        self.clock.free()

    def groups(self) -> list[dict[str, Any]]:
        """The large and the medium shape by what a group of images may need, and who zeroes the sums."""
        found = []
        for shape, dtype, layout, grid in _group_rows():
            row = Row("groups", shape, shape[2:], "bilinear", dtype, layout, grid)
            case = case_of(row, "cuda")
            division = choose(case.tensors, case.mode)
            assert division
            for budget in _BUDGETS:
                for apart in (True, False) if layout == LAYOUTS[0] else (True,):
                    plan = self.planner(scratch_bytes=budget, zeroes_apart=apart).plan(
                        case.tensors, case.mode, division
                    )
                    timing = self.clock.measure(stack_work(self.stack.library, plan), 9)
                    record = {"row": row.label, "budget": budget, "scratch": plan.scratch, "zeroes apart": apart}
                    found.append({**record, "steps": len(plan.steps), "ms": _timing(timing)})
            self.clock.free()
        return found


def _group_rows() -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for layout in (LAYOUTS[0], LAYOUTS[2]):
        rows += [(PR_SHAPES[3], torch.float32, layout, grid) for grid in ("uniform", "random", "affine")]
        rows += [(PR_SHAPES[3], torch.float16, layout, "uniform"), (PR_SHAPES[2], torch.float32, layout, "uniform")]
        rows += [
            ((64, 128, 128, 128), torch.float32, layout, "uniform"),
            (PR_SHAPES[1], torch.float32, layout, "affine"),
        ]
    return rows


def _timing(timing: Timing) -> list[float]:
    return [round(value, 5) for value in (timing.median, timing.low, timing.high)]


def measure(folder: Path, out: Path, seconds: float) -> int:
    """Everything; 1 if a value was wrong."""
    end = time.monotonic() + seconds
    clock = clock_for("cuda")
    table = Table(folder, clock)
    found = check(table.stack, None, "cuda", every=7)
    print(f"{found.comparisons} comparisons, {len(found.findings)} outside, worst {found.worst}", flush=True)
    print("\n".join(found.findings[:10]), flush=True)
    content: dict[str, Any] = {"device": clock.name(), "torch": torch.__version__, "copy_tb_s": clock.copy_bandwidth()}
    content["matrix"] = {"comparisons": found.comparisons, "worst": found.worst, "findings": found.findings[:40]}
    content["groups"] = table.groups()
    out.mkdir(parents=True, exist_ok=True)
    left = []
    for entry in entries():
        if time.monotonic() > end - _SANITIZING:
            left.append(entry.label)
        else:
            table.measure(entry)
    content |= {"rows": table.rows, "wrong": table.wrong, "not_run": left}
    (out / "wide.json").write_text(json.dumps(content, indent=1))
    with ThreadPoolExecutor() as pool:
        left_s = end - time.monotonic()
        content["sanitizer"] = list(pool.map(lambda tool: sanitized(folder, tool, left_s), TOOLS))
    (out / "wide.json").write_text(json.dumps(content, indent=1))
    print(table.wrong, len(table.rows), "rows,", len(left), "not run")
    print(
        [
            (one["tool"], one["verdict"], one.get("why", ""), one.get("output", "")[-200:])
            for one in content["sanitizer"]
        ]
    )
    return 1 if found.findings or table.wrong else 0


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    building = commands.add_parser("build")
    building.add_argument("folder", type=Path)
    building.add_argument("--ptxas", default="")
    measuring = commands.add_parser("measure")
    measuring.add_argument("folder", type=Path)
    measuring.add_argument("--out", type=Path, required=True)
    measuring.add_argument("--seconds", type=float, default=330.0)
    arguments = parser.parse_args()
    if arguments.command == "build":
        build(arguments.folder, arguments.ptxas)
        return 0
    return measure(arguments.folder, arguments.out, arguments.seconds)


if __name__ == "__main__":
    sys.exit(main())
