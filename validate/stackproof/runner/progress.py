"""What a person sees while gates run: one changing line on a terminal, nothing anywhere else."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from stackproof.model import GateResult, Verdict
from stackproof.runner.sequence import Observer

_STYLES = {Verdict.PASSED: "green", Verdict.FAILED: "red", Verdict.NOT_RUN: "yellow"}


class Quiet:
    """An observer for a pipe, a log or CI, where a changing line would be noise."""

    def gate_started(self, gate: str, number: int, total: int, title: str) -> None:
        """Say nothing."""

    def gate_progressed(self, done: int, total: int, what: str) -> None:
        """Say nothing."""

    def gate_ended(self, result: GateResult) -> None:
        """Say nothing."""


class OnTerminal:
    """An observer that keeps a bar for the gate that runs, and leaves a line for each that has ended."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task: TaskID | None = None

    def gate_started(self, gate: str, number: int, total: int, title: str) -> None:
        """Begin a bar."""
        name = f"{number}/{total} {gate}" + (f" ({title})" if title else "")
        self._task = self._progress.add_task(name, total=None, what="")

    def gate_progressed(self, done: int, total: int, what: str) -> None:
        """Move the bar."""
        if self._task is not None:
            self._progress.update(self._task, completed=done, total=total or None, what=what[:60])

    def gate_ended(self, result: GateResult) -> None:
        """Replace the bar by a line."""
        if self._task is not None:
            self._progress.remove_task(self._task)
            self._task = None
        verdict = (result.verdict.value, _STYLES[result.verdict])
        line = Text.assemble(f"{result.name:<14} ", verdict, f" {result.seconds:.1f} s")
        self._progress.console.print(line, soft_wrap=True)


@contextlib.contextmanager
def watcher() -> Iterator[Observer]:
    """The observer that fits standard error: a terminal with a person, or not."""
    if not sys.stderr.isatty() or os.environ.get("CI"):
        yield Quiet()
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[what]}", markup=False),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield OnTerminal(progress)
