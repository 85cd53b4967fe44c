"""A file on its way from before a commit to after it, hunk by hunk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from patchstack.tree.hunks import LineChange


@dataclass(frozen=True)
class Insertion:
    """Lines that a hunk inserts; several places mean the same where the lines around repeat.

    Attributes:
        at: offset in the text before.
        text: the lines.
    """

    at: int
    text: bytes


@dataclass(frozen=True)
class State:
    """The file with the first hunks in place.

    Attributes:
        old: lines of the file before the commit.
        new: its lines in the commit.
        changes: all hunks.
        done: how many of them are in place.
    """

    old: Sequence[bytes]
    new: Sequence[bytes]
    changes: Sequence[LineChange]
    done: int

    def after(self, count: int) -> State:
        """The state with ``count`` hunks more."""
        return State(self.old, self.new, self.changes, self.done + count)

    @property
    def _ends(self) -> tuple[int, int]:
        last = self.changes[self.done - 1] if self.done else LineChange(0, 0, 0, 0)
        return last.old_end, last.new_end

    @cached_property
    def lines(self) -> list[bytes]:
        old, new = self._ends
        return [*self.new[:new], *self.old[old:]]

    @cached_property
    def text(self) -> bytes:
        return b"".join(self.lines)

    @cached_property
    def _offsets(self) -> list[int]:
        return [0, *accumulate(map(len, self.lines))]

    def span(self, ahead: int) -> tuple[int, int]:
        """Offsets in this text of what a hunk replaces, ``ahead`` counted from the next one."""
        low, high = self.line_span(ahead)
        return self._offsets[low], self._offsets[high]

    def line_span(self, ahead: int) -> tuple[int, int]:
        """The same as line numbers from 0."""
        change, (old, new) = self.changes[self.done + ahead], self._ends
        return new + change.old_start - old, new + change.old_end - old

    @property
    def left(self) -> int:
        """How many hunks are not in place yet."""
        return len(self.changes) - self.done

    def insertions(self) -> Iterator[Insertion]:
        """Where the next hunk inserts lines; nothing for one that takes lines away."""
        change = self.changes[self.done]
        if change.old_start != change.old_end:
            return
        start, _ = self.line_span(0)
        lines = list(self.new[change.new_start : change.new_end])
        yield Insertion(self._offsets[start], b"".join(lines))
        low, up = start, lines
        while low and up[-1] == self.lines[low - 1] and start - low < _MOST_SLIDES:
            low, up = low - 1, [up[-1], *up[:-1]]
            yield Insertion(self._offsets[low], b"".join(up))
        high, down = start, lines
        while high < len(self.lines) and down[0] == self.lines[high] and high - start < _MOST_SLIDES:
            high, down = high + 1, [*down[1:], down[0]]
            yield Insertion(self._offsets[high], b"".join(down))


_MOST_SLIDES = 40
