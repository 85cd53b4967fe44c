"""Where two versions of a file differ, for edits that change one place: 20,000 lines need no general diff for that."""

from __future__ import annotations

from collections.abc import Sequence

from patchstack.tree.text import common_head, common_tail


def common_ends(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """How many lines both have in common at the beginning, and how many of the rest at the end."""
    head = _common(old, new)
    return head, _common(old[head:][::-1], new[head:][::-1])


def counted(old: bytes, new: bytes) -> tuple[int, int]:
    """Lines that an edit adds and lines that it takes out; compares whole stretches of bytes, not line by line."""
    shorter = min(len(old), len(new))
    same = common_head(old, new)
    head = same if same == len(old) == len(new) else old.rfind(b"\n", 0, same) + 1
    tail = common_tail(old, new, shorter - head)
    if not all(_begins_line(text, len(text) - tail, head) for text in (old, new)):
        end = old.find(b"\n", len(old) - tail)
        tail = len(old) - end - 1 if end >= 0 else 0
    return _lines(new[head : len(new) - tail]), _lines(old[head : len(old) - tail])


def _begins_line(text: bytes, at: int, head: int) -> bool:
    return at == head or text[at - 1 : at] == b"\n"


def _lines(text: bytes) -> int:
    return text.count(b"\n") + (not text.endswith(b"\n") and bool(text))


def _common(left: Sequence[str], right: Sequence[str]) -> int:
    count = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        count += 1
    return count
