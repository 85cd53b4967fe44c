"""The vocabulary of every gate: what it is given, what it finds, and the three verdicts."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from patchstack.tree.git import GitCommitHash, Repository


class Verdict(enum.Enum):
    """What a gate says. "Not run" is neither of the other two and is never folded into one of them."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Finding:
    """One thing a gate has to say about one place.

    Attributes:
        message: one sentence.
        path: file in the tree, empty when the finding is not about a file.
        line: 1-based line in ``path``, 0 when unknown.
        rule: short stable name of the rule or detector (``race``, ``missing-host-name``, ...).
        fails: whether this finding alone makes the gate fail; other findings are information.
        details: more facts, JSON-serialisable.
    """

    message: str
    path: str = ""
    line: int = 0
    rule: str = ""
    fails: bool = True
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class GateResult:
    """What one gate found.

    Attributes:
        name: name of the gate.
        verdict: see :class:`Verdict`; ``NOT_RUN`` always comes with a ``reason``.
        cases: how many cases were judged; 0 when not run.
        failed: how many of them failed.
        worst_error: largest error of a numerical gate in units stated by ``details["error_unit"]``; ``None`` elsewhere.
        seconds: wall time of the gate.
        reason: why the gate was not run, with the command to change that.
        findings: in the order of path and line.
        details: tables and figures for the report, JSON-serialisable.
        limits: what this result does not show, one sentence each (said next to the result in every report).
    """

    name: str
    verdict: Verdict
    cases: int = 0
    failed: int = 0
    worst_error: float | None = None
    seconds: float = 0.0
    reason: str = ""
    findings: Sequence[Finding] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    limits: Sequence[str] = ()

    @property
    def shown_limits(self) -> Sequence[str]:
        """The limits of what was run: a gate that was not run shows nothing that could have limits."""
        return () if self.verdict is Verdict.NOT_RUN else self.limits

    def __post_init__(self) -> None:
        if self.verdict is Verdict.NOT_RUN and not self.reason:
            raise ValueError(f"gate {self.name}: not run, but no reason given")
        if self.verdict is Verdict.PASSED and (self.failed or not self.cases):
            raise ValueError(f"gate {self.name}: passed needs at least one case and no failure")


@dataclass(frozen=True)
class GateContext:
    """What a gate is asked to judge.

    Attributes:
        repository: the repository that holds both commits.
        base: the commit the stack is built on.
        head: the commit to judge.
        cache: folder for compiled objects and the like, outside the repository; may be emptied at any time.
        jobs: how many processes the gate may run at once.
        progress: called with (done, total, what); does nothing when nobody looks.
    """

    repository: Repository
    base: GitCommitHash
    head: GitCommitHash
    cache: Path
    jobs: int = 2
    progress: Callable[[int, int, str], None] = lambda done, total, what: None


class Gate(Protocol):
    """One kind of proof: the module ``gate.py`` of its folder."""

    def run(self, context: GateContext, options: Any, /) -> GateResult:
        """Judge ``context.head`` against ``context.base``; never raises for a bad tree, that is a finding.

        Args:
            context: what to judge.
            options: of the type that the gate's spec names.
        """
        ...
