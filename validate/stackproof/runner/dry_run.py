"""``--dry-run``: what gates would run, without running it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from stackproof.gates.spec import Spec
from stackproof.model import GateContext
from stackproof.packages import missing, not_run_reason
from stackproof.runner.target import Target


@runtime_checkable
class PlannedCommands(Protocol):
    """A gate that runs commands which a person could type."""

    def plan(self, context: GateContext, options: Any, /) -> Sequence[str]:
        """Lines to print: the exact commands, and what has to be known about them as ``#`` lines."""
        ...


def plan_lines(
    specs: Sequence[Spec], target: Target, cache: Path, jobs: int, given: Mapping[str, Any]
) -> Iterator[str]:
    """The plan of each gate in turn; nothing is run and nothing is written.

    Args:
        specs: the gates that were asked for.
        target: the range that would be judged.
        cache: folder that the plan's paths are in.
        jobs: processes at once.
        given: what the command line gives for their options, by name.
    """
    context = GateContext(target.repository, target.base, target.head, cache, jobs=jobs)
    for spec in specs:
        yield f"# {spec.name}: {spec.summary}"
        if lacking := missing(spec.needs):
            yield f"# {not_run_reason(lacking)}"
            continue
        gate = spec.load()
        if isinstance(gate, PlannedCommands):
            yield from gate.plan(context, spec.options_of(given))
        else:
            yield "# runs inside validate-stack, no commands of its own"
