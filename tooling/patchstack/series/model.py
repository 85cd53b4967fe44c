"""A series in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from patchstack.edits.conditions import Applicability, UpstreamMarker
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
        owners: id of a change to the name of the series that it is of, where several are stacked.
    """

    name: str
    manifest: Path
    overlay: Overlay
    changes: tuple[Change, ...]
    owners: Mapping[str, str] = field(default_factory=dict)

    def owner(self, change: str) -> str:
        """The name of the series that a change is of."""
        return self.owners.get(change, self.name)

    @property
    def names(self) -> frozenset[str]:
        """The name, or those of the series that are stacked."""
        return frozenset(self.owners.values()) or frozenset({self.name})

    @property
    def ops(self) -> tuple[str, ...]:
        """All operators of the series, each once, in order."""
        return tuple(dict.fromkeys(op for change in self.changes for op in change.ops))
