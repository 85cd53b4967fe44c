"""Edits that several changes of a series make: a helper that two of them use, each ready to bring it.

Whichever change comes first brings it, here or upstream. For the others it is there already, and that says nothing
about whether *they* are.
"""

from __future__ import annotations

import dataclasses

from patchstack.edits import Edit, Outcome, Status
from patchstack.series import Change, Series


class SharedEdits:
    """The edits of a series by what they leave in a tree."""

    def __init__(self, series: Series) -> None:
        self._makers: dict[tuple[str, ...], list[str]] = {}
        self._settled: set[str] = set()
        for change in series.changes:
            for edit in change.edits:
                self._makers.setdefault(edit.result, []).append(change.id)

    def settle(self, change: Change) -> None:
        """Note that the tree has a change by now: it becomes a commit, or upstream has it."""
        self._settled.add(change.id)

    def judged(self, change: Change, edit: Edit, outcome: Outcome) -> Outcome:
        """The outcome of an edit of a change; where another change has it too, being there is neutral.

        An entry that is not there to be removed is as good where a change below took it away, and suspect otherwise.
        """
        others = [name for name in self._makers.get(edit.result, ()) if name != change.id]
        if outcome.status is not Status.SATISFIED or outcome.neutral or not others:
            return outcome
        if outcome.conflict is not None and not self._settled.intersection(others):
            return outcome
        return dataclasses.replace(outcome, neutral=True, conflict=None, note=f"{others[0]} has it too")
