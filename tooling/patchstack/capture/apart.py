"""The definitions that a commit takes out of a source file, apart from the other things that it does there.

``remove-unused-definition`` takes out what nothing uses any more. So what used it must have changed before, wherever
that stands in the file: the removals come last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from patchstack.edits.cxx_edit import outermost
from patchstack.tree.cxx import parse_cxx
from patchstack.tree.hunks import LineChange


@dataclass(frozen=True)
class Apart:
    """The hunks of a file in two steps.

    Attributes:
        old: lines of the file before.
        middle: lines of the commit's file, with the definitions that it takes out still in it.
        others: the hunks from the file before to that one.
        removals: the hunks from that one to the commit's.
        parts: for each removal, whether it is a part of a hunk, the rest of which is among the others.
    """

    old: list[bytes]
    middle: list[bytes]
    others: list[LineChange]
    removals: list[LineChange]
    parts: list[bool]


def apart(old: list[bytes], new: Sequence[bytes], changes: Sequence[LineChange]) -> Apart:
    """Part the removals of whole definitions from the other hunks."""
    file = parse_cxx(b"".join(old))
    ends = {file.line(file.comment_start(found)) - 1: file.line(found.end - 1) for found in outermost(file.definitions)}
    made, at = Apart(old, [], [], [], []), 0
    for change in changes:
        made.middle.extend(old[at : change.old_start])
        begin, stop = len(made.middle), _whole(old, change, ends)
        gone = stop - change.old_start
        made.middle.extend(old[change.old_start : stop])
        if gone:
            made.removals.append(LineChange(begin, begin + gone, change.new_start, change.new_start))
        made.middle.extend(new[change.new_start : change.new_end])
        if stop < change.old_end or change.new_start < change.new_end:
            made.others.append(LineChange(stop, change.old_end, begin + gone, len(made.middle)))
        if gone:
            made.parts.append(bool(made.others) and made.others[-1].old_start == stop)
        at = change.old_end
    made.middle.extend(old[at:])
    return made


def _whole(old: Sequence[bytes], change: LineChange, ends: dict[int, int]) -> int:
    """Behind the definitions, and the blank lines between them, that a hunk begins with; its start without any."""
    at = stop = change.old_start
    while at < change.old_end:
        if not old[at].strip():
            at += 1
        elif at in ends and ends[at] <= change.old_end:
            at = stop = ends[at]
        else:
            break
    return at if stop > change.old_start else stop
