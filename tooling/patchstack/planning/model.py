"""What a plan says."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from patchstack.edits import Conflict, Edit, Outcome
from patchstack.planning.lines import AS_THEY_ARE, Lineage
from patchstack.planning.parts import PieceMatch, likeness, only_theirs
from patchstack.series import Applicability, Change, Series
from patchstack.tree.git import GitCommitHash, Tree


class ChangeState(enum.Enum):
    """How much of a change a tree already has, and what follows from it."""

    ABSENT = "absent"
    """Nothing of it is there: the change becomes a commit."""

    IDENTICAL = "identical"
    """Every edit is there as the series has it: no commit."""

    PRESENT = "present upstream"
    """All of the manifest's upstream markers hold, in words of upstream's own: no commit."""

    LANDED = "landed with edits"
    """The markers hold, and what is there is our change with a reviewer's edits: no commit; the report has the diff."""

    DIFFERENT = "present but different"
    """Something of the same name is there and is not ours (another function behind the dispatch key, say): stop."""

    PARTIAL = "partial"
    """Some of it is there and some is not: stop, and say which."""

    NOT_APPLICABLE = "not applicable"
    """The tree is none of those that the manifest says the change is for: no commit."""

    @property
    def is_carried(self) -> bool:
        """Whether the tree has the change, in whatever words, so that nothing is left to do."""
        return self in (ChangeState.IDENTICAL, ChangeState.PRESENT, ChangeState.LANDED)

    @property
    def stops(self) -> bool:
        """Whether a person has to decide how to go on."""
        return self in (ChangeState.DIFFERENT, ChangeState.PARTIAL)


@dataclass(frozen=True)
class EditPlan:
    """One edit and what it would do.

    Attributes:
        edit: the edit.
        outcome: what planning it came to.
        before: content of the file before the edit, ``None`` for a new file; kept only for edits that apply.
        lines: where the lines of ``before`` come from.
    """

    edit: Edit
    outcome: Outcome
    before: bytes | None = None
    lines: Lineage = AS_THEY_ARE

    @property
    def does(self) -> str:
        """What the edit does, in a few words; of several places, at the one that was taken."""
        return self.edit.at_place(self.outcome.anchor).describe()


@dataclass(frozen=True)
class ChangePlan:
    """One change and what it would do.

    Attributes:
        change: the change.
        state: how much of it the tree already has.
        edits: in the order of the manifest.
        markers: which upstream markers hold, by their words.
        tree: the tree with this change (and those below it) in place, as far as its edits apply.
        parts: the named things it brings beside what the tree has; empty where it has nothing or all of it.
        replaces: whether what the tree has in its place is replaced, because the user said so.
        unmet: the conditions that make it not applicable; it has no edits then.
    """

    change: Change
    state: ChangeState
    edits: tuple[EditPlan, ...]
    markers: Mapping[str, bool]
    tree: Tree
    parts: tuple[PieceMatch, ...] = ()
    replaces: bool = False
    unmet: tuple[Applicability, ...] = ()

    @property
    def becomes_commit(self) -> bool:
        if self.replaces:
            return bool(self.files) and not self.conflicts
        return self.state is ChangeState.ABSENT and not self.conflicts

    @property
    def replaced(self) -> tuple[PieceMatch, ...]:
        """What goes from the tree, beside what comes for it."""
        gone = [piece for plan in self.edits for piece in plan.outcome.replaced]
        there = {(piece.path, piece.kind, piece.name) for piece in gone}
        ours = [p for p in self.parts if p.theirs and (p.theirs.path, p.theirs.kind, p.theirs.name) in there]
        return (*ours, *only_theirs(gone, self.parts))

    @property
    def likeness(self) -> float:
        """How much of the change the tree has, 0 to 1; see :func:`patchstack.planning.parts.likeness`."""
        return likeness(self.parts)

    @property
    def files(self) -> Mapping[str, bytes]:
        """Path to new content, for the files this change touches."""
        return {plan.edit.path: plan.outcome.after for plan in self.edits if plan.outcome.after is not None}

    @property
    def conflicts(self) -> tuple[Conflict, ...]:
        """Everything that stops this change; empty where upstream already carries it and keeps its own."""
        if self.state.is_carried and not self.replaces:
            return ()
        return tuple(plan.outcome.conflict for plan in self.edits if plan.outcome.conflict is not None)


@dataclass(frozen=True)
class StackPlan:
    """The whole stack.

    Attributes:
        series: the series.
        onto: the commit the stack is built on.
        changes: bottom of the stack first.
        seconds: wall time of the parts of planning by name.
    """

    series: Series
    onto: GitCommitHash
    changes: tuple[ChangePlan, ...]
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def commits(self) -> tuple[ChangePlan, ...]:
        """The changes that become commits."""
        return tuple(change for change in self.changes if change.becomes_commit)

    @property
    def blocked(self) -> tuple[ChangePlan, ...]:
        """The changes that stop the run."""
        return tuple(c for c in self.changes if c.conflicts or (c.state.stops and not c.replaces))

    def conflicts(self) -> Iterator[tuple[ChangePlan, Conflict]]:
        """All conflicts of the whole series."""
        for change in self.changes:
            for conflict in change.conflicts:
                yield change, conflict
