"""How git and ghstack cut a commit message into paragraphs and trailers, said once.

Two programs read our messages with two parsers that nearly agree. Everything that has to know where a trailer block
begins asks this module, and the tests hold it against ``git stripspace``, ``git interpret-trailers`` and ghstack's
own parser.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# Git's idea of white space at the end of a line: no form feed, no Unicode blanks, both of which str.rstrip() takes.
_BLANKS = " \t\r"

_TRAILER = re.compile(r"[A-Za-z0-9_-]+\s*:.*")
_CONTINUATION = re.compile(r"\s+\S.*")
_KEY_WITH_SPACE = re.compile(r"[A-Za-z0-9_-]+(?: [A-Za-z0-9_-]+){1,3}: \S.*")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_WRITTEN_BY_GIT = ("Signed-off-by: ", "(cherry picked from commit ")


@dataclass(frozen=True)
class Paragraph:
    """A run of lines without an empty one among them.

    Attributes:
        first: number of its first line in the text it was cut from, counted from 1.
        lines: its lines, at least one, without line feeds.
    """

    first: int
    lines: tuple[str, ...]


def strip_space(text: str) -> str:
    """What ``git stripspace`` (and so ``git am`` and ``git commit``) makes of ``text``.

    Blanks at line ends go, runs of empty lines become one, empty lines at both ends go; a non-empty result ends in
    one line feed.
    """
    kept: list[str] = []
    for line in text.split("\n"):
        stripped = line.rstrip(_BLANKS)
        if stripped or (kept and kept[-1]):
            kept.append(stripped)
    while kept and not kept[-1]:
        kept.pop()
    return "\n".join(kept) + "\n" if kept else ""


def paragraphs(text: str) -> Iterator[Paragraph]:
    """The paragraphs of ``text`` in order; lines that hold only blanks separate them."""
    run: list[str] = []
    for number, line in enumerate([*text.split("\n"), ""], start=1):
        if line.strip(_BLANKS):
            run.append(line)
        elif run:
            yield Paragraph(number - len(run), tuple(run))
            run = []


def split_final_paragraph(text: str) -> tuple[str, tuple[str, ...]]:
    """What comes before the last paragraph, and that paragraph's lines (none where ``text`` is blank)."""
    lines = strip_space(text).split("\n")[:-1]
    start = len(lines)
    while start and lines[start - 1]:
        start -= 1
    return strip_space("\n".join(lines[:start])), tuple(lines[start:])


def is_trailer(line: str) -> bool:
    """Whether the line alone is ``key: value`` with a key of letters, digits, ``-`` and ``_``.

    A web address on a line of its own is one, too: its key is ``https``.
    """
    return _TRAILER.fullmatch(line) is not None


def is_continuation(line: str) -> bool:
    """Whether an indented line continues the trailer above it."""
    return _CONTINUATION.fullmatch(line) is not None


def has_key_with_space(line: str) -> bool:
    """Whether the line means to be a trailer, but with a key that git does not take (``Approved by: me``)."""
    return _KEY_WITH_SPACE.fullmatch(line) is not None


def is_trailer_block(lines: Sequence[str]) -> bool:
    """Whether git or ghstack would read these lines as trailers.

    Either all of them are, or one is of a kind that git itself writes and a quarter of them are.
    """
    own = [line for line in lines if line.strip() and not is_continuation(line)]
    by_git = sum(line.startswith(_WRITTEN_BY_GIT) for line in own)
    trailers = sum(line.startswith(_WRITTEN_BY_GIT) or is_trailer(line) for line in own)
    others = len(own) - trailers
    return trailers > 0 and (others == 0 or (by_git > 0 and trailers * 3 >= others))


def unclosed_fence(text: str) -> str:
    """The fence of a Markdown code block that the end of ``text`` leaves open; empty where there is none.

    As GitHub reads them: a block is closed by a line of the same characters, at least as many, and nothing else.
    """
    fence = ""
    for line in text.splitlines():
        found = _FENCE.match(line)
        if found is None:
            continue
        marks, rest = found[1], found[2]
        if fence and marks.startswith(fence) and not rest.strip():
            fence = ""
        elif not fence and not (marks[0] == "`" and "`" in rest):
            fence = marks
    return fence
