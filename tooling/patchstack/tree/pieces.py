"""Named pieces of source files, and how alike two of them are.

A change that landed after review has other line breaks, other comments, a check more and a name less. What stays is
most of its tokens in most of their order, so two pieces are compared by the runs of three tokens that they share:
blanks and comments do not count, a moved block counts almost fully, and the cost is linear in the length.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from patchstack.tree.cxx_digest import code_tokens

_RUN = 3
_TOKEN = re.compile(r"\w+|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|[^\w\s]")
_COMMENT = re.compile(r"#[^\n]*")


@dataclass(frozen=True)
class Piece:
    """One named thing of a file: a function, a type, a test, a dispatch entry.

    Attributes:
        path: the file.
        kind: such as ``function``, ``kernel``, ``struct``, ``member``, ``dispatch entry``.
        name: its name, without its scope.
        text: its source; where a file has several things of one kind and name, theirs in order.
        line: 1-based line it begins on; 0 where it is in no file yet. In a finished plan, of the onto commit's file.
        brought_by: id of the change of the series that brought that line, which then has no number.
    """

    path: str
    kind: str
    name: str
    text: bytes
    line: int = 0
    brought_by: str = ""

    @property
    def tokens(self) -> tuple[str, ...]:
        """The tokens of its source, comments left out."""
        if self.path.endswith((".py", ".yaml")):
            return tuple(_TOKEN.findall(_COMMENT.sub(" ", self.text.decode(errors="replace"))))
        return tuple(token.decode(errors="replace") for token in code_tokens(self.text))


def gathered(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    """Pieces of one kind and name (overloads, registrations by one macro) as one piece, in order of the first."""
    found: dict[tuple[str, str], Piece] = {}
    for piece in pieces:
        key = (piece.kind, piece.name)
        before = found.get(key)
        text = before.text + piece.text if before else piece.text
        found[key] = Piece(piece.path, piece.kind, piece.name, text, before.line if before else piece.line)
    return tuple(found.values())


def similarity(left: Piece, right: Piece) -> float:
    """Share of the runs of three tokens that two pieces have in common: 0 for none, 1 for the same code."""
    first, second = _runs(left), _runs(right)
    total = first.total() + second.total()
    return 2 * (first & second).total() / total if total else 1.0


@lru_cache(maxsize=1024)
def _runs(piece: Piece) -> Counter[tuple[str, ...]]:
    tokens = piece.tokens
    length = min(_RUN, len(tokens)) or 1
    return Counter(tokens[at : at + length] for at in range(len(tokens) - length + 1))


def piece_diff(theirs: Piece | None, ours: Piece | None) -> list[str]:
    """What would turn the tree's piece into ours: the hunks of a unified diff; a missing piece has no lines."""
    old, new = ((p.text.decode(errors="replace").splitlines() if p else []) for p in (theirs, ours))
    return list(difflib.unified_diff(old, new, lineterm=""))[2:]
