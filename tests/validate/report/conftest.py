"""One run that has everything a report can have to show."""

from __future__ import annotations

import datetime
import math

import pytest

from stackproof.model import Finding, GateResult, Verdict
from stackproof.report import CommitReport, RunReport

ROWS = [
    {
        "op": "some_op",
        "run_mode": run_mode,
        "mode": mode,
        "dtype": dtype,
        "cases": 10,
        "failed": int(mode == "worst"),
        "errors": {"grad_input": 0.5, "grad_grid": math.inf if mode == "worst" else 0.0},
        "cpu_errors": {"grad_input": 0.25} if dtype == "float32" else {},
    }
    for run_mode in ("plain", "detectors")
    for mode in ("best", "worst")
    for dtype in ("float32", "float16")
]

NUMERICAL = GateResult(
    "metal-run",
    Verdict.FAILED,
    cases=80,
    failed=2,
    worst_error=math.inf,
    seconds=12.25,
    findings=[
        Finding("only a remark", rule="remark", fails=False),
        Finding("off by <130> & \x07 more", "kernels/Some.metal", 12, "wrong-value", details={"case": math.nan}),
        Finding("a race", "kernels/Some.metal", 0, "race"),
    ],
    details={"table": ROWS, "text": "long\ntable", "error_unit": "epsilons", "peak_bytes": 1234},
    limits=["Apple's compiler was not run."],
)
PASSED = GateResult("fc-window", Verdict.PASSED, cases=7, seconds=1.0, details={"table": ["one line", "<another>"]})
NOT_RUN = GateResult("build", Verdict.NOT_RUN, reason="needs macOS & Xcode", limits=["nothing was built"])
BROKEN = GateResult("lint", Verdict.FAILED, cases=1, failed=1, reason="malformed")


@pytest.fixture
def report() -> RunReport:
    """A stack of two commits, the first of which is fine; the run was interrupted."""
    commits = [
        CommitReport("1" * 40, "0" * 40, "[MPS] First & foremost", [PASSED, NOT_RUN], "b" * 40, "a" * 40),
        CommitReport("2" * 40, "1" * 40, "[MPS] Second", [NUMERICAL, PASSED, NOT_RUN, BROKEN], "c" * 40, "b" * 40),
    ]
    return RunReport(
        "/some/where",
        "0" * 40,
        "2" * 40,
        [NUMERICAL, PASSED, NOT_RUN, BROKEN],
        commits,
        partial=True,
        started=datetime.datetime(2026, 11, 30, 8, 0, 1, 500, tzinfo=datetime.timezone.utc),
        seconds=14.5,
        environment={"torch": "2.13.0", "platform": "<any>"},
        base_tree="a" * 40,
        head_tree="c" * 40,
        command="validate-stack",
    )
