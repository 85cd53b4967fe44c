"""What a resolve says: where to edit, and what the series learned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from patchstack.resolve.model import ABORT, CONTINUE, Learned, State

_SHORT = 12


def resolving_lines(opened: State | None, learned: Learned, left: Sequence[str]) -> Iterator[str]:
    """The report for a terminal; nothing where nothing was resolved."""
    for name in left:
        yield f"warning: {name} is not tracked and was not taken; git add it before --continue"
    if opened is not None:
        yield f"change {opened.change} waits for you in {opened.worktree}:"
        for one in opened.files:
            where = f"put in what is in {one.beside}" if one.beside else "between the markers, or where it says"
            yield f"  {one.path}: {where} ({one.problem})"
        yield f"next: edit it, then {CONTINUE}, or {ABORT}"
    for said in learned.added:
        yield f"learned: {said}"
    for change, why in learned.missing.items():
        yield f"not learned: {change}: {why}; the branch has the result, and the next conflict like it comes back"
    if learned.added:
        tried = ", ".join(one[:_SHORT] for one in learned.verified)
        yield f"the series with it was tried on {tried}"
        yield from learned.diff.splitlines()


def resolving_json(opened: State | None, learned: Learned, left: Sequence[str]) -> dict[str, Any]:
    """The same as data."""
    files = [{"path": f.path, "beside": f.beside or None, "problem": f.problem} for f in opened.files] if opened else []
    return {
        "worktree": opened.worktree if opened else None,
        "change": opened.change if opened else None,
        "files": files,
        "not_taken": list(left),
        "learned": list(learned.added),
        "not_learned": dict(learned.missing),
        "verified": list(learned.verified),
        "diff": learned.diff,
    }
