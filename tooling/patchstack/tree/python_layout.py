"""How an entry is put into or taken out of a Python list, tuple, set, dict or argument list; the rest stays.

Each function answers with the splices only: the bytes of every neighbour, its comments and its line breaks stay. What
is laid out one entry a line stays so, and so does what stands on one line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from patchstack.tree.text import Splice, indentation, line_end, line_ending, line_start

_GAP = re.compile(rb"(?:\s|\\\r?\n|#[^\n]*)*")
_REST_OF_LINE = re.compile(rb"[ \t]*(?:#[^\n]*)?\r?\n")
_COMMENT_LINE = re.compile(rb"[ \t]*#[^\n]*\n")
_INDENT = b"    "


@dataclass(frozen=True)
class Entry:
    """One entry of a list, tuple, set, dict or argument list.

    Attributes:
        start: offset of its first byte.
        end: offset behind its last byte, the comma not included.
        key: source of a dict entry's key or of the whole element.
        text: source of the whole entry.
    """

    start: int
    end: int
    key: str
    text: str


@dataclass(frozen=True)
class Brackets:
    """A container and what is in it.

    Attributes:
        data: the file.
        opening: offset behind the opening bracket.
        closing: offset of the closing bracket.
        entries: in order.
        is_tuple: whether a single entry needs a comma behind it.
    """

    data: bytes
    opening: int
    closing: int
    entries: Sequence[Entry]
    is_tuple: bool = False

    def comma_end(self, entry: Entry) -> int:
        """Offset behind the comma that follows an entry, or -1 without one."""
        gap = _GAP.match(self.data, entry.end, self.closing)
        at = gap.end() if gap else entry.end
        return at + 1 if self.data[at : at + 1] == b"," else -1

    def starts_line(self, offset: int) -> bool:
        """Whether nothing but blanks stands before ``offset`` on its line."""
        return not self.data[line_start(self.data, offset) : offset].strip()


def removal(brackets: Brackets, at: int, *, with_comment: bool = False) -> list[Splice]:
    """Take entry number ``at`` out, with its line where it has one for itself.

    Args:
        with_comment: also take the comment lines directly above it.
    """
    rest = [entry for number, entry in enumerate(brackets.entries) if number != at]
    splices = [_removed(brackets, at, with_comment=with_comment)]
    if brackets.is_tuple and len(rest) == 1:
        comma = brackets.comma_end(rest[0])
        if comma < 0 or any(splice.start < comma <= splice.end for splice in splices):
            splices.append(Splice(rest[0].end, rest[0].end, b","))  # (a) would be no tuple
    return splices


def _removed(brackets: Brackets, at: int, *, with_comment: bool) -> Splice:
    data, entry = brackets.data, brackets.entries[at]
    comma = brackets.comma_end(entry)
    end = max(comma, entry.end)
    rest_of_line = _REST_OF_LINE.match(data, end)
    if brackets.starts_line(entry.start) and rest_of_line:
        start = line_start(data, entry.start)
        while with_comment and start and _COMMENT_LINE.fullmatch(data, line_start(data, start - 1), start):
            start = line_start(data, start - 1)
        return Splice(start, rest_of_line.end(), b"")
    before = brackets.entries[at - 1] if at else None
    after = brackets.entries[at + 1] if at + 1 < len(brackets.entries) else None
    if before is None and after is None:
        only = not (data[brackets.opening : entry.start] + data[end : brackets.closing]).strip()
        return Splice(brackets.opening, brackets.closing, b"") if only else Splice(entry.start, end, b"")
    if after is not None and (before is None or b"\n" not in data[end : after.start]):
        of_the_next = rest_of_line is not None and b"#" in data[rest_of_line.end() : after.start]
        behind = end + len(rest_of_line.group().rstrip()) if rest_of_line and of_the_next else after.start
        return Splice(entry.start, behind, b"")
    assert before is not None
    if b"#" in data[before.end : entry.start]:  # the comment is about the entry that stays
        return Splice(entry.start, end, b"")
    return Splice(brackets.comma_end(before), end, b"") if comma >= 0 else Splice(before.end, end, b"")


def addition(brackets: Brackets, text: str, *, after: int = -1, comment: str = "") -> list[Splice]:
    """Put one more entry behind another, laid out as its neighbours are.

    Args:
        text: source of the entry; its further lines are indented as far as its first.
        after: number of the entry it goes behind; -1 is the last.
        comment: text of a comment behind it, where it has a line for itself.
    """
    data = brackets.data
    one_a_line = brackets.starts_line(brackets.closing) and b"\n" in data[brackets.opening : brackets.closing]
    if not brackets.entries:
        return _first(brackets, text, comment, one_a_line=one_a_line)
    previous = brackets.entries[after]
    following = brackets.entries[after + 1 :] if after >= 0 else []
    comma = brackets.comma_end(previous)
    behind = max(comma, previous.end)
    indent = indentation(data, previous.start)
    shares_line = bool(following) and b"\n" not in data[behind : following[0].start]
    if one_a_line and not shares_line:
        if b"\n" not in data[brackets.opening : previous.start]:  # it stands behind the opening bracket
            indent = indentation(data, brackets.closing) + _INDENT
        at = line_end(data, max(comma - 1, previous.end))
        missing = [] if comma >= 0 else [Splice(previous.end, previous.end, b",")]
        return [*missing, Splice(at, at, _line(data, indent, text, comment))]
    gap = line_ending(data) + indent if brackets.starts_line(previous.start) and not shares_line else b" "
    entry = _indented(data, b"" if gap == b" " else indent, text)
    if comma < 0:
        return [Splice(previous.end, previous.end, b"," + gap + entry)]
    needless = brackets.is_tuple and len(brackets.entries) == 1  # the comma of (a,) only says that it is a tuple
    return [Splice(comma, comma, gap + entry + (b"" if needless else b","))]


def _first(brackets: Brackets, text: str, comment: str, *, one_a_line: bool) -> list[Splice]:
    data = brackets.data
    if one_a_line:
        at = line_start(data, brackets.closing)
        return [Splice(at, at, _line(data, indentation(data, brackets.closing) + _INDENT, text, comment))]
    comma = b"," if brackets.is_tuple else b""
    return [Splice(brackets.opening, brackets.opening, _indented(data, b"", text) + comma)]


def _line(data: bytes, indent: bytes, text: str, comment: str) -> bytes:
    remark = f"  # {comment}".encode() if comment else b""
    return indent + _indented(data, indent, text) + b"," + remark + line_ending(data)


def _indented(data: bytes, indent: bytes, text: str) -> bytes:
    return (line_ending(data) + indent).join(line.encode() for line in text.splitlines())
