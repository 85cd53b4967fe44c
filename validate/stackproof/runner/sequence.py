"""All gates on all ranges, in order, until the end or until the user has enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from patchstack.tree.git import GitCommitHash
from stackproof.gates.spec import Spec
from stackproof.model import GateResult, Verdict
from stackproof.runner.gate_process import GateProcess
from stackproof.runner.messages import Job


@dataclass(frozen=True)
class Range:
    """What is judged in one go.

    Attributes:
        base: the commit to compare with.
        head: the commit to judge.
        title: of the commit, empty for the whole stack.
        given: what there is for the options of all gates, by name.
    """

    base: GitCommitHash
    head: GitCommitHash
    title: str = ""
    given: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Stage:
    """Where and how all ranges are judged.

    Attributes:
        repository: folder to open.
        specs: the gates, in order.
        cache: folder for heavy things.
        jobs: processes at once.
        tree_code: whether code of the tree may be run.
    """

    repository: Path
    specs: Sequence[Spec]
    cache: Path
    jobs: int
    tree_code: bool = True


class Observer(Protocol):
    """Somebody who watches."""

    def gate_started(self, gate: str, number: int, total: int, title: str) -> None:
        """A gate begins: its name, its number among all, and the commit's title."""
        ...

    def gate_progressed(self, done: int, total: int, what: str) -> None:
        """The gate that runs has got further; ``total`` is 0 where it does not know."""
        ...

    def gate_ended(self, result: GateResult) -> None:
        """The gate that ran has a result."""
        ...


@dataclass(frozen=True)
class Outcome:
    """What came of all ranges.

    Attributes:
        results: one list for each range, each with one result a gate.
        interrupted: the user stopped the run; what was not reached is "not run".
    """

    results: Sequence[Sequence[GateResult]]
    interrupted: bool


def run_stages(stage: Stage, ranges: Sequence[Range], observer: Observer) -> Outcome:
    """Run every gate on every range.

    An interrupt (Ctrl-C) ends the gate that runs, with all its processes, and is not raised again.
    """
    results: list[list[GateResult]] = [[] for _ in ranges]
    total = len(ranges) * len(stage.specs)
    done: dict[tuple[str, GitCommitHash, GitCommitHash], GateResult] = {}
    interrupted = False
    try:
        with GateProcess(stage.cache / "reports") as process:
            for place, range_ in enumerate(ranges):
                for spec in stage.specs:
                    # A stack of one commit is that commit.
                    key = (spec.name, range_.base, range_.head)
                    observer.gate_started(spec.name, sum(map(len, results)) + 1, total, range_.title)
                    if key not in done:
                        done[key] = process.run(_job(stage, spec, range_), observer.gate_progressed)
                    results[place].append(done[key])
                    observer.gate_ended(done[key])
    except KeyboardInterrupt:
        interrupted = True
        _fill(results, stage.specs)
    return Outcome(results, interrupted)


def _job(stage: Stage, spec: Spec, range_: Range) -> Job:
    options = spec.options_of(range_.given)
    commits = (range_.base, range_.head)
    return Job(spec, stage.repository, *commits, stage.cache, stage.jobs, options, stage.tree_code)


def _fill(results: list[list[GateResult]], specs: Sequence[Spec]) -> None:
    """Say of every gate that has no result that it was not run, and why."""
    reason = "interrupted while it ran"
    for have in results:
        for spec in specs[len(have) :]:
            have.append(GateResult(spec.name, Verdict.NOT_RUN, reason=reason))
            reason = "the run was interrupted before it began"
