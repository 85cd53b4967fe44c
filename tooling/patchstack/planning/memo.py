"""Remember what an edit came to on a file: planning one edit depends on the edit and the file's bytes, nothing else.

Upstream moves a thousand commits a week and most of them leave the series' files alone, so the next run mostly repeats
the last one. The memory is a cache like any other: it lives outside the repository, and a different edit, file or
version of this package is a different entry.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from patchstack.cache import read_entry, write_entry
from patchstack.edits import Conflict, Edit, Outcome, Rung, Status
from patchstack.git import Tree
from patchstack.source.text import Splice, apply_splices

T = TypeVar("T")
_CODE = ("edits", "planning", "source")


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
        encode: the value as JSON-serialisable data.
        decode: the value again; a ``ValueError``, ``LookupError`` or ``TypeError`` says that the data is damaged.
    """
    place = _place(data, question)
    stored = read_entry(place)
    try:
        return decode(stored["answer"])
    except (ValueError, LookupError, TypeError):
        value = compute()
        write_entry(place, {"answer": encode(value)})
        return value


def _as_bool(stored: Any) -> bool:
    if not isinstance(stored, bool):
        raise TypeError(stored)
    return stored


def _place(data: bytes, *parts: str) -> Path:
    """Where in the cache the memory of a question about a file is kept."""
    text = "\0".join((_code_version(), hashlib.sha256(data).hexdigest(), *parts))
    key = hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()
    return Path("plans", key[:2], f"{key}.json")


@lru_cache(maxsize=1)
def _code_version() -> str:
    """Changes whenever the code that plans an edit does."""
    root = Path(__file__).resolve().parent.parent
    digest = hashlib.sha256()
    for folder in _CODE:
        for file in sorted((root / folder).glob("*.py")):
            facts = file.stat()
            digest.update(f"{file.name} {facts.st_size} {facts.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _read(place: Path, data: bytes) -> Outcome | None:
    try:
        stored = read_entry(place)
        facts: dict[str, Any] | None = stored["conflict"]
        conflict = None
        if facts is not None:
            lists = {name: tuple(value) for name, value in facts.items() if isinstance(value, list)}
            conflict = Conflict(**{**facts, **lists})
        splice = stored["splice"]
        after = None
        if splice is not None:
            after = apply_splices(data, [Splice(splice[0], splice[1], base64.b64decode(splice[2]))])
            if hashlib.sha256(after).hexdigest() != stored["after"]:
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
        )
    except (ValueError, LookupError, TypeError, AttributeError):
        return None


def _write(place: Path, data: bytes, outcome: Outcome) -> None:
    stored = {
        "status": outcome.status.value,
        "anchor": outcome.anchor,
        "matches": outcome.matches,
        "rung": outcome.rung.value if outcome.rung else None,
        "splice": None if outcome.after is None else _one_splice(data, outcome.after),
        "after": None if outcome.after is None else hashlib.sha256(outcome.after).hexdigest(),
        "conflict": dataclasses.asdict(outcome.conflict) if outcome.conflict else None,
        "note": outcome.note,
        "neutral": outcome.neutral,
    }
    write_entry(place, stored)


def _one_splice(before: bytes, after: bytes) -> tuple[int, int, str]:
    """The shortest single splice that turns one content into the other."""
    head = _common(before, after)
    tail = _common(before[head:][::-1], after[head:][::-1])
    return head, len(before) - tail, base64.b64encode(after[head : len(after) - tail]).decode()


def _common(left: bytes, right: bytes) -> int:
    """Length of the common prefix, by bisection: comparing slices is what bytes are fast at."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[:middle] == right[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
