"""Time ``apply-stack drift`` on a synthetic upstream: many commits, few of which touch the series' files.

    PYTHONPATH=tests/support python bench/drift.py [--reference 2.11] [--commits 2000] [--touching 40] [--runs 5]
        [--json FILE]

The history is written on top of a reference tree, in a throw-away clone, with the series of the distribution. Each
touching commit appends a comment to one of the series' files, so that each makes another tree; one of them, another
in each run, also renames the function that a fragment stands after. Reported, with nothing cached and again with what
the first run left: wall time (interpreter start included), processor time, peak memory of the largest process, trees
planned on, and whether the planted commit was the one that was named.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from apply import Figures, run

from patchstack.reference import build_reference
from patchstack.tree.git import Repository, Tree
from upstream_history import synthetic_upstream, write_history

HOST = "aten/src/ATen/native/mps/operations/GridSampler.mm"
METAL = "aten/src/ATen/native/mps/kernels/GridSampler.metal"
TESTS = "test/test_mps.py"
LISTS = "torch/testing/_internal/common_mps.py"
INFOS = "torch/testing/_internal/common_methods_invocations.py"
BREAK = {HOST: (b"Tensor grid_sampler_2d_mps(", b"Tensor grid_sampler_2d_metal(")}


@dataclass(frozen=True)
class Sample:
    """One search.

    Attributes:
        planted: number of the touching commit that breaks the series, from 0.
        cached: whether an earlier run had planned on these trees.
        wall_s: seconds from start to exit.
        cpu_s: processor seconds of all its processes.
        peak_mib: peak resident memory of the largest process, MiB.
        visited: trees planned on.
        found: whether the planted commit, and no other, was named.
    """

    planted: int
    cached: bool
    wall_s: float
    cpu_s: float
    peak_mib: float
    visited: int
    found: bool


def search(clone: Path, planted: int, title: str, base: str, cache: Path, *, cached: bool) -> Sample:
    """Run the command once and judge its answer."""
    command = [sys.executable, "-m", "patchstack.cli", "drift", "--json", "--series", "grid_sampler"]
    figures = Figures()
    command += ["--repo", str(clone), "--since", base, "--onto", "main"]
    report = json.loads(run(command, clone, figures, status_expected=3, PATCHSTACK_CACHE=str(cache)))
    named = {turn["commit"]["title"] for c in report["changes"] for turn in c["turns"] if turn["needs_person"]}
    (wall,), (cpu,), (peak,) = figures.wall_s, figures.cpu_s, figures.peak_mib
    return Sample(planted, cached, wall, cpu, peak, report["visited"], named == {title})


def measure(options: argparse.Namespace, scratch: Path) -> list[Sample]:
    """Two samples for each planted commit: nothing cached, and cached."""
    reference = build_reference(options.reference)
    with Repository.open(reference.path) as repository:
        tree = Tree.at(repository, "main")
        files = {path: tree.read(path) or b"" for path in (METAL, HOST, TESTS, LISTS, INFOS)}
    samples = []
    for number in range(options.runs):
        planted = number * (options.touching - 1) // max(options.runs - 1, 1)
        clone = scratch / f"clone{number}.git"
        subprocess.run(["git", "clone", "-q", "--shared", "--bare", str(reference.path), str(clone)], check=True)
        base = run(["git", "rev-parse", "main"], clone).strip()
        steps = synthetic_upstream(files, commits=options.commits, touching=options.touching, plants={planted: BREAK})
        write_history(clone, steps, start=base)
        title = next(step.title for step in steps if step.title.startswith(f"Touch {planted} "))
        cache = scratch / f"cache{number}"
        samples += [search(clone, planted, title, base, cache, cached=cached) for cached in (False, True)]
    return samples


def spread(values: Sequence[float]) -> str:
    """Median (minimum to maximum)."""
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def table(samples: list[Sample]) -> str:
    """The samples as Markdown."""
    rows = ["| | wall, s | CPU, s | peak, MiB | trees planned on | planted commit named |", "|---|---|---|---|---|---|"]
    for cached, name in ((False, "nothing cached"), (True, "cached")):
        of = [sample for sample in samples if sample.cached is cached]
        visited = [sample.visited for sample in of]
        rows.append(
            f"| {name} | {spread([s.wall_s for s in of])} | {spread([s.cpu_s for s in of])} "
            f"| {max(s.peak_mib for s in of):.0f} | {min(visited)} to {max(visited)} "
            f"| {sum(s.found for s in of)} of {len(of)} |"
        )
    return "\n".join(rows)


def main() -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reference", default="2.11", help="tree the history is written on")
    parser.add_argument("--commits", type=int, default=2000, help="length of the history")
    parser.add_argument("--touching", type=int, default=40, help="commits that touch the series' files")
    parser.add_argument("--runs", type=int, default=5, help="histories, each broken at another commit")
    parser.add_argument("--json", type=Path, help="also write all samples here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="patchstack-bench-") as scratch:
        samples = measure(options, Path(scratch))
    print(f"{options.commits} commits, {options.touching} touching, {platform.platform()}")
    print(table(samples))
    if options.json:
        options.json.write_text(json.dumps([asdict(sample) for sample in samples], indent=2))


if __name__ == "__main__":
    main()
