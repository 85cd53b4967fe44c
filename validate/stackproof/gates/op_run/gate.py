"""The gate "op-run": which ops a stack touches, their scenarios on the stand-in device, and the verdict.

An op of which somebody wrote a proof is left to host-run. Everything else is run from recorded calls; an op that no
OpInfo reaches is not run, and named.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from patchstack.errors import PatchstackError
from stackproof.base_commit.findings import failing
from stackproof.engines.standin.build import build_device
from stackproof.gates.common.options import KindsOptions
from stackproof.gates.common.results import merged
from stackproof.gates.common.standin.below import BelowHost
from stackproof.gates.common.standin.collected import Collected, not_run, subject_of
from stackproof.gates.common.standin.here import loaded, not_built, why_not_here
from stackproof.gates.common.standin.outcomes import run_scenarios
from stackproof.gates.common.standin.watched import fallback_findings
from stackproof.gates.op_run.proof import Proofs, out_of_reach
from stackproof.gates.op_run.reach import entries_reaching
from stackproof.gates.op_run.recorded import base_name
from stackproof.gates.op_run.spec import SPEC
from stackproof.gates.op_run.touched import not_found, op_stack
from stackproof.gates.op_run.user import proof_file
from stackproof.launches import never_launched
from stackproof.model import Finding, GateContext, GateResult
from stackproof.ops.scenarios import host_proof_for


def run(context: GateContext, options: KindsOptions) -> GateResult:
    """Run the ops of the head commit."""
    reason = why_not_here()
    if reason:
        return not_run(SPEC, reason)
    stack = op_stack(context)
    named = dict.fromkeys(base_name(op.overload) for op in stack.ops)
    ops = [op for op in named if host_proof_for(op) is None]
    if not ops:
        others = f"host-run runs {', '.join(named)}" if named else "the stack touches no function of an op for MPS"
        return not_run(SPEC, others)
    try:
        context.progress(0, len(ops), "compile the stand-in device")
        with ThreadPoolExecutor(1) as beside:
            reached = beside.submit(entries_reaching, ops, context.cache)
            build = build_device(stack, context.cache / "host-run", jobs=context.jobs)
            proof_of = Proofs(reached.result(), proof_file(options.series))
    except PatchstackError as error:
        return not_built(SPEC, error, stack, context.cache)
    seen = Collected(findings=[Finding(text, rule="left-out", fails=False) for text in build.left_out])
    seen.findings += not_found(options.ops, named)
    registered = {base_name(op) for op in build.ops}
    asked = (one for op in ops if op in registered for one in proof_of(op).scenarios())
    scenarios = [one for one in asked if options.wants(one.kind)]
    if not scenarios:
        return not_run(SPEC, "; ".join(build.left_out) or f"no scenario of {', '.join(ops)} was asked for")
    outcomes, reason = loaded(run_scenarios(scenarios, build, context.jobs, context.progress, proof_of))
    if reason:
        return not_run(SPEC, reason)
    for scenario, outcome in BelowHost(context, stack, proof_of).noted(outcomes):
        seen.add(scenario, outcome, dtype=scenario.key)
    seen.findings += _unseen(seen, ops)
    seen.findings += fallback_findings(seen.counts, stack, build, options)
    if not options.kinds and not any(one.rule == "crash" for one in seen.findings):
        whole = len(ops) == len(named)
        brought = dict(build.brought)
        seen.findings += never_launched(seen.counts, brought, fails=whole, gate=SPEC.name, out_of_reach=out_of_reach)
    if not seen.cases and not failing(seen.findings):
        return not_run(
            SPEC, "; ".join(one.message for one in merged(seen.findings, subject_of)) or "no call was recorded"
        )
    return seen.result(SPEC, build)


def _unseen(seen: Collected, ops: Sequence[str]) -> list[Finding]:
    """The ops of which nothing was run."""
    ran = {row["op"] for row in seen.rows if row["cases"]}
    text = "no OpInfo of the installed torch calls it, so nothing of it was run; write a proof.py beside the series"
    return [Finding(f"{op}: {text}", rule="no-sample", fails=False) for op in ops if op not in ran]
