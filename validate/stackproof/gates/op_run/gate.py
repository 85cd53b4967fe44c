"""The gate "op-run": which ops a stack touches, their scenarios on the stand-in device, and the verdict.

An op of which somebody wrote a proof is left to host-run. Everything else is run from recorded calls; an op that no
OpInfo reaches is not run, and named.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from patchstack.errors import PatchstackError
from stackproof.base_commit.findings import failing
from stackproof.engines.errors import CompileError, ToolchainError
from stackproof.engines.standin.build import build_device
from stackproof.engines.standin.host_file import CHECKS
from stackproof.engines.standin.torches import not_of_the_stack
from stackproof.gates.common.standin.below import BelowHost
from stackproof.gates.common.standin.collected import Collected, failed_early, merged, not_run
from stackproof.gates.common.standin.here import not_loaded, why_not_here
from stackproof.gates.common.standin.outcomes import Outcome, run_scenarios
from stackproof.gates.common.standin.watched import fallback_findings
from stackproof.gates.op_run.proof import Proofs, out_of_reach
from stackproof.gates.op_run.reach import entries_reaching
from stackproof.gates.op_run.recorded import base_name
from stackproof.gates.op_run.touched import op_stack
from stackproof.gates.op_run.user import proof_file
from stackproof.launches import never_launched
from stackproof.model import Finding, GateContext, GateResult
from stackproof.ops.scenarios import Scenario, host_proof_for

NAME = "op-run"


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
            return not_run(NAME, reason)
        stack = op_stack(context)
        named = dict.fromkeys(base_name(op.overload) for op in stack.ops)
        ops = [op for op in named if host_proof_for(op) is None]
        if not ops:
            others = f"host-run runs {', '.join(named)}" if named else "the stack touches no function of an op for MPS"
            return not_run(NAME, others)
        try:
            context.progress(0, len(ops), "compile the stand-in device")
            with ThreadPoolExecutor(1) as beside:
                reached = beside.submit(entries_reaching, ops, context.cache)
                build = build_device(stack, context.cache / "host-run", jobs=context.jobs)
                proof_of = Proofs(reached.result(), proof_file(context.options.get("series")))
        except ToolchainError as error:
            return not_run(NAME, str(error))
        except CompileError as error:
            reason = not_of_the_stack(error, stack, context.cache / CHECKS)
            return not_run(NAME, reason) if reason else failed_early(NAME, Finding(str(error), rule="compile"), started)
        except PatchstackError as error:
            return failed_early(NAME, Finding(str(error), path=error.where, rule="build"), started)
        seen = Collected(findings=[Finding(text, rule="left-out", fails=False) for text in build.left_out])
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
            return not_run(NAME, "; ".join(build.left_out) or f"no scenario of {', '.join(ops)} was asked for")
        outcomes: list[tuple[Scenario, Outcome]] = []
        for scenario, outcome in run_scenarios(scenarios, build, context.jobs, context.progress, proof_of):
            if outcome.ran and (lacking := not_loaded(outcome.ran)):
                return not_run(NAME, f"the stand-in device lacks {lacking}")
            outcomes.append((scenario, outcome))
        for scenario, outcome in BelowHost(context, stack, proof_of).noted(outcomes):
            seen.add(scenario, outcome, dtype=scenario.key)
        seen.findings += _unseen(seen, ops)
        seen.findings += fallback_findings(seen.counts, stack, build, context.options)
        if kinds is None and not any(one.rule == "crash" for one in seen.findings):
            whole = len(ops) == len(named)
            brought = dict(build.brought)
            seen.findings += never_launched(seen.counts, brought, fails=whole, gate=NAME, out_of_reach=out_of_reach)
        if not seen.cases and not failing(seen.findings):
            return not_run(NAME, "; ".join(one.message for one in merged(seen.findings)) or "no call was recorded")
        return seen.result(NAME, build, started)


def _unseen(seen: Collected, ops: Sequence[str]) -> list[Finding]:
    """The ops of which nothing was run."""
    ran = {row["op"] for row in seen.rows if row["cases"]}
    text = "no OpInfo of the installed torch calls it, so nothing of it was run; write a proof.py beside the series"
    return [Finding(f"{op}: {text}", rule="no-sample", fails=False) for op in ops if op not in ran]
