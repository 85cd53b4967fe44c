"""``--check``: the commits are compiled before any ref names them.

The compilers are the proof's, which the applier does not import: ``validate-stack`` runs as a process of its own, on
the ids of commits that only the object database has.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patchstack.errors import ExitCode, PatchstackError
from patchstack.tree.git import GitCommitHash, Repository

_COMMAND = "validate-stack"
_GATES = {"metal-check": (".metal", ".h"), "host-check": (".mm", ".cpp")}
"""The gates, each with the ends of the names of the files that it is for."""

_SHOWN = 5  # findings


@dataclass
class CheckError(PatchstackError):
    """A commit of the stack does not compile; nothing was moved."""

    def __post_init__(self) -> None:
        self.exit_code = ExitCode.CONFLICT


@dataclass
class NotCheckedError(PatchstackError):
    """Whether the stack compiles could not be found out; nothing was moved."""

    def __post_init__(self) -> None:
        self.exit_code = ExitCode.NOT_CHECKED


def check_commits(repository: Repository, onto: GitCommitHash, tip: GitCommitHash, paths: Sequence[str]) -> str:
    """Compile every commit of a stack; the sentence that says so.

    Args:
        paths: the files that the stack touches.

    Raises:
        CheckError: one does not compile.
        NotCheckedError: the command is not there, or could not run a gate that the files are for.
    """
    report = _run(repository, onto, tip)
    gates = [(report.get("head", tip), gate) for gate in report.get("gates", [])]
    gates += [
        (commit.get("commit", ""), gate) for commit in report.get("commits", []) for gate in commit.get("gates", [])
    ]
    failed = [text for commit, gate in gates if gate.get("verdict") == "failed" for text in _findings(commit, gate)]
    if failed:
        shown = list(dict.fromkeys(failed))
        more = f"; and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
        raise CheckError(
            f"the stack does not compile, so nothing was moved: {'; '.join(shown[:_SHOWN])}{more}",
            where="--check",
            next_command="--explain shows the edits; without --check the stack is written all the same",
        )
    verdicts = {gate.get("name"): gate for _, gate in gates[: len(report.get("gates", []))]}
    for name, ends in _GATES.items():
        gate = verdicts.get(name, {})
        if any(path.endswith(ends) for path in paths) and gate.get("verdict") != "passed":
            reason = str(gate.get("reason") or "no answer")
            raise _not_checked(f"{name} was not run", reason)
    passed = [name for name, gate in verdicts.items() if gate.get("verdict") == "passed"]
    return f"--check: {', '.join(passed)} passed on each commit" if passed else "--check: nothing to compile"


def _run(repository: Repository, onto: GitCommitHash, tip: GitCommitHash) -> Mapping[str, Any]:
    beside = Path(sys.executable).with_name(_COMMAND)
    program = shutil.which(_COMMAND) or (str(beside) if beside.exists() else None)
    if program is None:
        raise _not_checked(f"{_COMMAND} is not installed")
    command = [program, "--repo", str(repository.root), "--base", onto, "--head", tip, "--onto", onto, "--each-commit"]
    command += ["--only", ",".join(_GATES), "--json", "-"]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except OSError as error:
        raise _not_checked(f"{_COMMAND} cannot be started", str(error)) from None
    try:
        report = json.loads(done.stdout)
    except ValueError:
        report = None
    if not isinstance(report, dict) or not report.get("gates"):
        raise _not_checked(
            f"{_COMMAND} gave no report", done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        )
    return report


def _findings(commit: str, gate: Mapping[str, Any]) -> Iterator[str]:
    fails = [finding for finding in gate.get("findings", []) if finding.get("fails")]
    for finding in fails:
        place = f"{finding['path']}:{finding['line']}: " if finding.get("path") else ""
        yield f"{commit[:12]} {gate.get('name')}: {place}{finding.get('message')}"
    if not fails:
        yield f"{commit[:12]} {gate.get('name')}: {gate.get('reason') or 'failed'}"


def _not_checked(problem: str, found: str = "") -> NotCheckedError:
    return NotCheckedError(
        f"{problem}, so nothing was moved",
        where="--check",
        found=found,
        next_command="pip install 'patchstack[validate]', or leave --check out",
    )
