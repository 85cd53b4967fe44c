"""Source files as bytes: line endings, line numbers, splices.

Everything here works on bytes, so that encoding, line endings and a missing final newline outside an edit stay as
they are.
"""

from __future__ import annotations

import codecs
import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Splice:
    """Replace ``data[start:end]`` by ``replacement``; an insertion when ``start == end``."""

    start: int
    end: int
    replacement: bytes


def apply_splices(data: bytes, splices: Iterable[Splice]) -> bytes:
    """``data`` with all splices applied.

    Raises:
        ValueError: two splices overlap.
    """
    out: list[bytes] = []
    at = 0
    for splice in sorted(splices, key=lambda s: (s.start, s.end)):
        if splice.start < at:
            raise ValueError(f"splices overlap at byte {splice.start}")
        out += [data[at : splice.start], splice.replacement]
        at = splice.end
    out.append(data[at:])
    return b"".join(out)


_BLOCKS = (1 << 14, 1 << 7, 1)


def one_splice(before: bytes, after: bytes) -> Splice:
    """The shortest single splice that turns one content into the other."""
    head = common_head(before, after)
    tail = common_tail(before, after, min(len(before), len(after)) - head)
    return Splice(head, len(before) - tail, after[head : len(after) - tail])


def common_head(left: bytes, right: bytes) -> int:
    """Length of the common beginning, in ever smaller blocks: comparing slices is what bytes are fast at."""
    at, end = 0, min(len(left), len(right))
    for block in _BLOCKS:
        while at + block <= end and left[at : at + block] == right[at : at + block]:
            at += block
    return at


def common_tail(left: bytes, right: bytes, most: int) -> int:
    """Length of the common end, up to ``most``."""
    count = 0
    for block in _BLOCKS:
        while count + block <= most and _from_end(left, count, block) == _from_end(right, count, block):
            count += block
    return count


def _from_end(content: bytes, count: int, block: int) -> bytes:
    """The block that ends ``count`` bytes before the end."""
    stop = len(content) - count
    return content[stop - block : stop]


def line_ending(data: bytes) -> bytes:
    """The line ending that most lines of the file have: ``\\r\\n`` or ``\\n``."""
    crlf = data.count(b"\r\n")
    return b"\r\n" if crlf * 2 > data.count(b"\n") else b"\n"


def with_line_ending(text: bytes, ending: bytes) -> bytes:
    """``text`` (with ``\\n`` or ``\\r\\n``) with every line ended by ``ending``."""
    plain = text.replace(b"\r\n", b"\n")
    return plain if ending == b"\n" else plain.replace(b"\n", ending)


def line_start(data: bytes, offset: int) -> int:
    """Offset of the first byte of the line that holds ``offset``; a byte order mark is not part of a line."""
    return max(data.rfind(b"\n", 0, offset) + 1, text_start(data))


def text_start(data: bytes) -> int:
    """Offset behind the byte order mark, or 0 without one."""
    return len(codecs.BOM_UTF8) if data.startswith(codecs.BOM_UTF8) else 0


def line_end(data: bytes, offset: int) -> int:
    """Offset just behind the line feed that ends the line holding ``offset``; the length of the file without one."""
    found = data.find(b"\n", offset)
    return len(data) if found < 0 else found + 1


def find_lines(data: bytes, lines: bytes, start: int = 0, end: int | None = None) -> int | None:
    """Offset at which ``lines`` stand as whole lines, whatever their line endings; ``None`` where they do not."""
    plain = lines.replace(b"\r\n", b"\n").removesuffix(b"\n")
    stop = len(data) if end is None else end
    ending = _only_ending(data)
    starts = _mixed_starts(data, plain, start, stop) if ending is None else _starts(data, plain, ending, start, stop)
    return next((at for at in starts if at == line_start(data, at)), None)


def _only_ending(data: bytes) -> bytes | None:
    """The ending of all lines of the file; ``None`` where they have not the same."""
    crlf = data.count(b"\r\n") if b"\r" in data else 0
    if not crlf:
        return b"\n"
    return b"\r\n" if crlf == data.count(b"\n") else None


def _starts(data: bytes, plain: bytes, ending: bytes, start: int, stop: int) -> Iterator[int]:
    text = with_line_ending(plain, ending)
    at = data.find(text, start, stop)
    while at >= 0:
        if at + len(text) == stop or data.startswith(ending, at + len(text), stop):
            yield at
        at = data.find(text, at + 1, stop)


def _mixed_starts(data: bytes, plain: bytes, start: int, stop: int) -> Iterator[int]:
    pattern = re.compile(rb"\r?\n".join(map(re.escape, plain.split(b"\n"))) + rb"(?:\r?\n|\Z)")
    match = pattern.search(data, start, stop)
    while match:
        yield match.start()
        match = pattern.search(data, match.start() + 1, stop) if match.start() < stop else None


def lines_end(data: bytes, at: int, lines: bytes) -> int:
    """Offset behind ``lines`` where :func:`find_lines` found them at ``at``."""
    for _ in lines.splitlines():
        at = line_end(data, at)
    return at


def indentation(data: bytes, offset: int) -> bytes:
    """The blanks and tabs at the start of the line that holds ``offset``."""
    start = line_start(data, offset)
    end = start
    while data[end : end + 1] in (b" ", b"\t"):
        end += 1
    return data[start:end]


def line_number(data: bytes, offset: int) -> int:
    """The 1-based line that holds the byte at ``offset``; counting line feeds beats an index for a few look-ups."""
    return data.count(b"\n", 0, offset) + 1


def digest(text: bytes) -> str:
    """What identifies a piece of code, blanks aside: ``sha256:`` and 16 hexadecimal digits."""
    return "sha256:" + hashlib.sha256(b" ".join(text.split())).hexdigest()[:16]
