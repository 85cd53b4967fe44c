"""Time planning and applying a series beside ``git am`` of the same commits, in pairs, on one tree.

    python bench/apply.py --repo CLONE --onto main --series NAME [--pairs 5] [--json FILE]

Both start from the same state in a throw-away clone of ``CLONE`` and produce the same trees. Reported per command:
median, minimum and maximum of wall time (interpreter start included) and of peak memory of the largest process; for
apply-stack also the parts it reports itself (planning, torchgen, writing).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

IDENTITY = {
    "GIT_AUTHOR_NAME": "Bench",
    "GIT_AUTHOR_EMAIL": "bench@example.com",
    "GIT_COMMITTER_NAME": "Bench",
    "GIT_COMMITTER_EMAIL": "bench@example.com",
}


@dataclass
class Figures:
    """Samples of one command.

    Attributes:
        wall_s: seconds from start to exit.
        cpu_s: processor seconds of all its processes, which other work on the machine changes less.
        peak_mib: peak resident memory of the largest process, MiB.
        parts_s: what the command reported of itself, seconds by name.
    """

    wall_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    peak_mib: list[float] = field(default_factory=list)
    parts_s: dict[str, list[float]] = field(default_factory=dict)


def run(
    command: Sequence[str], cwd: Path, figures: Figures | None = None, *, status_expected: int = 0, **env: str
) -> str:
    """Run a command in a child of its own, so that its peak memory can be told from other children's."""
    read, write = os.pipe()
    started = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        done = subprocess.run(command, cwd=cwd, env=os.environ | IDENTITY | env, capture_output=True, text=True)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        measured = [used.ru_maxrss / 1024, used.ru_utime + used.ru_stime]
        with os.fdopen(write, "w") as out:
            json.dump([done.returncode, done.stdout, done.stderr, measured], out)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        status, stdout, stderr, (peak, cpu) = json.load(answer)
    os.waitpid(pid, 0)
    if status != status_expected:
        raise SystemExit(f"{' '.join(command)} ended with status {status}: {stderr or stdout}")
    if figures is not None:
        figures.wall_s.append(time.perf_counter() - started)
        figures.cpu_s.append(cpu)
        figures.peak_mib.append(peak)
    return str(stdout)


def measure(options: argparse.Namespace, scratch: Path) -> dict[str, Figures]:
    """The samples of both commands; one pair before them is not counted."""
    clone = scratch / "clone"
    run(["git", "clone", "--quiet", "--local", "--branch", options.onto, str(options.repo), str(clone)], scratch)
    apply = [
        sys.executable,
        "-m",
        "patchstack.cli",
        "--onto",
        options.onto,
        "--repo",
        str(clone),
        "--series",
        options.series,
    ]
    run([*apply, "--branch", "bench", "--format-patch", str(scratch / "patches")], clone)
    patches = sorted(map(str, (scratch / "patches").glob("*.patch")))
    results = {"apply-stack": Figures(), "apply-stack, nothing cached": Figures(), "git am": Figures()}
    for pair in range(options.pairs + 1):
        for name, figures in results.items():
            run(["git", "checkout", "--quiet", "--force", options.onto], clone)
            run(["git", "branch", "--quiet", "-D", "bench"], clone) if pair or name != "apply-stack" else None
            kept = figures if pair else None
            if name == "git am":
                run(["git", "switch", "--quiet", "-c", "bench"], clone)
                run(["git", "am", "--quiet", "--keep-non-patch", *patches], clone, kept)
                continue
            cache = str(scratch / "cache") if name == "apply-stack" else tempfile.mkdtemp(dir=scratch)
            report = json.loads(run([*apply, "--branch", "bench", "--json"], clone, kept, PATCHSTACK_CACHE=cache))
            for part, seconds in report["seconds"].items() if kept else ():
                figures.parts_s.setdefault(part, []).append(seconds)
    return results


def table(results: dict[str, Figures]) -> str:
    """The samples as Markdown: median (minimum to maximum)."""

    def spread(values: Sequence[float], unit: str) -> str:
        return f"{statistics.median(values):.2f} {unit} ({min(values):.2f} to {max(values):.2f})"

    rows = ["| command | wall | peak memory | parts, median s |", "|---|---|---|---|"]
    for name, figures in results.items():
        parts = ", ".join(f"{part} {statistics.median(values):.3f}" for part, values in figures.parts_s.items())
        rows.append(f"| {name} | {spread(figures.wall_s, 's')} | {spread(figures.peak_mib, 'MiB')} | {parts} |")
    return "\n".join(rows)


def main() -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repo", type=Path, required=True, help="repository with the tree; it is cloned, not touched")
    parser.add_argument("--onto", default="main", help="branch to build on")
    parser.add_argument("--series", required=True, help="series name or folder")
    parser.add_argument("--pairs", type=int, default=5, help="counted pairs")
    parser.add_argument("--json", type=Path, help="also write all samples here")
    options = parser.parse_args()
    options.repo = options.repo.resolve()
    options.series = str(Path(options.series).resolve()) if Path(options.series).is_dir() else options.series
    with tempfile.TemporaryDirectory(prefix="patchstack-bench-") as scratch:
        results = measure(options, Path(scratch))
    print(table(results))
    if options.json:
        options.json.write_text(json.dumps({name: asdict(figures) for name, figures in results.items()}, indent=2))


if __name__ == "__main__":
    main()
