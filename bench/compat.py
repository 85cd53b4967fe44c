"""How long the gates fc-window and c-shim take on whole trees, and how much memory: one child process per run.

    python bench/compat.py [--runs 3] [--range 2.6]

The ranges are a stack of one commit on each reference tree, and one release to the next. Prints one table; asserts
nothing.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from patchstack.reference import build_reference
from patchstack.tree.c_shim import header_path
from patchstack.tree.git import GitCommitHash, Repository, Tree
from patchstack.tree.torchgen_run import generate_c_shims
from stackproof.gates.c_shim.spec import SPEC as C_SHIM
from stackproof.gates.common.functions import FUNCTIONS_PATH
from stackproof.gates.fc_window.spec import SPEC as FC_WINDOW
from stackproof.model import GateContext

GATES = {spec.name: spec for spec in (FC_WINDOW, C_SHIM)}
RELEASES = ("2.6", "2.11", "2.13")


@dataclass(frozen=True)
class Range:
    """One commit range to judge.

    Attributes:
        name: for the table.
        base: commit id.
        head: commit id.
    """

    name: str
    base: str
    head: str


def main() -> None:
    """Measure every gate on every range."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="runs per row; the median is printed")
    parser.add_argument("--range", default="", help="only ranges whose name has this text")
    parser.add_argument("--child", nargs=4, metavar=("GATE", "REPO", "BASE", "HEAD"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        _child(*arguments.child)
        return
    lab, ranges = _ranges()
    ranges = [one for one in ranges if arguments.range in one.name]
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print(f"{'gate':<10} {'range':<24} {'seconds':>8} {'CPU s':>8} {'MiB':>6}  verdict")
    for gate in GATES:
        for one in ranges:
            rows = [_measure(gate, lab, one) for _ in range(arguments.runs)]
            seconds = statistics.median(row[0] for row in rows)
            cpu = statistics.median(row[1] for row in rows)
            peak = max(row[2] for row in rows)
            print(f"{gate:<10} {one.name:<24} {seconds:8.1f} {cpu:8.1f} {peak:6.0f}  {rows[0][3]}", flush=True)
    shutil.rmtree(lab)


def _measure(gate: str, lab: Path, one: Range) -> tuple[float, float, float, str]:
    """Wall and processor seconds with a cold cache, the largest resident set of any process in MiB, the verdict."""
    command = [sys.executable, __file__, "--child", gate, str(lab), one.base, one.head]
    with tempfile.TemporaryDirectory() as cache:
        started = time.perf_counter()
        done = subprocess.run(command, capture_output=True, check=True, env={**os.environ, "PATCHSTACK_CACHE": cache})
        seconds = time.perf_counter() - started
    answer = json.loads(done.stdout)
    return seconds, answer["cpu"], answer["mebibytes"], answer["verdict"]


def _child(gate: str, repo: str, base: str, head: str) -> None:
    with tempfile.TemporaryDirectory() as cache:
        context = GateContext(Repository.open(Path(repo)), GitCommitHash(base), GitCommitHash(head), Path(cache))
        spec = GATES[gate]
        result = spec.judge(context, spec.options())
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    mebibytes = max(one.ru_maxrss for one in usage) / unit
    cpu = sum(one.ru_utime + one.ru_stime for one in usage)
    print(json.dumps({"verdict": result.verdict.value, "mebibytes": mebibytes, "cpu": cpu}))


def _ranges() -> tuple[Path, list[Range]]:
    """A scratch repository over the reference trees' objects, with the commits to judge."""
    lab = Path(tempfile.mkdtemp(prefix="bench-compat-"))
    subprocess.run(["git", "init", "-q", "--bare", str(lab)], check=True)
    trees = {name: build_reference(name) for name in RELEASES}
    stores = [Repository.open(tree.path).common_dir / "objects" for tree in trees.values()]
    (lab / "objects" / "info" / "alternates").write_text("".join(f"{store}\n" for store in stores))
    repository = Repository.open(lab)
    ranges: list[Range] = []
    for name, tree in trees.items():
        text = Tree.at(repository, tree.commit).read(FUNCTIONS_PATH) or b""
        line = b"    CUDA: grid_sampler_2d_backward_cuda\n"
        files = {FUNCTIONS_PATH: text.replace(line, line + b"    MPS: grid_sampler_2d_backward_mps\n", 1)}
        if b"grid_sampler_2d_backward_mps" not in text:
            before = Tree.at(repository, tree.commit)
            if before.exists(header_path("mps")):
                files |= generate_c_shims(before.with_files(files), ["mps"])
            head = _commit(repository, tree.commit, files)
            ranges.append(Range(f"one dispatch line on {name}", tree.commit, head))
    for old, new in itertools.pairwise(RELEASES):
        ranges.append(Range(f"{old} to {new}", trees[old].release_commit, trees[new].release_commit))
    repository.close()
    return lab, ranges


def _commit(repository: Repository, parent: str, files: Mapping[str, bytes]) -> str:
    """A commit on top of ``parent`` with other content of these files."""
    who = "Bench <bench@example.com> 1900000000 +0000"
    changes = [f"commit refs/heads/stack\nmark :1\ncommitter {who}\ndata 5\nstack\nfrom {parent}\n".encode()]
    for path, content in files.items():
        changes.append(f"M 100644 inline {path}\ndata {len(content)}\n".encode() + content + b"\n")
    stdin = b"".join([*changes, b"get-mark :1\n"])
    return repository.git("fast-import", "--quiet", "--force", stdin=stdin).decode().strip()


if __name__ == "__main__":
    main()
