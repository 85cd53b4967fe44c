"""Scenarios that take their processes down: each crash costs a part, and too many cost the rest of the scenario."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from stackproof.engines.pool.tasks import Died
from stackproof.engines.standin.build import DeviceBuild
from stackproof.gates.common.standin import outcomes
from stackproof.gates.common.standin.worker import Ran
from stackproof.ops.scenarios import Scenario

SCENARIO = Scenario("op", "values")
DONE = Ran((), (), 0, 0.0)


def run(monkeypatch: pytest.MonkeyPatch, crashes: int) -> tuple[outcomes.Outcome, int]:
    """What comes of a scenario whose first parts die, and how often it was started."""
    started = []

    def run_tasks(tasks: Sequence[Scenario], work: Any, **named: Any) -> Iterator[tuple[Scenario, Ran | Died]]:
        for task in tasks:
            started.append(task)
            number = len(task.without)
            words = json.dumps({"part": f"part {number}", "kernel": "k"})
            yield task, Died("killed by SIGSEGV", words) if number < crashes else DONE

    monkeypatch.setattr(outcomes, "run_tasks", run_tasks)
    build = DeviceBuild.__new__(DeviceBuild)
    ((_, outcome),) = outcomes.run_scenarios([SCENARIO], build, 1, proof_of=lambda op: None)
    return outcome, len(started)


def test_a_part_that_crashes_is_left_out_and_the_others_run(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome, started = run(monkeypatch, 2)
    assert (outcome.ran, started) == (DONE, 3)
    assert [str(crash) for crash in outcome.crashes] == [
        "part 0: killed by SIGSEGV in k",
        "part 1: killed by SIGSEGV in k",
    ]


def test_a_scenario_of_which_every_part_crashes_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome, started = run(monkeypatch, 1000)
    assert (outcome.ran, started) == (None, 4)
    assert str(outcome.crashes[-1]) == "given up after 4 crashes, its other parts were not run"
    assert len(outcome.crashes) == 5
