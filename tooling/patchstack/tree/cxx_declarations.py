"""The declarations of a scope one by one: members of a type, what a namespace or a file has at its top.

The named definitions of :mod:`patchstack.tree.cxx` are not all of them: fields, prototypes, ``using`` lines and
preprocessor lines have no place there. Where one ends is told by semicolons and braces, as it is for statements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from patchstack.tree.cxx import CxxFile
from patchstack.tree.cxx_mask import OBJC_BLOCK, closing_brace, opens_type
from patchstack.tree.cxx_statements import Statement

_SIGN = re.compile(rb"[()\[\]{};]")
_BLANK = re.compile(rb"\s*")
_ACCESS = re.compile(rb"(?:public|protected|private)\s*:(?!:)")
_LINKAGE = re.compile(rb"extern\s*\"\s*\"\s*\Z")
_VALUE = re.compile(rb"=\s*\Z")


_USING = re.compile(rb"using\s+(?!namespace\b)(?:[\w:]*::)?(\w+)\s*;")


def used_names(one: Statement) -> tuple[str, ...]:
    """The name that a ``using`` declaration brings in."""
    found = _USING.match(one.text)
    return (found[1].decode(),) if found else ()


def declarations(file: CxxFile, low: int, high: int) -> Iterator[Statement]:
    """What is declared between two offsets, in order; a linkage block is replaced by what is in it.

    Nothing where the braces of the file do not pair: then nobody can say what is inside what.
    """
    if file.braces_pair:
        yield from _declarations(file, low, high)


def _declarations(file: CxxFile, low: int, high: int) -> Iterator[Statement]:
    text, at = file.skeleton.text, low
    apart = iter([one for one in _apart(file) if low <= one[0] < high])
    following = next(apart, None)
    while True:
        begin = _skip(text, at)
        while following is not None and following[0] < at:
            following = next(apart, None)
        if following is not None and following[0] <= begin:
            yield _statement(file, *following, low, high)
            at = following[1]
            continue
        if begin >= high:
            return
        if label := _ACCESS.match(text, begin):
            at = label.end()
            continue
        end, inner = _end(text, begin, high)
        if inner is not None:
            yield from _declarations(file, *inner)
        else:  # an attribute or a qualifier of Metal's before it is blanked in the skeleton
            yield _statement(file, min(_skip(file.uncommented, at), begin), end, low, high)
        at = end


def _apart(file: CxxFile) -> list[tuple[int, int]]:
    """Where stands what the skeleton does not show: preprocessor lines, calls of macros, classes of Objective-C."""
    lines = [(_skip(file.uncommented, one.start), one.end) for one in file.skeleton.directives]
    calls = [(call.start, call.end) for call in file.skeleton.macro_calls]
    return sorted([*lines, *calls, *((m.start(), m.end()) for m in OBJC_BLOCK.finditer(file.uncommented))])


def _statement(file: CxxFile, start: int, end: int, low: int, high: int) -> Statement:
    return Statement(start, end, file.uncommented[start:end], (low, high))


def _end(text: bytes, begin: int, high: int) -> tuple[int, tuple[int, int] | None]:
    """Where a declaration ends; of a linkage block also where its inside begins and ends."""
    depth, at = 0, begin
    while match := _SIGN.search(text, at, high):
        sign, at = match.group(), match.end()
        if sign == b"{":
            stop = closing_brace(text, match.start(), high)
            if stop is None:
                return high, None
            head, at = text[begin : match.start()], stop + 1
            if _LINKAGE.match(head):
                return at, (match.end(), stop)
            following = text[_skip(text, at) :][:1]
            if depth or opens_type(head) or _VALUE.search(head) or following in (b",", b"{", b";"):
                continue
            return at, None
        if sign == b";" and not depth:
            return at, None
        depth += {b"(": 1, b"[": 1, b")": -1, b"]": -1}.get(sign, 0)
    return high, None


def _skip(text: bytes, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at
