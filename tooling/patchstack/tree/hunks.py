"""Hunks of a unified diff: what they say, how they are written, and where their lines stand in a text.

Everything is bytes, and a line keeps its ending, so that what a hunk says is what lands.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from patchstack.tree.text import Splice, one_splice

_HEAD = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NO_LINE_FEED = b"\\ No newline at end of file\n"


class HunkError(ValueError):
    """A text that is no list of hunks.

    Attributes:
        line: the 1-based line that is wrong.
        problem: what is wrong with it.
    """

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"line {line}: {problem}")
        self.line = line
        self.problem = problem


@dataclass(frozen=True)
class LineChange:
    """Lines of one text and the lines of another that stand in their place; 0-based, the ends not included."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


@dataclass(frozen=True)
class Hunk:
    """Lines that are to be there, and what they become; both with the context around the difference.

    Attributes:
        old: the lines as they are.
        new: the lines as they are to be.
        line: 1-based line of ``old`` in the text that it was taken from; it finds nothing, it is for people.
    """

    old: bytes
    new: bytes
    line: int

    def places(self, data: bytes) -> list[int]:
        """Offsets at which ``old`` stands as whole lines."""
        return find_whole(data, self.old)

    def is_there(self, data: bytes) -> bool:
        """Whether ``new`` stands in the text once, and ``old`` at most as a part of it."""
        found = find_whole(data, self.new)
        if len(found) != 1:
            return False
        start, end = found[0], found[0] + len(self.new)
        return all(start <= at and at + len(self.old) <= end for at in self.places(data))

    def splice(self, at: int) -> Splice:
        """The difference alone, for ``old`` at an offset."""
        inner = one_splice(self.old, self.new)
        return Splice(at + inner.start, at + inner.end, inner.replacement)


def find_whole(data: bytes, lines: bytes) -> list[int]:
    """Offsets at which ``lines`` stand as whole lines, endings included; no lines stand in an empty text only."""
    if not lines:
        return [0] if not data else []
    found, at = list[int](), data.find(lines)
    while at >= 0:
        end = at + len(lines)
        if (not at or data[at - 1 : at] == b"\n") and (lines.endswith(b"\n") or end == len(data)):
            found.append(at)
        at = data.find(lines, at + 1)
    return found


def split_lines(data: bytes) -> list[bytes]:
    """The lines with their line feeds; unlike ``splitlines``, a carriage return ends none."""
    lines = data.split(b"\n")
    return [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def line_changes(diff: bytes) -> list[LineChange]:
    """What the hunk heads of ``git diff -U0`` say."""
    found = []
    for line in diff.split(b"\n"):
        head = _HEAD.match(line)
        if head:
            old, old_count, new, new_count = (int(part) if part is not None else 1 for part in head.groups())
            old_start, new_start = old - bool(old_count), new - bool(new_count)
            found.append(LineChange(old_start, old_start + old_count, new_start, new_start + new_count))
    return found


def make_hunks(old: Sequence[bytes], new: Sequence[bytes], changes: Sequence[LineChange], context: int) -> list[Hunk]:
    """Hunks for some changes between two texts, each with enough context to stand in ``old`` just once.

    Args:
        changes: in order.
        context: lines of context to begin with.
    """
    text, hunks = b"".join(old), list[tuple[int, int, list[LineChange]]]()
    for change in changes:
        low, high = _unique(text, old, change.old_start, change.old_end, context)
        group = [change]
        while hunks and low <= hunks[-1][1]:
            before_low, before_high, before = hunks.pop()
            low, high, group = min(low, before_low), max(high, before_high), [*before, *group]
        hunks.append((low, high, group))
    return [_hunk(old, new, *hunk) for hunk in hunks]


def _unique(text: bytes, lines: Sequence[bytes], start: int, end: int, context: int) -> tuple[int, int]:
    while True:
        low, high = max(start - context, 0), min(end + context, len(lines))
        if (low, high) == (0, len(lines)) or len(find_whole(text, b"".join(lines[low:high]))) == 1:
            return low, high
        context += 1


def _hunk(old: Sequence[bytes], new: Sequence[bytes], low: int, high: int, changes: Sequence[LineChange]) -> Hunk:
    out, at = list[bytes](), low
    for change in changes:
        out += [*old[at : change.old_start], *new[change.new_start : change.new_end]]
        at = change.old_end
    return Hunk(b"".join(old[low:high]), b"".join([*out, *old[at:high]]), low + 1)


def write_hunks(path: str, hunks: Sequence[Hunk]) -> bytes:
    """The hunks as a unified diff of a file."""
    name = path.encode(errors="surrogateescape")
    out, moved = [b"--- a/%s\n+++ b/%s\n" % (name, name)], 0
    for hunk in hunks:
        old, new = split_lines(hunk.old), split_lines(hunk.new)
        starts = (hunk.line - (not old), hunk.line + moved - (not new))
        out.append(b"@@ -%d,%d +%d,%d @@\n" % (starts[0], len(old), starts[1], len(new)))
        out += _body(old, new)
        moved += len(new) - len(old)
    return b"".join(out)


def _body(old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[bytes]:
    for kind, low, high, new_low, new_high in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            yield from _signed(b" ", old[low:high])
        else:
            yield from _signed(b"-", old[low:high])
            yield from _signed(b"+", new[new_low:new_high])


def _signed(sign: bytes, lines: Iterable[bytes]) -> Iterator[bytes]:
    for line in lines:
        yield sign + line if line.endswith(b"\n") else sign + line + b"\n" + _NO_LINE_FEED


def read_hunks(diff: bytes) -> tuple[Hunk, ...]:
    """The hunks of the unified diff of one file; lines before the first one are not looked at.

    Raises:
        HunkError: there is none, or one has not the lines that its head announces.
    """
    lines, hunks, number = split_lines(diff), list[Hunk](), 0
    while number < len(lines):
        head = _HEAD.match(lines[number])
        number += 1
        if head:
            old_line, old_count, _, new_count = (int(part) if part is not None else 1 for part in head.groups())
            old, new, number = _read_body(lines, number, old_count, new_count)
            hunks.append(Hunk(old, new, old_line + (not old_count)))
        elif hunks:
            raise HunkError(number, "a hunk ends here, and no other begins")
    if not hunks:
        raise HunkError(1, "no hunk, which '@@ -1,3 +1,4 @@' would begin")
    return tuple(hunks)


def _read_body(lines: Sequence[bytes], at: int, old_count: int, new_count: int) -> tuple[bytes, bytes, int]:
    old, new = list[bytes](), list[bytes]()
    begun = at
    while len(old) < old_count or len(new) < new_count or lines[at : at + 1] == [_NO_LINE_FEED]:
        line = lines[at] if at < len(lines) else b""
        sign, rest = line[:1], line[1:]
        if line == _NO_LINE_FEED and at > begun:
            _without_line_feed(lines[at - 1][:1], old, new)
        elif line == b"\n":  # an editor took the blank of an empty context line away
            old.append(line)
            new.append(line)
        elif sign in (b" ", b"-", b"+") and rest:
            old += [rest] if sign != b"+" else []
            new += [rest] if sign != b"-" else []
        else:
            raise HunkError(at + 1, "the hunk has not as many lines as its head says")
        at += 1
    if (len(old), len(new)) != (old_count, new_count):
        raise HunkError(at, "the hunk has more lines than its head says")
    return b"".join(old), b"".join(new), at


def _without_line_feed(sign: bytes, old: list[bytes], new: list[bytes]) -> None:
    for lines in ([old] if sign != b"+" else []) + ([new] if sign != b"-" else []):
        lines[-1] = lines[-1].removesuffix(b"\n")
