"""Which torch works with which tree: host gates of a small series on reference trees, with several versions of torch.

    python bench/torch_versions.py --venvs FOLDER [--torch VERSION]... [--tree NAME]... [--series FOLDER] [--json FILE]

For each version it makes a virtual environment in ``FOLDER`` (found again by the next run) with that torch and this
project; on Linux that is a CUDA build, of about 5 GB, unless pip is told of another index. For each tree it applies the
series to a throw-away clone and runs validate-stack. The table is printed as Markdown. What pip cannot install, and a
series that is for none of its changes, is *not run*.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TORCHES = ("2.11.0", "2.13.0", "2.14.1")
TREES = ("2.6", "2.11", "2.13", "2.14")
# The commands, whatever the environment calls its scripts.
APPLY = "from patchstack.cli import main; main()"
VALIDATE = "from stackproof.cli import main; main()"
GATES = ("host-check", "op-run", "test-mps")


@dataclass(frozen=True)
class Cell:
    """What a gate said of one tree with one torch.

    Attributes:
        torch: version of torch.
        tree: name of the reference tree.
        gate: name of the gate.
        verdict: ``passed``, ``failed`` or ``not run``.
        cases: how many there were.
        reason: why it was not run, or the first finding that failed.
    """

    torch: str
    tree: str
    gate: str
    verdict: str
    cases: int = 0
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.verdict} ({self.cases})" if self.cases else self.verdict


def environment_of(version: str, folder: Path) -> tuple[Path, str]:
    """A Python with that torch and this project, and why there is none."""
    place = folder / f"torch-{version}"
    python = place / "bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    install = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    for wanted in ([f"torch=={version}"], [f"torch=={version}", "--editable", f"{ROOT}[validate]"]):
        done = subprocess.run([*install, *wanted], capture_output=True, text=True, check=False)
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or ["pip failed"]
            return python, f"pip install torch=={version}: {errors[-1]}"
    return python, ""


def stack_on(tree: str, series: Path, folder: Path) -> str:
    """Apply the series to a clone of a reference tree in ``folder``; says why not."""
    built = subprocess.run(
        [sys.executable, "-m", "patchstack.reference", tree], capture_output=True, text=True, check=False
    )
    if built.returncode:
        return f"no reference tree {tree}: {built.stderr.strip()}"
    source = built.stdout.split()[0]
    subprocess.run(["git", "clone", "-q", "--shared", "--branch", "main", source, str(folder)], check=True)
    for key in ("user.name", "user.email"):
        subprocess.run(["git", "-C", str(folder), "config", key, "bench@example.org"], check=True)
    command = [sys.executable, "-c", APPLY, "--onto", "main", "--repo", str(folder), "--series", str(series)]
    done = subprocess.run([*command, "--force"], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stderr.strip().partition("\n")[0]


def judged(python: Path, repository: Path, series: Path, report: Path) -> Mapping[str, Mapping[str, object]]:
    """What the gates say, by name."""
    command = [
        str(python), "-c", VALIDATE, "--repo", str(repository), "--series", str(series),
        "--only", ",".join(GATES), "--json", str(report),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not report.exists():
        raise SystemExit(f"validate-stack ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return {one["name"]: one for one in json.loads(report.read_text())["gates"]}


def rows(torches: Sequence[str], trees: Sequence[str], venvs: Path, series: Path) -> list[Cell]:
    """All cells."""
    environments = {version: environment_of(version, venvs) for version in torches}
    cells: list[Cell] = []
    for tree in trees:
        with tempfile.TemporaryDirectory(prefix="torch-versions-") as scratch:
            repository = Path(scratch) / "tree"
            reason = stack_on(tree, series, repository)
            for version, (python, lacking) in environments.items():
                if reason or lacking:
                    cells += [Cell(version, tree, gate, "not run", reason=reason or lacking) for gate in GATES]
                    continue
                found = judged(python, repository, series, Path(scratch) / f"{version}.json")
                cells += [cell_of(version, tree, gate, found[gate]) for gate in GATES]
                print(f"{tree} with torch {version}:", *cells[-len(GATES) :], file=sys.stderr, flush=True)
    return cells


def cell_of(version: str, tree: str, gate: str, found: Mapping[str, object]) -> Cell:
    """A cell from a gate's part of a JSON report."""
    findings = found.get("findings") or []
    assert isinstance(findings, list)
    failing = [str(one["message"]) for one in findings if one.get("fails", True)]
    reason = str(found.get("reason") or (failing[0] if failing else ""))
    cases = found.get("cases") or 0
    assert isinstance(cases, int)
    return Cell(version, tree, gate, str(found["verdict"]), cases, reason)


def table(cells: Sequence[Cell], torches: Sequence[str]) -> str:
    """Markdown, one row a tree and gate, and below it why something did not pass."""
    lines = [f"| tree | gate | {' | '.join(f'torch {one}' for one in torches)} |", "|---" * (len(torches) + 2) + "|"]
    for tree, gate in dict.fromkeys((one.tree, one.gate) for one in cells):
        found = {one.torch: one for one in cells if (one.tree, one.gate) == (tree, gate)}
        lines.append(f"| {tree} | {gate} | {' | '.join(str(found[one]) for one in torches)} |")
    reasons = dict.fromkeys(
        f"{one.gate}, tree {one.tree}, torch {one.torch}: {one.reason}" for one in cells if one.reason
    )
    return "\n".join([*lines, "", *(f"- {reason}" for reason in reasons)])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--venvs", type=Path, required=True)
    parser.add_argument("--torch", action="append")
    parser.add_argument("--tree", action="append")
    parser.add_argument("--series", type=Path, default=ROOT / "tests/series/metal_ops")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torches = options.torch or TORCHES
    cells = rows(torches, options.tree or TREES, options.venvs.resolve(), options.series.resolve())
    if options.json:
        options.json.write_text(json.dumps([asdict(one) for one in cells], indent=2) + "\n")
    print(table(cells, torches))


if __name__ == "__main__":
    main()
