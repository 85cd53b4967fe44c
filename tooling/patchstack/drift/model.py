"""What a search for drift found."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from patchstack.drift.condition import STATE, Condition, Facet
from patchstack.drift.line import Line, UpstreamCommit
from patchstack.errors import ExitCode
from patchstack.series import Change, Series


class When(enum.Enum):
    """What is known about when a part of a condition began."""

    COMMIT = "with a commit"
    """It began with a commit that was found."""

    BEFORE = "before --since"
    """It was so at ``--since`` already."""

    BETWEEN = "between --since and --onto"
    """It began on the way, and was judged only at the ends."""


class Verdict(enum.Enum):
    """What became of a change."""

    UNCHANGED = "unchanged"
    CHANGED = "changed"
    """Something about it is different that needs nobody (a file is no longer the one the edit was written against)."""

    MENDED = "mended"
    """It was blocked at ``--since`` and is not any more."""

    STANDING = "blocked before --since"
    """It is blocked, and was so from the beginning."""

    DRIFTED = "drifted"
    """It needs a person, since a commit on the way."""


@dataclass(frozen=True)
class DriftPart:
    """One facet that is not what it was, or that has been wrong all along.

    Attributes:
        before: its value at ``--since``; empty where there was nothing to judge.
        after: the facet as of the commit that made it what it is.
        needs_person: whether somebody has to act or to look.
    """

    before: str
    after: Facet
    needs_person: bool

    @property
    def words(self) -> str:
        """One clause for a person."""
        if self.after.name != STATE:
            return self.after.detail
        reason = f" ({self.after.detail})" if self.after.detail else ""
        change = self.after.value if self.before == self.after.value else f"{self.before} -> {self.after.value}"
        return f"state {change}{reason}"


@dataclass(frozen=True)
class Turn:
    """A point in history at which a change got some of its present condition.

    Attributes:
        when: what is known about the point.
        commit: the commit, for ``When.COMMIT``; its predecessor on the line was looked at and was different.
        exact: whether everything after it was looked at; where not, the condition may have gone and come back since.
        parts: what it made different.
        fingerprint: the same for as long as series, change, commit and condition are, whatever ``--onto`` is.
    """

    when: When
    commit: UpstreamCommit | None
    exact: bool
    parts: tuple[DriftPart, ...]
    fingerprint: str

    @property
    def needs_person(self) -> bool:
        return any(part.needs_person for part in self.parts)

    @property
    def telling(self) -> tuple[DriftPart, ...]:
        """The parts that need a person; all where none does."""
        return tuple(part for part in self.parts if part.needs_person) or self.parts


@dataclass(frozen=True)
class ChangeDrift:
    """One change at both ends, and what happened in between.

    Attributes:
        change: the change.
        since: its condition at the beginning.
        onto: its condition at the end.
        turns: oldest first; what is older than the line comes first.
    """

    change: Change
    since: Condition
    onto: Condition
    turns: tuple[Turn, ...]

    @property
    def findings(self) -> tuple[Turn, ...]:
        """The turns that need a person."""
        return tuple(turn for turn in self.turns if turn.needs_person)

    @property
    def verdict(self) -> Verdict:
        if any(turn.when is not When.BEFORE for turn in self.findings):
            return Verdict.DRIFTED
        if self.findings:
            return Verdict.STANDING
        if self.since.blocks and not self.onto.blocks:
            return Verdict.MENDED
        return Verdict.CHANGED if self.turns else Verdict.UNCHANGED


@dataclass(frozen=True)
class Drift:
    """Everything one search found.

    Attributes:
        series: the series.
        line: the stretch of history that was searched.
        changes: bottom of the stack first.
        visited: how many trees were planned on.
        is_refused: whether both ends are trees that the series is refused on as a whole.
        notes: sentences about what could not be told.
    """

    series: Series
    line: Line
    changes: tuple[ChangeDrift, ...]
    visited: int
    is_refused: bool = False
    notes: tuple[str, ...] = field(default=())

    @property
    def findings(self) -> tuple[tuple[ChangeDrift, Turn], ...]:
        """Everything that needs a person, with the change it is about."""
        return tuple((change, turn) for change in self.changes for turn in change.findings)

    @property
    def exit_code(self) -> ExitCode:
        if self.is_refused:
            return ExitCode.TREE
        return ExitCode.CONFLICT if self.findings else ExitCode.OK
