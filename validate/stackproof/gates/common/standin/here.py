"""Whether the stand-in device can be used on this machine, and whether it could be loaded."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import torch

from patchstack.errors import PatchstackError
from stackproof.engines.errors import CompileError, ToolchainError
from stackproof.engines.standin.host_file import CHECKS
from stackproof.engines.standin.missing import LACKING
from stackproof.engines.standin.stack import HostStack
from stackproof.engines.standin.torches import not_of_the_stack
from stackproof.gates.common.results import failed_early
from stackproof.gates.common.standin.collected import LIMITS, not_run
from stackproof.gates.common.standin.outcomes import Outcome
from stackproof.gates.common.standin.worker import NOT_LOADED, Ran
from stackproof.gates.spec import Spec
from stackproof.model import Finding, GateResult
from stackproof.ops.scenarios import Scenario


def loaded(running: Iterable[tuple[Scenario, Outcome]]) -> tuple[list[tuple[Scenario, Outcome]], str]:
    """What came of scenarios, and why the device could not be used after all; empty where it could."""
    outcomes = []
    for scenario, outcome in running:
        if outcome.ran and (lacking := _not_loaded(outcome.ran)):
            return [], f"the stand-in device lacks {lacking}"
        outcomes.append((scenario, outcome))
    return outcomes, ""


def not_built(spec: Spec, error: PatchstackError, stack: HostStack, cache: Path) -> GateResult:
    """The result of a gate whose device could not be built: the machine's fault, the tree's, or the stack's."""
    reason = str(error) if isinstance(error, ToolchainError) else ""
    finding = Finding(str(error), path=error.where, rule="build")
    if isinstance(error, CompileError):
        reason = not_of_the_stack(error, stack, cache / CHECKS)
        path, _, line = error.where.rpartition(":")
        place = (path, int(line)) if path and line.isdigit() else (error.where, 0)
        finding = Finding(error.problem, *place, rule="compile")
    return not_run(spec, reason) if reason else failed_early(spec, finding, LIMITS)


def _not_loaded(answer: Ran) -> str:
    """What the device lacks, empty where it could be loaded."""
    for finding in answer.findings:
        if finding.rule == NOT_LOADED:
            return finding.message.rpartition("undefined symbol: ")[2]
        if LACKING in finding.message:
            return finding.message.partition(LACKING)[2]
    problems = [problem for case in answer.cases for problem in case.problems if LACKING in problem]
    return problems[0].partition(LACKING)[2] if problems else ""


def why_not_here() -> str:
    """Why nothing can be executed on this system; empty where it can."""
    if not sys.platform.startswith("linux"):
        return "the stand-in device is for Linux; on a Mac, test-mps runs on the real one"
    if torch.backends.mps.is_built():
        return "this torch has a real MPS backend"
    return ""
