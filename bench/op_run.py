"""Prints what op-run says of every host file of a tree that builds no graphs: ops, cases, dtypes, worst error, verdict.

    python bench/op_run.py [--reference 2.6] [--kind KIND]... [FILE]...

A file is taken as if a stack brought it: the tree without it is the base.
So the faults of the tree itself are failures here, where they are notes on a stack that does not touch their code.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from patchstack.cache import cache_dir
from patchstack.reference import build_reference
from patchstack.tree.git import GitCommitHash, Repository, Tree
from stackproof.engines.standin.stack import OPERATIONS, HostFile
from stackproof.gates.op_run.proof import WATCHED
from stackproof.gates.op_run.spec import SPEC as OP_RUN
from stackproof.model import GateContext, GateResult

_COLUMNS = ("file", "ops", "cases", "under the detectors", "dtypes", "worst error", "what fails", "verdict", "s")
# Of ops that no OpInfo reaches.
_SAMPLES = Path(__file__).parent / "op_run_samples"
_IDENTITY = ("-c", "user.name=bench", "-c", "user.email=bench@example.org")


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="names of host files without folder and ending; all by default")
    parser.add_argument("--reference", default="2.6")
    parser.add_argument("--kind", action="append", help="kinds of scenarios; all by default")
    given = parser.parse_args()
    print(f"| {' | '.join(_COLUMNS)} |\n|{'---|' * len(_COLUMNS)}")
    with tempfile.TemporaryDirectory(prefix="stackproof-bench-") as folder:
        tree = build_reference(given.reference).path
        subprocess.run(["git", "clone", "-q", "--shared", "--no-checkout", str(tree), folder], check=True)
        with Repository.open(Path(folder)) as repository:
            for path in _files(repository, given.files):
                print(_row(path, _judged(repository, path, given.kind)), flush=True)


def _files(repository: Repository, names: Sequence[str]) -> Iterator[str]:
    tree = Tree.at(repository, "HEAD")
    for path in sorted(tree.walk(OPERATIONS)):
        text = (tree.read(path) or b"").decode(errors="replace")
        wanted = PurePosixPath(path).stem in names if names else not HostFile(path, text).builds_graphs
        if path.endswith(".mm") and wanted:
            yield path


def _judged(repository: Repository, path: str, kinds: Sequence[str] | None) -> GateResult:
    """What op-run says of a commit without parents that has the whole tree, seen from one without the file."""
    head = repository.resolve_commit("HEAD")
    assert head is not None
    base = _without(repository, [path, *_companions(repository, path)])
    context = GateContext(repository, base, head, cache_dir())
    return OP_RUN.judge(context, OP_RUN.options(series=str(_SAMPLES), kinds=tuple(kinds or ())))


def _companions(repository: Repository, path: str) -> Iterator[str]:
    """The host files behind the headers of ``operations`` that a host file includes: an op in several files."""
    tree = Tree.at(repository, "HEAD")
    text = (tree.read(path) or b"").decode(errors="replace")
    for name in dict.fromkeys(re.findall(r"#include <ATen/native/mps/operations/(\w+)\.h>", text)):
        other = f"{OPERATIONS}/{name}.mm"
        if other != path and tree.exists(other):
            yield other


def _without(repository: Repository, paths: Sequence[str]) -> GitCommitHash:
    folder = str(repository.root)

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", "-C", folder, *_IDENTITY, *arguments], check=True, capture_output=True, text=True)
        return done.stdout.strip()

    git("read-tree", "HEAD")
    git("rm", "-q", "--cached", *paths)
    return GitCommitHash(git("commit-tree", git("write-tree"), "-m", "without the file"))


def _row(path: str, result: GateResult) -> str:
    rows = [row for row in result.details.get("scenarios", ()) if row["cases"]]
    dtypes = dict.fromkeys(str(row["dtype"]) for row in rows if row["dtype"])
    rules = dict.fromkeys(finding.rule for finding in result.findings if finding.fails)
    worst = "" if result.worst_error is None else f"{result.worst_error:.3g}"
    watched = sum(row["cases"] for row in rows if row["kind"] == WATCHED)
    cells = [
        PurePosixPath(path).stem,
        ", ".join(dict.fromkeys(row["op"] for row in rows)),
        f"{result.cases:,} ({result.failed:,} failed)",
        f"{watched:,}",
        ", ".join(dtypes),
        worst,
        ", ".join(rules),
        result.verdict.value + (f": {result.reason}" if result.reason else ""),
        f"{result.seconds:.0f}",
    ]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
