"""A change taken apart into the named things it brings, each beside what a tree has in its place.

Whether a tree carries *our* change after review, or upstream's own, cannot be told by file or by dispatch key: both
answer for the same op. It can be told by the names (functions, types, kernels, tests) and by how alike the things
behind them are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from patchstack.edits import Edit
from patchstack.planning.memo import remembered_value
from patchstack.tree.git import Tree
from patchstack.tree.pieces import Piece, piece_diff, similarity

LANDED = 0.6
"""From this likeness on, a tree that answers for the op carries our change, with edits; below, one of its own."""

RENAMED = 0.8
"""From this likeness on, a thing of another name and the same kind is ours under a new name."""


@dataclass(frozen=True)
class PieceMatch:
    """One named thing of a change, or one that only the tree has and that the change replaces.

    Attributes:
        ours: as the series has it; ``None`` for what only goes.
        theirs: as the tree has it; ``None`` where it has nothing of that name or likeness.
        similarity: how alike the two are, 0 to 1.
    """

    ours: Piece | None
    theirs: Piece | None
    similarity: float

    @property
    def piece(self) -> Piece:
        """The one that there is; ours where there are both."""
        found = self.ours or self.theirs
        assert found is not None
        return found

    @property
    def verdict(self) -> str:
        """``missing``, ``same``, ``renamed``, ``differs`` or ``only in the tree``."""
        if self.ours is None:
            return "only in the tree"
        if self.theirs is None:
            return "missing"
        if self.ours.name != self.theirs.name:
            return "renamed"
        return "same" if self.similarity == 1 else "differs"

    @property
    def diff(self) -> list[str]:
        """From the tree's text to ours, as a unified diff; empty where the code is the same or the tree has none."""
        return [] if self.verdict in ("same", "missing") else piece_diff(self.theirs, self.ours)


def compare(edits: Iterable[Edit], tree: Tree) -> tuple[PieceMatch, ...]:
    """Everything that the edits bring under a name, beside what the tree has."""
    return tuple(part for edit in edits for part in _remembered_parts(edit, tree))


def _remembered_parts(edit: Edit, tree: Tree) -> tuple[PieceMatch, ...]:
    entry = None if edit.path in tree.replaced else tree.entry(edit.path)
    data = tree.read(edit.path) if entry is None or entry.is_file else None

    def computed() -> tuple[PieceMatch, ...]:
        return tuple(_parts(edit.introduces(), edit.counterparts(tree) if data is not None else ()))

    question = f"parts of {edit!r} {'there' if data is not None else 'without its file'}"
    return remembered_value(question, data or b"", computed, _encoded, _decoded)


def _encoded(parts: tuple[PieceMatch, ...]) -> list[Any]:
    def piece(found: Piece | None) -> list[Any] | None:
        return None if found is None else [found.path, found.kind, found.name, found.text.decode("latin-1"), found.line]

    return [[piece(part.ours), piece(part.theirs), part.similarity] for part in parts]


def _decoded(stored: list[Any]) -> tuple[PieceMatch, ...]:
    def piece(found: list[Any] | None) -> Piece | None:
        if found is None:
            return None
        path, kind, name, text, line = found
        return Piece(path, kind, name, text.encode("latin-1"), line)

    return tuple(PieceMatch(piece(ours), piece(theirs), similarity_) for ours, theirs, similarity_ in stored)


def likeness(parts: Sequence[PieceMatch]) -> float:
    """How much of a change the tree has: the parts' likeness, weighed by their length; what is missing counts 0."""
    weighed = [(len(part.ours.tokens), part.similarity) for part in parts if part.ours is not None]
    total = sum(weight for weight, _ in weighed)
    return sum(weight * value for weight, value in weighed) / total if total else 0.0


def only_theirs(replaced: Iterable[Piece], parts: Sequence[PieceMatch]) -> tuple[PieceMatch, ...]:
    """What is replaced and stands beside none of our parts."""
    known = {(p.theirs.path, p.theirs.kind, p.theirs.name) for p in parts if p.theirs is not None}
    return tuple(
        PieceMatch(None, piece, 0.0) for piece in replaced if (piece.path, piece.kind, piece.name) not in known
    )


def _parts(brought: Sequence[Piece], found: Sequence[Piece]) -> Iterable[PieceMatch]:
    by_name: dict[str, Piece] = {}
    for piece in found:
        by_name.setdefault(piece.name, piece)
    names = {piece.name for piece in brought}
    others = [piece for piece in found if piece.name not in names]
    for piece in brought:
        same_kind = next((p for p in found if (p.kind, p.name) == (piece.kind, piece.name)), by_name.get(piece.name))
        theirs = same_kind or _renamed(piece, others)
        yield PieceMatch(piece, theirs, similarity(piece, theirs) if theirs else 0.0)


def _renamed(piece: Piece, others: Sequence[Piece]) -> Piece | None:
    candidates = [(similarity(piece, other), at) for at, other in enumerate(others) if other.kind == piece.kind]
    best, at = max(candidates, default=(0.0, -1))
    return others[at] if best >= RENAMED else None
