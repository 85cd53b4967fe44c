"""Line numbers of the onto commit's files, for texts that earlier edits have moved.

An edit is planned on the text that the edits before it leave, so the lines that it finds are lines of that text. A
person looks into the file of the onto commit. So the origin of every line is carried along: its number there, or the
change that brought it.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Mapping, Sequence

from patchstack.edits import Conflict, Edit, Outcome, Spot
from patchstack.edits.create_file import CreateFile
from patchstack.edits.cxx_edit import CxxEdit
from patchstack.edits.python_fragment import PlacePythonFragment
from patchstack.planning.parts import PieceMatch
from patchstack.tree.pieces import Piece
from patchstack.tree.text import find_lines, line_end, lines_end, one_splice

_Origin = int | str  # a line of the onto commit's file, or the id of a change


class Lineage:
    """Where the lines of each file come from; a file that is not in it is as the onto commit has it."""

    def __init__(self, origins: Mapping[str, Sequence[_Origin]] | None = None) -> None:
        self._origins = dict(origins or {})

    def origin(self, path: str, line: int) -> tuple[int, str]:
        """The line in the onto commit's file, or 0 and the id of the change that brought the line."""
        if path not in self._origins or not line:
            return line, ""
        lines = self._origins[path]
        found = lines[min(line, len(lines)) - 1]
        return (found, "") if isinstance(found, int) else (0, found)

    def edited(self, edit: Edit, change: str, before: bytes | None, after: bytes) -> Lineage:
        """The lineage with an edit of a change made."""
        old = self._origins.get(edit.path) or range(1, (before or b"").count(b"\n") + 2)
        if before is None:
            new: list[_Origin] = [change] * (after.count(b"\n") + 1)
        else:
            new = _edited(old, before, after, change, _text(edit))
        return Lineage({**self._origins, edit.path: new})

    def spots(self, spots: Iterable[Spot], path: str) -> tuple[Spot, ...]:
        """Spots of a text of now as spots of the onto commit's file."""
        return tuple(self._spot(spot, spot.path or path) for spot in spots)

    def _spot(self, spot: Spot, path: str) -> Spot:
        line, change = self.origin(path, spot.line)
        return dataclasses.replace(spot, line=line, change=change)

    def outcome(self, outcome: Outcome, path: str) -> Outcome:
        """The outcome of an edit of a file, its lines those of the onto commit."""
        matches, brought_by = self._matches(outcome.matches, path)
        return dataclasses.replace(
            outcome,
            matches=matches,
            brought_by=brought_by,
            conflict=self._conflict(outcome.conflict) if outcome.conflict else None,
            spots=self.spots(outcome.spots, path),
            replaced=tuple(self.piece(piece) for piece in outcome.replaced),
        )

    def _conflict(self, conflict: Conflict) -> Conflict:
        matches, brought_by = self._matches(conflict.matches, conflict.path)
        return dataclasses.replace(
            conflict,
            matches=matches,
            brought_by=brought_by,
            nearest=self.spots(conflict.nearest, conflict.path),
            uses=self.spots(conflict.uses, conflict.path),
        )

    def _matches(self, lines: Iterable[int], path: str) -> tuple[tuple[int, ...], tuple[str, ...]]:
        found = [self.origin(path, line) for line in lines]
        return tuple(line for line, _ in found), tuple(dict.fromkeys(change for _, change in found if change))

    def piece(self, piece: Piece) -> Piece:
        """A piece of a file with the line it has in the onto commit."""
        line, change = self.origin(piece.path, piece.line)
        return dataclasses.replace(piece, line=line, brought_by=change)

    def part(self, part: PieceMatch) -> PieceMatch:
        """Likewise, of what the tree has instead of a part of a change."""
        return dataclasses.replace(part, theirs=self.piece(part.theirs)) if part.theirs else part


AS_THEY_ARE = Lineage()
"""Every file as the onto commit has it."""


def _text(edit: Edit) -> bytes:
    """The lines that an edit brings as a whole; empty for edits of single entries, removals and generated files."""
    if isinstance(edit, (CxxEdit, PlacePythonFragment)):
        return edit.fragment.text
    return edit.content if isinstance(edit, CreateFile) else b""


def _edited(old: Sequence[_Origin], before: bytes, after: bytes, change: str, text: bytes) -> list[_Origin]:
    """The origins of the lines of ``after``.

    Args:
        old: those of ``before``.
        text: lines that came as a whole. Where they stand is known, so that none of them is taken for an equal line
            beside them.
    """
    at = find_lines(after, text) if text.strip() else None
    end = lines_end(after, at, text) if at is not None else 0
    rest = after[:at] + after[end:] if at is not None else after
    splice = one_splice(before, rest)
    start, stop = before.rfind(b"\n", 0, splice.start) + 1, line_end(before, splice.end)
    was, now = before[start:stop].split(b"\n"), rest[start : stop + len(rest) - len(before)].split(b"\n")
    if stop < len(
        before
    ):  # what is behind the last line feed is the next line; at the end, it is one without a line feed
        was, now = was[:-1], now[:-1]
    first = before.count(b"\n", 0, start)
    same = first + len(was)
    new = [*old[:first], *_matched(old[first:same], was, now, change), *old[same:]]
    if at is not None:
        line = after.count(b"\n", 0, at)
        new[line:line] = [change] * after.count(b"\n", at, end)
        if end == len(after) and not after.endswith(b"\n"):
            new[-1] = change
    return new


def _matched(origins: Sequence[_Origin], old: list[bytes], new: list[bytes], change: str) -> list[_Origin]:
    """The origins of the lines of ``new``, of which those that ``old`` has keep theirs."""
    if old and new and old[-1] == new[-1]:  # else the first of several equal lines would be taken for it
        return [*_matched(origins[:-1], old[:-1], new[:-1], change), origins[-1]]
    found: list[_Origin] = [change] * len(new)
    # Blank lines say nothing about which of two places a line came from.
    matcher = difflib.SequenceMatcher(lambda line: not line.strip(), old, new, autojunk=False)
    for block in matcher.get_matching_blocks():
        found[block.b : block.b + block.size] = origins[block.a : block.a + block.size]
    return found
