"""A series in memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from patchstack.manifest.overlay import Overlay
from patchstack.messages.model import CoAuthor

if TYPE_CHECKING:
    from patchstack.edits.model import Edit


@dataclass(frozen=True)
class Requirement:
    """Something a tree must have before a change can be put on it.

    Attributes:
        path: a file of the tree.
        defines: a name that must be defined in it; empty when the file alone is enough.
        reason: what the change needs it for.
    """

    path: str
    defines: str
    reason: str


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


@dataclass(frozen=True)
class Change:
    """One commit of the stack.

    Attributes:
        id: stable name; the key by which ghstack trailers are carried over.
        title: first line of the commit message.
        body: the prose of the commit message, Markdown.
        ops: the operators the change touches, as in ``native_functions.yaml``.
        needs: ids of earlier changes this one builds on.
        requires: what the tree must have.
        upstream: signs that upstream already carries the change; all of them must hold.
        edits: in the order they are planned.
        line: line of the manifest, for messages.
        co_authors: who shares the credit.
        test_plan: commands for a reviewer, one a line.
        labels: labels for a new pull request, for ``ghstack submit --label``.
        cc: accounts to notify, without ``@``.
        only_where: conditions, all of which must hold on a tree; on others the change is left out.
    """

    id: str
    title: str
    body: str
    ops: tuple[str, ...]
    needs: tuple[str, ...]
    requires: tuple[Requirement, ...]
    upstream: tuple[UpstreamMarker, ...]
    edits: tuple[Edit, ...]
    line: int
    co_authors: tuple[CoAuthor, ...] = ()
    test_plan: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    cc: tuple[str, ...] = ()
    only_where: tuple[Applicability, ...] = ()


@dataclass(frozen=True)
class Series:
    """An ordered list of changes and the text that goes with it.

    Attributes:
        name: name of its folder.
        manifest: the manifest file.
        overlay: the text that lands.
        changes: bottom of the stack first.
    """

    name: str
    manifest: Path
    overlay: Overlay
    changes: tuple[Change, ...]

    @property
    def ops(self) -> tuple[str, ...]:
        """All operators of the series, each once, in order."""
        return tuple(dict.fromkeys(op for change in self.changes for op in change.ops))
