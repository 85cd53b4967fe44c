"""Put the series on whole trees and judge every commit of every stack; print the table.

    python bench/upstream_trees.py TREES [NAME ...] [--only GATE,..] [--out FOLDER]

``TREES`` is a folder with a script ``make-tree NAME DEST`` and a folder for each tree: upstream's own files of a
moment, which this repository does not hold. For each tree: exit code of ``apply-stack``, and for each commit the
verdict of each gate with its cases. The report of a tree is kept as JSON in ``--out``, and a tree that has
one is not judged again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

GATES = "metal-check,metal-run,host-check,host-run,fc-window,c-shim,lint"
BIN = Path(sys.executable).parent
ENVIRONMENT = os.environ | {"PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"}
for _who in ("AUTHOR", "COMMITTER"):
    ENVIRONMENT |= {f"GIT_{_who}_NAME": "Bench", f"GIT_{_who}_EMAIL": "bench@example.com"}


def run(*command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, check=False)


def judged(trees: Path, name: str, gates: str, scratch: Path) -> dict[str, Any]:
    """What becomes of one tree: the report of apply-stack, and that of validate-stack where there is a stack."""
    checkout = scratch / name
    made = run("bash", str(trees / "make-tree"), name, str(checkout))
    if made.returncode:
        sys.exit(made.stderr)
    applied = run(str(BIN / "apply-stack"), "--onto", "main", "--json", cwd=checkout)
    found: dict[str, Any] = {"tree": name, "exit": applied.returncode, "applied": json.loads(applied.stdout)}
    if applied.returncode == 0:
        out = scratch / f"{name}.json"
        run(str(BIN / "validate-stack"), "--each-commit", "--only", gates, "--json", str(out), cwd=checkout)
        found["judged"] = json.loads(out.read_text())
    return found


def rows(found: dict[str, Any]) -> list[str]:
    """The rows of a tree, a commit each."""
    applied = found["applied"]
    head = f"| `{found['tree']}` | {found['exit']}"
    if "judged" not in found:
        reasons = "; ".join(conflict["problem"] for conflict in applied.get("conflicts", []))
        return [f"{head} | {reasons or applied['error']['problem']} | |"]
    titles = {change["commit"]: change["id"] for change in applied["changes"] if change["commit"]}
    table = []
    for commit in found["judged"]["commits"]:
        told = ", ".join(map(verdict, commit["gates"]))
        table.append(f"{head} | {titles.get(commit['commit'], commit['commit'][:12])} | {told} |")
    return table


def verdict(gate: dict[str, Any]) -> str:
    """A gate's word, and what it looked at or why it did not."""
    if gate["verdict"] == "passed":
        return f"{gate['name']} {gate['cases']}"
    failed = f"{gate['failed']} of {gate['cases']} failed" if gate["cases"] else gate["reason"]
    return f"**{gate['name']} {gate['verdict']}**: {failed}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--only", default=GATES)
    parser.add_argument("--out", type=Path, default=Path("build/upstream-trees"))
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    names = given.names or sorted(place.name for place in given.trees.iterdir() if place.is_dir())
    print("| tree | exit | commit | gates that passed (cases), or did not |\n|---|---|---|---|")
    for name in names:
        kept = given.out / f"{name}.json"
        if not kept.exists():
            with tempfile.TemporaryDirectory() as scratch:
                kept.write_text(json.dumps(judged(given.trees.resolve(), name, given.only, Path(scratch)), indent=1))
        for row in rows(json.loads(kept.read_text())):
            print(row, flush=True)


if __name__ == "__main__":
    main()
