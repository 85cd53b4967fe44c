"""The gate "host-run": the stack's host functions and kernels together, through PyTorch's public interface.

``mps`` is a stand-in device for the installed torch; dispatcher, autograd, the host function of the stack and the
kernels of the stack are real. Everything is executed in worker processes with a time limit.
"""

from __future__ import annotations

from collections.abc import Sequence

from patchstack.errors import PatchstackError
from stackproof.engines.standin.alerts import quiet_as_below
from stackproof.engines.standin.build import DeviceBuild, build_device
from stackproof.engines.standin.torches import unsuited
from stackproof.gates.common.options import KindsOptions
from stackproof.gates.common.sources import stack_of
from stackproof.gates.common.standin.below import BelowHost
from stackproof.gates.common.standin.collected import Collected, not_run
from stackproof.gates.common.standin.here import loaded, not_built, why_not_here
from stackproof.gates.common.standin.outcomes import run_scenarios
from stackproof.gates.common.standin.watched import fallback_findings
from stackproof.gates.host_run.spec import SPEC
from stackproof.launches import Launches, never_launched
from stackproof.model import Finding, GateContext, GateResult
from stackproof.ops.scenarios import DETERMINISTIC, HostProof, Scenario, host_proof_for


def run(context: GateContext, options: KindsOptions) -> GateResult:
    """Execute the head commit's host functions."""
    reason = why_not_here()
    if reason:
        return not_run(SPEC, reason)
    ops = options.named_ops
    proofs = [proof for op in ops if (proof := host_proof_for(op)) is not None]
    scenarios = [one for proof in proofs for one in proof.scenarios() if options.wants(one.kind)]
    if not scenarios:
        return not_run(SPEC, f"nothing is known to run for {', '.join(ops)}")
    stack = stack_of(context)
    quiet = quiet_as_below(stack)
    notes = [_no_alert(one) for one in scenarios if one.kind == DETERMINISTIC and one.op in quiet]
    scenarios = [one for one in scenarios if one.kind != DETERMINISTIC or one.op not in quiet]
    try:
        context.progress(0, len(scenarios), "compile the stand-in device")
        build = build_device(stack, context.cache / SPEC.name, jobs=context.jobs)
    except PatchstackError as error:
        return not_built(SPEC, error, stack, context.cache)
    foreign = _of_another_schema(build, ops)
    scenarios = [one for one in scenarios if one.op not in foreign]
    if not scenarios:
        return not_run(SPEC, unsuited("; ".join(build.left_out), stack))
    ops = tuple(op for op in ops if op not in foreign)
    collected = Collected(findings=[*_unregistered(build, ops), *notes])
    outcomes, reason = loaded(run_scenarios(scenarios, build, context.jobs, context.progress))
    if reason:
        return not_run(SPEC, reason)
    for scenario, outcome in BelowHost(context, stack).noted(outcomes):
        collected.add(scenario, outcome)
    collected.findings += fallback_findings(collected.counts, stack, build, options)
    if not options.kinds and not any(finding.rule == "crash" for finding in collected.findings):
        collected.findings += _not_reached(collected.counts, build, proofs, all_ops=len(proofs) == len(ops))
    return collected.result(SPEC, build)


def _not_reached(counts: Launches, build: DeviceBuild, proofs: Sequence[HostProof], *, all_ops: bool) -> list[Finding]:
    """The stack's kernels that were not launched; with a proof of every op, that is a fault of host file or kernels."""
    brought = dict(build.brought)
    reasons = {kernel: next(filter(None, (one.out_of_reach(kernel) for one in proofs)), "") for kernel in brought}
    return never_launched(counts, brought, fails=all_ops, gate=SPEC.name, out_of_reach=reasons.__getitem__)


def _unregistered(build: DeviceBuild, ops: Sequence[str]) -> list[Finding]:
    missing = [op for op in ops if not _names([op]) <= _names(build.ops)]
    return [
        Finding(f"{op}: no host file of the stack implements it for MPS", rule="not-implemented") for op in missing
    ] + [Finding(text, rule="left-out", fails=False) for text in build.left_out]


def _of_another_schema(build: DeviceBuild, ops: Sequence[str]) -> list[str]:
    """Ops that the installed torch does not have, or has with another schema."""
    registered, left_out = _names(build.ops), _names(build.left_out)
    return [op for op in ops if _names([op]) <= left_out - registered]


def _names(overloads: Sequence[str]) -> set[str]:
    return {one.partition(":")[0].partition(".")[0] for one in overloads}


def _no_alert(scenario: Scenario) -> Finding:
    text = f"{scenario.op}: no alert for algorithms that are not deterministic, as below the stack"
    return Finding(text, rule="no-alert", fails=False)
