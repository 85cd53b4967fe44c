"""Where two versions of a file differ, for edits that change one place: 20,000 lines need no general diff for that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def common_ends(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """How many lines both have in common at the beginning, and how many of the rest at the end."""
    head = _common(old, new)
    return head, _common(old[head:][::-1], new[head:][::-1])


def counted(old: bytes, new: bytes) -> tuple[int, int]:
    """Lines that an edit adds and lines that it takes out."""
    before, after = old.split(b"\n"), new.split(b"\n")
    head = _common(before, after)
    tail = _common(before[head:][::-1], after[head:][::-1])
    return len(after) - head - tail, len(before) - head - tail


def _common(left: Iterable[object], right: Iterable[object]) -> int:
    count = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        count += 1
    return count
