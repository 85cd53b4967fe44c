"""Runs scenarios to their end: a part of one that takes its process down costs that part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from stackproof.engines.pool.tasks import Died, run_tasks
from stackproof.engines.standin.build import DeviceBuild
from stackproof.engines.standin.trace import Doing, last_of
from stackproof.gates.common.standin.worker import Ran, ScenarioRunner
from stackproof.ops.scenarios import HostProof, Scenario, host_proof_for

TIMEOUT_S = 300.0
_CRASHES_TO_GIVE_UP = 4  # of one scenario: each costs the start of a process


@dataclass(frozen=True)
class Crash:
    """A process that a scenario took down.

    Attributes:
        reason: as the pool has it.
        doing: the part of the scenario, and the kernel that was launched last.
    """

    reason: str
    doing: Doing

    def __str__(self) -> str:
        part = f"{self.doing.part}: " if self.doing.part else ""
        return f"{part}{self.reason}" + (f" in {self.doing.kernel}" if self.doing.kernel else "")


_GIVEN_UP = Crash(f"given up after {_CRASHES_TO_GIVE_UP} crashes, its other parts were not run", Doing("", ""))


@dataclass(frozen=True)
class Outcome:
    """What came of a scenario.

    Attributes:
        ran: of the parts that did not take their process down; ``None`` where a scenario without parts did.
        crashes: of the others.
    """

    ran: Ran | None = None
    crashes: tuple[Crash, ...] = ()


def run_scenarios(
    scenarios: Sequence[Scenario],
    build: DeviceBuild,
    jobs: int,
    progress: Callable[[int, int, str], None] = lambda done, total, what: None,
    proof_of: Callable[[str], HostProof | None] = host_proof_for,
) -> Iterator[tuple[Scenario, Outcome]]:
    """Every scenario with its outcome, in the order of completion."""
    done = 0
    waiting = [(one, Outcome()) for one in scenarios]
    while waiting:
        before = {replace(one, without=_left_out(outcome)): (one, outcome) for one, outcome in waiting}
        waiting = []
        runner = ScenarioRunner(build, proof_of)
        for task, answer in run_tasks(list(before), runner, jobs=jobs, timeout=TIMEOUT_S):
            scenario, outcome = before[task]
            outcome = _with(outcome, answer)
            if isinstance(answer, Died) and outcome.crashes[-1].doing.part not in ("", *task.without):
                if len(outcome.crashes) < _CRASHES_TO_GIVE_UP:
                    waiting.append((scenario, outcome))
                    continue
                outcome = replace(outcome, crashes=(*outcome.crashes, _GIVEN_UP))
            done += 1
            yield scenario, outcome
            progress(done, len(scenarios), scenario.label)


def _left_out(outcome: Outcome) -> tuple[str, ...]:
    return tuple(crash.doing.part for crash in outcome.crashes)


def _with(outcome: Outcome, answer: Ran | Died) -> Outcome:
    if isinstance(answer, Died):
        return replace(outcome, crashes=(*outcome.crashes, Crash(answer.reason, last_of(answer))))
    return replace(outcome, ran=answer)
