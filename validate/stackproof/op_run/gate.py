"""The gate "op-run": which ops a stack touches, their scenarios on the stand-in device, and the verdict.

An op of which somebody wrote a proof is left to host-run. Everything else is run from recorded calls; an op that no
OpInfo reaches is not run, and named.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from patchstack.errors import PatchstackError
from stackproof.host.below import BelowHost, case_of, crash_of
from stackproof.host.build import DeviceBuild, build_device
from stackproof.host.check import NAME as CHECK
from stackproof.host.outcomes import Outcome, run_scenarios
from stackproof.host.run import ERROR_UNIT, LIMITS, merged, not_loaded, why_not_here
from stackproof.host.scenarios import Scenario, host_proof_for
from stackproof.host.torches import not_of_the_stack
from stackproof.host.watched import fallback_findings
from stackproof.launches import DETAIL, Launches, looked_at, never_launched
from stackproof.metal.errors import CompileError, ToolchainError
from stackproof.model import Finding, GateContext, GateResult, Verdict
from stackproof.op_run.proof import Proofs
from stackproof.op_run.reach import entries_reaching
from stackproof.op_run.recorded import base_name
from stackproof.op_run.touched import op_stack
from stackproof.op_run.user import proof_file

NAME = "op-run"


@dataclass
class _Seen:
    """What has come in so far."""

    cases: int = 0
    failed: int = 0
    worst: float | None = None
    counts: Launches = field(default_factory=Launches)
    findings: list[Finding] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)


class OpRunGate:
    """Implements :class:`stackproof.model.Gate`.

    Options: ``kinds`` (kinds of scenarios; all by default).
    """

    name = NAME
    summary = "every other op that the stack touches, from PyTorch's own samples on the stand-in device"

    def run(self, context: GateContext) -> GateResult:
        """Run the ops of the head commit."""
        started = time.monotonic()
        reason = why_not_here()
        if reason:
            return _not_run(reason)
        stack = op_stack(context)
        named = dict.fromkeys(base_name(op.overload) for op in stack.ops)
        ops = [op for op in named if host_proof_for(op) is None]
        if not ops:
            others = f"host-run runs {', '.join(named)}" if named else "the stack touches no function of an op for MPS"
            return _not_run(others)
        try:
            context.progress(0, len(ops), "compile the stand-in device")
            with ThreadPoolExecutor(1) as beside:
                reached = beside.submit(entries_reaching, ops, context.cache)
                build = build_device(stack, context.cache / "host-run", jobs=context.jobs)
                proof_of = Proofs(reached.result(), proof_file(context.options.get("series")))
        except ToolchainError as error:
            return _not_run(str(error))
        except CompileError as error:
            reason = not_of_the_stack(error, stack, context.cache / CHECK)
            return _not_run(reason) if reason else _failed(Finding(str(error), rule="compile"), started)
        except PatchstackError as error:
            return _failed(Finding(str(error), path=error.where, rule="build"), started)
        seen = _Seen(findings=[Finding(text, rule="left-out", fails=False) for text in build.left_out])
        registered = {base_name(op) for op in build.ops}
        kinds = context.options.get("kinds")
        scenarios = [
            one
            for op in ops
            if op in registered
            for one in proof_of(op).scenarios()
            if kinds is None or one.kind in kinds
        ]
        if not scenarios:
            return _not_run("; ".join(build.left_out) or f"no scenario of {', '.join(ops)} was asked for")
        outcomes: list[tuple[Scenario, Outcome]] = []
        for scenario, outcome in run_scenarios(scenarios, build, context.jobs, context.progress, proof_of):
            if outcome.ran and (lacking := not_loaded(outcome.ran)):
                return _not_run(f"the stand-in device lacks {lacking}")
            outcomes.append((scenario, outcome))
        for scenario, outcome in BelowHost(context, stack, proof_of).noted(outcomes):
            _collect(seen, scenario, outcome)
        seen.findings += _unseen(seen, ops)
        seen.findings += fallback_findings(seen.counts, stack, build, context.options)
        if kinds is None and not any(one.rule == "crash" for one in seen.findings):
            whole = len(ops) == len(named)
            seen.findings += never_launched(seen.counts, dict(build.brought), fails=whole, gate=NAME)
        return _result(seen, build, started)


def _collect(seen: _Seen, scenario: Scenario, outcome: Outcome) -> None:
    seen.cases += len(outcome.crashes)
    seen.failed += len(outcome.crashes)
    seen.findings += [crash_of(scenario, crash) for crash in outcome.crashes]
    if outcome.ran is None:
        return
    cases = outcome.ran.cases
    failed = [case for case in cases if case.problems]
    seen.cases += len(cases)
    seen.failed += len(failed)
    seen.counts.add(outcome.ran.counts)
    seen.findings += outcome.ran.findings
    if failed:
        seen.findings.append(case_of(scenario, failed[0], len(cases), len(failed)))
    errors = [case.error for case in cases if case.error is not None]
    if errors:
        seen.worst = max(errors) if seen.worst is None else max(seen.worst, *errors)
    row = {"scenario": scenario.label, "op": scenario.op, "kind": scenario.kind, "dtype": scenario.key}
    figures = {"cases": len(cases), "failed": len(failed), "worst_error": max(errors, default=None)}
    seconds = round(outcome.ran.seconds, 2)
    seen.rows.append({**row, **figures, "launches": outcome.ran.launches, "seconds": seconds})


def _unseen(seen: _Seen, ops: Sequence[str]) -> list[Finding]:
    """The ops of which nothing was run."""
    ran = {row["op"] for row in seen.rows if row["cases"]}
    text = "no OpInfo of the installed torch calls it, so nothing of it was run; write a proof.py beside the series"
    return [Finding(f"{op}: {text}", rule="no-sample", fails=False) for op in ops if op not in ran]


def _not_run(reason: str) -> GateResult:
    return GateResult(NAME, Verdict.NOT_RUN, reason=reason, limits=LIMITS)


def _failed(finding: Finding, started: float) -> GateResult:
    seconds = time.monotonic() - started
    return GateResult(NAME, Verdict.FAILED, 1, 1, seconds=seconds, findings=(finding,), limits=LIMITS)


def _result(seen: _Seen, build: DeviceBuild, started: float) -> GateResult:
    findings = merged(seen.findings)
    fails = seen.failed > 0 or any(finding.fails for finding in findings)
    failed = max(seen.failed, int(fails))
    if not seen.cases and not fails:
        return _not_run("; ".join(finding.message for finding in findings) or "no call was recorded")
    return GateResult(
        NAME,
        Verdict.FAILED if fails else Verdict.PASSED,
        cases=max(seen.cases, failed),
        failed=failed,
        worst_error=seen.worst,
        seconds=time.monotonic() - started,
        findings=findings,
        details={
            "error_unit": ERROR_UNIT,
            "scenarios": sorted(seen.rows, key=lambda row: str(row["scenario"])),
            "ops": list(build.ops),
            DETAIL: looked_at(seen.counts, dict(build.brought), build.ops),
        },
        limits=LIMITS,
    )
