"""Edit upstream's trees as upstream does, put the series on each, compile what comes of it; print the table.

    python bench/perturbations.py TREES [NAME ...] [--series NAME] [--out FOLDER] [--no-compile]

``TREES`` is a folder with a script ``make-tree NAME DEST`` and a folder for each tree: upstream's own files of a
moment, which this repository does not hold. The edits are those of ``tests/support/perturbations``, each on each tree.
The top commit of each stack goes through ``metal-check`` and ``host-check`` against the tree without the edit.
Where there is no stack, or it fails, the edited tree goes through them too: an edit that breaks the tree by itself
shows nothing. What a content came to is kept in ``--out`` and not compiled again. A tree that refuses the series
unedited is left out.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from patchstack.cache import cache_dir
from patchstack.tree.git import GitCommitHash, Repository, Tree
from perturbations import KINDS, Kind, judge, perturbed
from perturbations.kinds import Edited
from perturbations.verdict import files_of
from stackproof.engines.metal.rules import CONSTANT_DATA
from stackproof.gates.spec import Spec
from stackproof.gates.table import GATES
from stackproof.model import GateContext, Verdict

_FOLDER = "aten/src/ATen/native"
_READS = {"metal-check": (".metal", ".h"), "host-check": (".metal", ".h", ".mm")}
"""The gates that compile, and the files that decide what they find."""

_JOBS = 2


@dataclass(frozen=True)
class Row:
    """One edit of one tree.

    Attributes:
        word: ``applied``, ``refused`` (for a reason that names what was edited) or ``wrong``; ``bad edit`` where the
            edited tree by itself does not compile.
        why: the faults, or the reasons of a refusal.
    """

    tree: str
    kind: Kind
    word: str
    why: tuple[str, ...]


class Compiler:
    """The gates that compile, with what contents came to."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._gates = [spec for spec in GATES if spec.name in _READS]

    def failures(self, repository: Repository, base: GitCommitHash, head: GitCommitHash) -> list[str]:
        """What does not compile of a commit's changes."""
        trees = [Tree.at(repository, commit) for commit in (base, head)]
        paths = [(tree, path) for tree in trees for path in tree.walk(_FOLDER) if "GridSampler" in path]
        context = GateContext(repository, base, head, cache_dir(), jobs=_JOBS)
        found: list[str] = []
        for gate in self._gates:
            seen = [f"{path} {tree.entry(path)}" for tree, path in paths if path.endswith(_READS[gate.name])]
            kept = self._folder / f"{gate.name}-{hashlib.sha256(chr(10).join(seen).encode()).hexdigest()}.json"
            if not kept.exists():
                kept.write_text(json.dumps(list(_failures(gate, context)), indent=1))
            found += json.loads(kept.read_text())
        return found


def _failures(gate: Spec, context: GateContext) -> Iterable[str]:
    result = gate.judge(context, gate.options())
    if result.verdict is Verdict.FAILED:
        # Upstream's own kernels break this rule, and an edit of one has it told of the edit.
        failing = [one for one in result.findings if one.fails and one.rule != CONSTANT_DATA]
        yield from (f"{gate.name}: {one.path}:{one.line}: {one.message}" for one in failing)
    elif result.verdict is Verdict.NOT_RUN and "touches no" not in result.reason:
        yield f"{gate.name} not run: {result.reason}"


def judged(folder: Path, series: str, kind: Kind, edited: Edited, compiler: Compiler | None) -> Row:
    """What comes of one edit."""
    onto = perturbed(folder, edited.files)
    verdict = judge(folder, series, onto, edited)
    why = (*verdict.faults, *(verdict.reasons if verdict.status else ()))
    if compiler is None:
        return Row(folder.name, kind, verdict.word, why)
    with Repository.open(folder) as repository:
        main = repository.resolve_commit("main")
        assert main is not None
        failed = compiler.failures(repository, main, verdict.commits[-1]) if verdict.commits else []
        if (failed or not verdict.commits) and (bad := compiler.failures(repository, main, onto)):
            return Row(folder.name, kind, "bad edit", tuple(bad))
    return Row(folder.name, kind, "wrong" if failed else verdict.word, (*failed, *why))


def rows_of(trees: Path, name: str, series: str, compiler: Compiler | None, scratch: Path) -> list[Row]:
    """All edits of one tree; none where the tree refuses the series as it is."""
    folder = scratch / name
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    command = ["bash", str(trees / "make-tree"), name, str(folder)]
    subprocess.run(command, check=True, env=os.environ | {"PATH": path}, capture_output=True)
    with Repository.open(folder) as repository:
        files = files_of(Tree.at(repository, "main"))
    if judge(folder, series, perturbed(folder, {}), Edited({}, ())).status:
        print(f"{name}: refused unedited, left out", file=sys.stderr)
        return []
    rows = []
    for kind in KINDS:
        edited = kind.edit(files)
        if edited is not None:
            rows.append(judged(folder, series, kind, edited, compiler))
            print(f"{name}: {kind.name} {kind.variant}: {rows[-1].word} {rows[-1].why}", file=sys.stderr, flush=True)
    return rows


def table(rows: Sequence[Row]) -> str:
    """Kind by tree in Markdown: applied / refused truly / wrong; then the share of the edits that keep the meaning."""
    trees = list(dict.fromkeys(row.tree for row in rows))
    lines = [f"| edit | keeps the meaning | {' | '.join(trees)} |", "|---" * (len(trees) + 2) + "|"]
    for kind in dict.fromkeys(row.kind for row in rows):
        words = {row.tree: row.word for row in rows if row.kind is kind}
        cells = " | ".join(words.get(tree, "") for tree in trees)
        lines.append(f"| {kind.name}: {kind.variant} | {'yes' if kind.keeps_meaning else 'no'} | {cells} |")
    counts = ("{applied} / {refused} / {wrong}".format_map(_counts(rows, tree)) for tree in trees)
    lines.append(f"| applied / refused truly / wrong | | {' | '.join(counts)} |")
    same = [row for row in rows if row.kind.keeps_meaning and row.word != "bad edit"]
    applied = sum(row.word == "applied" for row in same)
    total = "{applied} applied, {refused} refused truly, {wrong} wrong".format_map(_counts(rows))
    share = f"Of {len(same)} edits that keep the meaning, {applied} applied ({100 * applied // max(len(same), 1)} %)."
    bad = sum(row.word == "bad edit" for row in rows)
    return "\n".join([*lines, "", f"{len(rows)} edits: {total}; {bad} bad edits. {share}"])


def _counts(rows: Sequence[Row], tree: str = "") -> Counter[str]:
    counted = Counter({"applied": 0, "refused": 0, "wrong": 0})
    counted.update(row.word for row in rows if tree in ("", row.tree))
    return counted


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--series", default="grid_sampler", help="a series of this distribution, or a folder")
    parser.add_argument("--out", type=Path, default=Path("build/perturbations"))
    parser.add_argument("--no-compile", action="store_true", help="apply only")
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    compiler = None if given.no_compile else Compiler(given.out)
    names = given.names or sorted(place.name for place in given.trees.iterdir() if place.is_dir())
    with tempfile.TemporaryDirectory() as scratch:
        rows = [
            row for name in names for row in rows_of(given.trees.resolve(), name, given.series, compiler, Path(scratch))
        ]
    print(table(rows))


if __name__ == "__main__":
    main()
