"""What a tree has or has not: signs that upstream carries a change, and conditions of changes and texts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class UpstreamMarker:
    """One thing that a tree has or has not: a sign that upstream carries a change, or a condition of one.

    Attributes:
        kind: ``dispatch`` (an op has an entry for a dispatch key), ``declares`` (a header declares a function) or
            ``defines`` (a source file defines a name).
        path: file of the tree that is looked at.
        name: the op, declared function or defined name.
        key: the dispatch key, for ``dispatch``.
    """

    kind: str
    path: str
    name: str
    key: str = ""

    def __str__(self) -> str:
        if self.kind == "dispatch":
            return f"{self.name} has an entry for {self.key}"
        return f"{self.path.rsplit('/', 1)[-1]} {self.kind} {self.name}"


@dataclass(frozen=True)
class Applicability:
    """What a tree must have for a change to be for trees like it.

    Attributes:
        marker: what must hold on the tree that the series is put on, before any change of it.
        reason: why the change is for such trees only.
    """

    marker: UpstreamMarker
    reason: str

    @property
    def path(self) -> str:
        """File of the tree that is looked at."""
        return self.marker.path


def in_words(conditions: Iterable[Applicability]) -> str:
    """The conditions as a clause, those with one reason together."""
    by_reason: dict[str, list[str]] = {}
    for condition in conditions:
        by_reason.setdefault(condition.reason, []).append(str(condition.marker))
    return " and ".join(f"{' and '.join(markers)} ({reason})" for reason, markers in by_reason.items())
