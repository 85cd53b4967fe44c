"""Gates that report launches, as those that execute kernels do; processes import their class from here."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from stackproof.gates.spec import Spec
from stackproof.launches import DETAIL, NOT_COUNTED, Launches, looked_at
from stackproof.model import Gate, GateContext, GateResult, Verdict


@dataclass(frozen=True)
class Launching(Spec):
    """A gate that passes with these launches, named as one that executes kernels; without any it is not run."""

    details: dict[str, Any] = field(default_factory=dict)

    def load(self) -> Gate:
        return self

    def run(self, context: GateContext, options: Any) -> GateResult:
        if not self.details:
            return GateResult(self.name, Verdict.NOT_RUN, reason="no proof exists for tint", limits=["the moon"])
        return GateResult(self.name, Verdict.PASSED, cases=1, details=self.details)


def _counted(*kernels: str) -> dict[str, Any]:
    launches = Launches(Counter({("tint", kernel): 2 for kernel in kernels}))
    return {DETAIL: looked_at(launches, ["tint_float", "tint_half"], ["tint"])}


def _gate(name: str, details: dict[str, Any]) -> Launching:
    return Launching(__name__, name, "fake", details=details)


NONE, NOTHING = _gate("metal-run", {}), _gate("host-run", _counted())
HALF, ALL = _gate("host-run", _counted("tint_half")), _gate("test-mps", _counted("tint_float", "tint_half"))
REAL = _gate("test-mps", {DETAIL: NOT_COUNTED})
