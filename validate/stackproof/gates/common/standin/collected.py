"""What came of the scenarios of a gate on the stand-in device, and the result that follows from it."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from stackproof.engines.standin.build import DeviceBuild
from stackproof.gates.common import results
from stackproof.gates.common.standin.below import case_of, crash_of
from stackproof.gates.common.standin.outcomes import Outcome
from stackproof.gates.spec import Spec
from stackproof.launches import DETAIL, Launches, looked_at
from stackproof.model import Finding, GateResult
from stackproof.ops.scenarios import Scenario

ERROR_UNIT = "epsilon of the dtype"
LIMITS = (
    "Kernels and host functions ran on this machine's CPU on a stand-in device: no Metal, no Apple GPU, no macOS.",
    f"The host functions were compiled against the installed torch {torch.__version__}, not in a build of their tree.",
    "Commands run at once and in order: what depends on a queue that runs later, or on another stream, is not shown.",
    "Ops that the stack does not implement ran on the CPU.",
)


@dataclass
class Collected:
    """What has come in so far."""

    cases: int = 0
    failed: int = 0
    launches: int = 0
    counts: Launches = field(default_factory=Launches)
    worst: float | None = None
    findings: list[Finding] = field(default_factory=list)
    rows: list[dict[str, object]] = field(default_factory=list)

    def add(self, scenario: Scenario, outcome: Outcome, **more: object) -> None:
        """Take in a scenario.

        Args:
            more: what its row has beside the figures.
        """
        self.cases += len(outcome.crashes)
        self.failed += len(outcome.crashes)
        self.findings += [crash_of(scenario, crash) for crash in outcome.crashes]
        answer = outcome.ran
        if answer is None:
            return
        failed = [case for case in answer.cases if case.problems]
        raised = any(finding.rule == "raised" and finding.fails for finding in answer.findings)
        self.cases += len(answer.cases) + raised
        self.failed += len(failed) + raised
        self.launches += answer.launches
        self.counts.add(answer.counts)
        errors = [case.error for case in answer.cases if case.error is not None]
        if errors:
            self.worst = max(errors) if self.worst is None else max(self.worst, *errors)
        self.findings += answer.findings
        if failed:
            self.findings.append(case_of(scenario, failed[0], len(answer.cases), len(failed)))
        self.rows.append(
            {
                "scenario": scenario.label,
                "op": scenario.op,
                "kind": scenario.kind,
                **more,
                "cases": len(answer.cases),
                "failed": len(failed),
                "worst_error": max(errors, default=None),
                "launches": answer.launches,
                "seconds": round(answer.seconds, 2),
            }
        )

    def result(self, spec: Spec, build: DeviceBuild) -> GateResult:
        """The verdict of a gate."""
        return results.judged(
            spec,
            cases=self.cases,
            failed=self.failed,
            findings=results.merged(self.findings, subject_of),
            worst_error=self.worst,
            details={
                "error_unit": ERROR_UNIT,
                "scenarios": sorted(self.rows, key=lambda row: str(row["scenario"])),
                "launches": self.launches,
                "ops": list(build.ops),
                DETAIL: looked_at(self.counts, dict(build.brought), build.ops),
            },
            limits=LIMITS,
        )


def not_run(spec: Spec, reason: str) -> GateResult:
    """Nothing could be executed."""
    return results.not_run(spec, reason, LIMITS)


def subject_of(message: str) -> str:
    """What a message without a place is about."""
    return message.partition(":")[0]
