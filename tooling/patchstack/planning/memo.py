"""Remember what an edit came to on a file: planning one edit depends on the edit and the file's bytes, nothing else.

Upstream moves a thousand commits a week and most of them leave the series' files alone, so the next run mostly repeats
the last one. The memory is a cache like any other: it lives outside the repository, and a different edit, file or
version of this package is a different entry.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from patchstack.cache import read_entry, write_entry
from patchstack.edits import Conflict, Edit, Outcome, Rung, Spot, Status
from patchstack.tree.git import Repository, Tree
from patchstack.tree.text import Splice, apply_splices, one_splice

T = TypeVar("T")
_CODE = ("closure", "edits", "manifest", "planning", "series", "tree")
_MOST_BYTES = 48 << 20


class Memory:
    """What edits came to on files in one process, in front of the cache: trees of one history are mostly the same.

    The least recently used outcomes go when the contents they hold are too many.
    """

    def __init__(self) -> None:
        self._tree: Tree | None = None
        self._outcomes: OrderedDict[tuple[Edit, bytes, str], Outcome] = OrderedDict()
        self._bytes = 0

    def tree(self, repository: Repository, commit: str) -> Tree:
        """The tree of a commit, with what is known of the folders of the one before.

        Raises:
            UsageError: no such commit.
        """
        self._tree = Tree.at(repository, commit, like=self._tree)
        return self._tree

    def outcome(self, edit: Edit, tree: Tree) -> Outcome:
        """``edit.plan(tree)``, from memory or the cache where this very edit was planned on these very bytes before."""
        data = tree.read(edit.path)
        if data is None:
            return edit.plan(tree)
        entry = tree.entry(edit.path)
        key = (edit, data, entry.hash if entry else "")
        known = self._outcomes.get(key)
        if known is not None:
            self._outcomes.move_to_end(key)
            return known
        outcome = self._outcomes[key] = remembered(edit, tree, edit.plan)
        self._bytes += len(outcome.after or b"")
        while self._bytes > _MOST_BYTES:
            _, oldest = self._outcomes.popitem(last=False)
            self._bytes -= len(oldest.after or b"")
        return outcome


def remembered(edit: Edit, tree: Tree, plan: Callable[[Tree], Outcome]) -> Outcome:
    """``plan(tree)``, from memory where this very edit was planned on these very bytes before."""
    data = tree.read(edit.path)
    if data is None:
        return plan(tree)
    entry = tree.entry(edit.path)
    place = _place(data, repr(edit), entry.hash if entry else "")
    known = _read(place, data)
    if known is not None:
        return known
    outcome = plan(tree)
    _write(place, data, outcome)
    return outcome


def remembered_answer(question: str, data: bytes, answer: Callable[[], bool]) -> bool:
    """``answer()`` to a question about a file's bytes, from memory where it was asked before."""
    return remembered_value(question, data, answer, bool, _as_bool)


def remembered_value(
    question: str, data: bytes, compute: Callable[[], T], encode: Callable[[T], Any], decode: Callable[[Any], T]
) -> T:
    """What depends on a question and a file's bytes alone, from memory where it was computed before.

    Args:
        encode: the value as JSON-serialisable data; ``None`` for one that is not to be remembered.
        decode: the value again; a ``ValueError``, ``LookupError`` or ``TypeError`` says that the data is damaged.
    """
    place = _place(data, question)
    stored = read_entry(place)
    try:
        return decode(stored["answer"])
    except (ValueError, LookupError, TypeError):
        value = compute()
        answer = encode(value)
        if answer is not None:
            write_entry(place, {"answer": answer})
        return value


def _as_bool(stored: Any) -> bool:
    if not isinstance(stored, bool):
        raise TypeError(stored)
    return stored


def _place(data: bytes, *parts: str) -> Path:
    """Where in the cache the memory of a question about a file is kept."""
    text = "\0".join((_code_version(), digest(data), *parts))
    key = hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()
    return Path("plans", key[:2], f"{key}.json")


@lru_cache(maxsize=16)
def digest(content: bytes) -> str:
    """What identifies a content; several questions are asked about one."""
    return hashlib.sha256(content).hexdigest()


@lru_cache(maxsize=1)
def _code_version() -> str:
    """Changes whenever the code that plans an edit does."""
    root = Path(__file__).resolve().parent.parent
    digest = hashlib.sha256()
    for folder in _CODE:
        for file in sorted((root / folder).rglob("*.py")):
            facts = file.stat()
            digest.update(f"{file.relative_to(root)} {facts.st_size} {facts.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _read(place: Path, data: bytes) -> Outcome | None:
    try:
        stored = read_entry(place)
        facts: dict[str, Any] | None = stored["conflict"]
        conflict = None
        if facts is not None:
            lists = {name: tuple(value) for name, value in facts.items() if isinstance(value, list)}
            spots = {name: _spots(facts[name]) for name in ("nearest", "uses")}
            conflict = Conflict(**{**facts, **lists, **spots})
        splice = stored["splice"]
        after = None
        if splice is not None:
            after = apply_splices(data, [Splice(splice[0], splice[1], base64.b64decode(splice[2]))])
            if digest(after) != stored["after"]:
                return None
        return Outcome(
            Status(stored["status"]),
            stored["anchor"],
            tuple(stored["matches"]),
            Rung(stored["rung"]) if stored["rung"] else None,
            after,
            conflict,
            stored["note"],
            stored["neutral"],
            spots=_spots(stored["spots"]),
        )
    except (ValueError, LookupError, TypeError, AttributeError):
        return None


def _write(place: Path, data: bytes, outcome: Outcome) -> None:
    stored = {
        "status": outcome.status.value,
        "anchor": outcome.anchor,
        "matches": outcome.matches,
        "rung": outcome.rung.value if outcome.rung else None,
        "splice": None if outcome.after is None else _stored(one_splice(data, outcome.after)),
        "after": None if outcome.after is None else digest(outcome.after),
        "conflict": dataclasses.asdict(outcome.conflict) if outcome.conflict else None,
        "note": outcome.note,
        "neutral": outcome.neutral,
        "spots": [dataclasses.asdict(spot) for spot in outcome.spots],
    }
    write_entry(place, stored)


def _spots(stored: list[dict[str, Any]]) -> tuple[Spot, ...]:
    return tuple(Spot(**facts) for facts in stored)


def _stored(splice: Splice) -> tuple[int, int, str]:
    return splice.start, splice.end, base64.b64encode(splice.replacement).decode()
