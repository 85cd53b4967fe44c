"""Gates that report launches, as those that execute kernels do; processes import them from here."""

from __future__ import annotations

from collections import Counter
from typing import Any

from stackproof.gates.spec import GateEntry
from stackproof.launches import DETAIL, NOT_COUNTED, Launches, looked_at
from stackproof.model import GateContext, GateResult, Verdict


class _Launching:
    """Passes with these launches, named as a gate that executes kernels."""

    summary = "fake"

    def __init__(self, name: str, details: dict[str, Any]) -> None:
        self.name = name
        self._details = details

    def run(self, context: GateContext) -> GateResult:
        return GateResult(self.name, Verdict.PASSED, cases=1, details=self._details)


class _NotRun(_Launching):
    def run(self, context: GateContext) -> GateResult:
        return GateResult(self.name, Verdict.NOT_RUN, reason="no proof exists for tint", limits=["the moon"])


def _counted(*kernels: str) -> dict[str, Any]:
    launches = Launches(Counter({("tint", kernel): 2 for kernel in kernels}))
    return {DETAIL: looked_at(launches, ["tint_float", "tint_half"], ["tint"])}


def none() -> object:
    return _NotRun("metal-run", {})


def nothing() -> object:
    return _Launching("host-run", _counted())


def half() -> object:
    return _Launching("host-run", _counted("tint_half"))


def all_of_them() -> object:
    return _Launching("test-mps", _counted("tint_float", "tint_half"))


def on_a_real_device() -> object:
    return _Launching("test-mps", {DETAIL: NOT_COUNTED})


def entry(maker: str, name: str) -> GateEntry:
    """The gate that a function above makes."""
    return GateEntry(name, "fake", f"launching_gates:{maker}")


NONE, NOTHING, HALF = entry("none", "metal-run"), entry("nothing", "host-run"), entry("half", "host-run")
ALL, REAL = entry("all_of_them", "test-mps"), entry("on_a_real_device", "test-mps")
