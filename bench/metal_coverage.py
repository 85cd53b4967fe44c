"""``python -m bench.metal_coverage TREE``: how much of a tree's Metal code this host checks and runs.

Prints a Markdown table: each ``.metal`` file of PyTorch 2.6 with its kernels, the operators they were compared with and
the largest difference; with ``--headers``, each ``c10/metal`` header in a probe kernel.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from bench.metal_coverage_runs import RUNS, Compared

from patchstack.cache import cache_dir
from patchstack.errors import PatchstackError
from stackproof.engines.metal.build import Source
from stackproof.engines.metal.library import compile_library
from stackproof.engines.metal.model import ALL_DETECTORS
from stackproof.engines.metal.typecheck import check_source

KERNELS = "aten/src/ATen/native/mps/kernels"
_COLUMNS = ("file", "kernels", "type-checked", "run beside", "largest difference (epsilons)", "reports")
_SEED = 20260401
_PROBE = """#include <metal_stdlib>
#include <c10/metal/{name}>
using namespace metal;
using namespace c10::metal;
kernel void probe(device float* out, uint i [[thread_position_in_grid]]) {{
  out[i] = float(i);
}}
"""


@dataclass(frozen=True)
class FileCoverage:
    """What was done with one ``.metal`` file.

    Attributes:
        name: without folder and suffix.
        kernels: how many can be launched.
        errors: first compiler error, empty when it type-checks.
        compared: kernels that ran beside an operator.
        reports: what the detectors said about the same runs, places included.
        problem: why nothing ran, empty otherwise.
    """

    name: str
    kernels: int
    errors: str
    compared: tuple[Compared, ...]
    reports: tuple[str, ...] = ()
    problem: str = ""

    @property
    def row(self) -> str:
        """A row of the table."""
        checked = self.errors or "yes"
        ops = ", ".join(dict.fromkeys(one.op for one in self.compared)) or self.problem or "not run"
        worst = f"{max(one.difference for one in self.compared):.2g}" if self.compared else ""
        found = str(len(self.reports)) if self.compared else ""
        return f"| {self.name} | {self.kernels} | {checked} | {len(self.compared)}: {ops} | {worst} | {found} |"


def cover_file(
    path: Path, include_dirs: Sequence[Path], cache: Path, *, version: str = "3.1", watch: bool = True
) -> FileCoverage:
    """Type-check one file, and run it where :data:`RUNS` knows how; a second time with all detectors if ``watch``."""
    try:
        checked = check_source(Source(path, tuple(include_dirs), version))
    except PatchstackError as error:
        return FileCoverage(path.stem, 0, str(error), ())
    if checked.errors:
        return FileCoverage(path.stem, len(checked.kernels), str(checked.errors[0]), ())
    run = RUNS.get(path.stem)
    if run is None:
        return FileCoverage(path.stem, len(checked.kernels), "", ())
    plain = compile_library(path, include_dirs, cache=cache, metal_version=version)
    torch.manual_seed(_SEED)
    compared = tuple(run(plain))
    if not watch:
        return FileCoverage(path.stem, len(checked.kernels), "", compared)
    watched = compile_library(path, include_dirs, cache=cache, mode=ALL_DETECTORS, metal_version=version)
    torch.manual_seed(_SEED)
    for _one in run(watched):
        pass
    return FileCoverage(path.stem, len(checked.kernels), "", compared, tuple(map(str, watched.reports())))


def cover_headers(include: Path, *, versions: Sequence[str] = ("3.1", "4.0")) -> Iterator[tuple[str, str, str]]:
    """Each ``c10/metal`` header in a probe kernel: name, version, first error or an empty string."""
    with tempfile.TemporaryDirectory() as scratch:
        for header in sorted((include / "c10" / "metal").glob("*.h")):
            probe = Path(scratch) / f"{header.stem}.metal"
            probe.write_text(_PROBE.format(name=header.name))
            for version in versions:
                checked = check_source(Source(probe, (include,), version))
                yield header.name, version, str(checked.errors[0]) if checked.errors else ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables; the exit status says whether everything type-checks."""
    parser = argparse.ArgumentParser(prog="python -m bench.metal_coverage", description=__doc__)
    parser.add_argument("tree", type=Path, help="a PyTorch source tree")
    parser.add_argument("--headers", type=Path, action="append", default=[], help="an include folder with c10/metal")
    parser.add_argument("--metal-version", default="3.1")
    options = parser.parse_args(arguments)
    cache = cache_dir()
    include_dirs = [options.tree / "aten" / "src", options.tree]
    failed = False
    print(f"| {' | '.join(_COLUMNS)} |\n|{'---|' * len(_COLUMNS)}")
    for path in sorted((options.tree / KERNELS).glob("*.metal")):
        covered = cover_file(path, include_dirs, cache, version=options.metal_version)
        failed = failed or bool(covered.errors)
        print(covered.row, flush=True)
        for report in covered.reports:
            print(f"  {report}", file=sys.stderr)
    for include in options.headers:
        print("\n| header | Metal | compiles |\n|---|---|---|")
        for name, version, error in cover_headers(include):
            failed = failed or bool(error)
            print(f"| {name} | {version} | {error or 'yes'} |", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
