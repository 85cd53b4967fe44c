"""The gate ``bench``: what the backward passes of the stack cost.

On the host, loads, stores, atomics and bytes are counted, beside the base commit's and beside the record. On a GPU the
same rows are timed, beside PyTorch's own kernel of that device in the same run.
"""

from __future__ import annotations

from stackproof.gates.bench.count_gate import count_on_host
from stackproof.gates.bench.devices import HOST, available, why_not
from stackproof.gates.bench.speed_gate import measure_on
from stackproof.model import GateContext, GateResult, Verdict
from stackproof.ops.grid_sampler.bench.rows import Row, all_rows, quick_rows
from stackproof.ops.selection import named_ops

NAME = "bench"


class BenchGate:
    """Implements :class:`stackproof.model.Gate`.

    Options: ``series`` or ``ops`` (whose rows are looked at), ``device`` (``host``, ``cuda`` or ``mps``; what the
    machine has by default), ``all_rows`` (true: the whole table rather than one row of each kind).
    """

    name = NAME
    summary = "what the backward passes cost: traffic counted on the host, or time beside PyTorch's own kernel on a GPU"

    def run(self, context: GateContext) -> GateResult:
        """Judge the head commit's kernels beside the base commit's."""
        device = context.options.get("device") or available()
        reason = why_not(device)
        if reason:
            return GateResult(NAME, Verdict.NOT_RUN, reason=reason)
        ops = named_ops(context.options)
        rows = _rows(ops, whole=bool(context.options.get("all_rows")))
        if not rows:
            reason = f"no rows are known for {', '.join(ops) or 'any op: the series names none'}"
            return GateResult(NAME, Verdict.NOT_RUN, reason=reason)
        return count_on_host(context, rows) if device == HOST else measure_on(device, context, rows)


def _rows(ops: tuple[str, ...], *, whole: bool) -> list[Row]:
    return [row for row in (all_rows() if whole else quick_rows()) if row.op in ops]
