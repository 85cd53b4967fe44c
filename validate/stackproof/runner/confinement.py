"""What a gate's result says about the processes that ran code of the tree for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from patchstack.confine import Confined
from stackproof.model import Finding, GateResult

RULE = "confined"


def with_confinement(result: GateResult, ran: Sequence[Confined]) -> GateResult:
    """The result with a note for each kind of process: which measures held, and which did not."""
    notes = [
        Finding(one.sentence, rule=RULE, fails=False, details={"what": one.what, "held": dict(one.held)}) for one in ran
    ]
    return replace(result, findings=[*result.findings, *notes]) if notes else result
