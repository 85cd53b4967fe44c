"""The gate ``bench``: what the backward passes of the stack cost.

On the host, loads, stores, atomics and bytes are counted, beside the base commit's and beside the record. On a GPU the
same rows are timed, beside PyTorch's own kernel of that device in the same run.
"""

from __future__ import annotations

from stackproof.gates.bench.count_gate import count_on_host
from stackproof.gates.bench.devices import available, why_not
from stackproof.gates.bench.spec import HOST, SPEC, Options
from stackproof.gates.bench.speed_gate import measure_on
from stackproof.gates.common.results import not_run
from stackproof.model import GateContext, GateResult
from stackproof.ops.grid_sampler.bench.rows import all_rows, quick_rows


def run(context: GateContext, options: Options) -> GateResult:
    """Judge the head commit's kernels beside the base commit's."""
    device = options.device or available()
    reason = why_not(device)
    if reason:
        return not_run(SPEC, reason, ())
    ops = options.named_ops
    rows = [row for row in (all_rows() if options.all_rows else quick_rows()) if row.op in ops]
    if not rows:
        return not_run(SPEC, f"no rows are known for {', '.join(ops) or 'any op: the series names none'}", ())
    return count_on_host(context, rows) if device == HOST else measure_on(device, context, rows)
