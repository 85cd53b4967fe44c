"""Whether the stand-in device can be used on this machine, and whether it could be loaded."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace
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
    """What came of scenarios, and why the device could not be used after all; empty where it could.

    A case that asks for what the device lacks is left out and told; where no other case is left, nothing was run.
    """
    outcomes, lacks, left = [], "", False
    for scenario, outcome in running:
        if outcome.ran and (lacking := _not_loaded(outcome.ran)):
            return [], f"the stand-in device lacks {lacking}"
        if outcome.ran:
            ran, lacking = _without_lacking(outcome.ran)
            outcome = replace(outcome, ran=ran)
            lacks, left = lacks or lacking, left or bool(ran.cases)
        outcomes.append((scenario, outcome))
    return ([], f"the stand-in device lacks {lacks}") if lacks and not left else (outcomes, "")


def _without_lacking(ran: Ran) -> tuple[Ran, str]:
    """The cases that did not ask for what the device lacks, a note on the others, and what the first of them lacked."""
    asked: dict[str, int] = {}

    def lacking(texts: Iterable[str]) -> bool:
        missing = next((one.partition(LACKING)[2] for one in texts if LACKING in one), "")
        if missing:
            asked[missing] = asked.get(missing, 0) + 1
        return bool(missing)

    cases = tuple(case for case in ran.cases if not lacking(case.problems))
    findings = [one for one in ran.findings if not one.fails or not lacking([one.message])]
    if not asked:
        return ran, ""
    notes = [
        Finding(f"{count} calls were left out: the stand-in device lacks {name}", rule="left-out", fails=False)
        for name, count in asked.items()
    ]
    return replace(ran, cases=cases, findings=(*findings, *notes)), next(iter(asked))


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
    return ""


def why_not_here() -> str:
    """Why nothing can be executed on this system; empty where it can."""
    if not sys.platform.startswith("linux"):
        return "the stand-in device is for Linux; on a Mac, test-mps runs on the real one"
    if torch.backends.mps.is_built():
        return "this torch has a real MPS backend"
    return ""
