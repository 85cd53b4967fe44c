"""What a worker process does for the gates that execute: load the stand-in device once, run scenarios on it."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import torch

from stackproof.engines.standin.build import DeviceBuild
from stackproof.engines.standin.device import StandinDevice
from stackproof.engines.standin.trace import Trace
from stackproof.launches import Launches
from stackproof.model import Finding
from stackproof.ops.scenarios import HostCase, HostProof, Scenario, host_proof_for

# The device lacks something that a host file asks for.
NOT_LOADED = "not-loaded"


@dataclass(frozen=True)
class Ran:
    """What came of a scenario.

    Attributes:
        cases: one for each case that was reached.
        findings: what the device noticed, and what went wrong outside any case.
        launches: how many kernels were launched.
        seconds: wall time in the worker.
        counts: launches by kernel, calls by op.
    """

    cases: tuple[HostCase, ...]
    findings: tuple[Finding, ...]
    launches: int
    seconds: float
    counts: Launches = field(default_factory=Launches)


@dataclass(frozen=True)
class ScenarioRunner:
    """The callable that the pool runs.

    Attributes:
        build: the device of the workers.
        proof_of: what an op's scenarios are run by; picklable.
    """

    build: DeviceBuild
    proof_of: Callable[[str], HostProof | None] = host_proof_for

    def __call__(self, scenario: Scenario) -> Ran:
        """Run one scenario; an exception becomes a finding."""
        started = time.monotonic()
        torch.set_num_threads(1)
        cases: tuple[HostCase, ...] = ()
        findings: list[Finding] = []
        try:
            device = device_of(self.build)
        except OSError as error:
            return Ran((), (Finding(str(error), rule=NOT_LOADED),), 0, time.monotonic() - started)
        launched = len(device.launches)
        device.trace = Trace()
        device.log.take()
        try:
            proof = self.proof_of(scenario.op)
            assert proof is not None
            cases = tuple(proof.run(scenario, device))
        except Exception as error:  # whatever a call raises is a finding, the other scenarios still run
            details = {"traceback": traceback.format_exc()}
            message = f"{scenario.label}: {type(error).__name__}: {str(error).partition(chr(10))[0]}"
            findings.append(Finding(message, rule="raised", details=details))
        findings += device.take_findings()
        launches = len(device.launches) - launched
        return Ran(cases, tuple(findings), launches, time.monotonic() - started, device.log.take())


@cache
def device_of(build: DeviceBuild) -> StandinDevice:
    """The device of this process."""
    return StandinDevice(build)
