"""Preprocessor lines, and which of their branches a reader of the file should see.

Nothing is evaluated but ``#if 0`` and its like: a branch that may be compiled is code.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_DIRECTIVE = re.compile(rb"^[ \t]*#[ \t]*(\w+)((?:[^\n\\]|\\\r?\n|\\.)*)", re.MULTILINE)
_BRACE = re.compile(rb"\s*\{")
_NEVER = (b"0", b"false")
_ALWAYS = (b"1", b"true")


@dataclass(frozen=True)
class Directive:
    """One preprocessor line (continuations included).

    Attributes:
        word: ``include``, ``define``, ``if``, ``else``, ...
        rest: what follows the word, blanks at its ends left out.
        start: offset of the first byte of the line.
        end: offset behind its last byte, the line feed not included.
    """

    word: str
    rest: bytes
    start: int
    end: int


@dataclass(frozen=True)
class Branch:
    """One branch of a conditional.

    Attributes:
        condition: the text after ``#if`` or ``#elif``; empty for the other words.
        start: offset behind the line that opens it.
        end: offset of the line that closes it.
    """

    condition: bytes
    start: int
    end: int


@dataclass(frozen=True)
class Conditional:
    """One ``#if`` to its ``#endif``.

    Attributes:
        branches: in order.
        end: offset behind the ``#endif``.
    """

    branches: tuple[Branch, ...]
    end: int


def find_directives(text: bytes) -> list[Directive]:
    """All preprocessor lines of a text whose comments and literals are blanked."""
    return [
        Directive(match.group(1).decode(errors="replace"), match.group(2).strip(), match.start(), match.end())
        for match in _DIRECTIVE.finditer(text)
    ]


def find_conditionals(directives: Sequence[Directive]) -> tuple[list[Conditional], bool]:
    """The conditionals, inner ones before those around them, and whether every ``#if`` has its ``#endif``."""
    found: list[Conditional] = []
    opened: list[list[Directive]] = []
    for directive in directives:
        if directive.word in ("if", "ifdef", "ifndef"):
            opened.append([directive])
        elif directive.word in ("else", "elif", "endif"):
            if not opened:
                return found, False
            opened[-1].append(directive)
            if directive.word == "endif":
                found.append(Conditional(tuple(_branches(opened.pop())), directive.end))
    return found, not opened


def _branches(lines: Sequence[Directive]) -> Iterator[Branch]:
    for line, following in itertools.pairwise(lines):
        condition = line.rest if line.word in ("if", "elif") else b""
        yield Branch(condition, line.end, following.start)


def never_compiled(conditional: Conditional) -> list[Branch]:
    """Branches of ``#if 0``, and those behind an ``#if 1``."""
    never, settled = list[Branch](), False
    for branch in conditional.branches:
        if settled or branch.condition in _NEVER:
            never.append(branch)
        settled = settled or branch.condition in _ALWAYS
    return never


def further_versions(text: bytes, conditional: Conditional, never: Sequence[Branch]) -> list[Branch]:
    """The later ones of branches that are versions of a declaration's beginning, of which a parser can see only one."""
    live = [branch for branch in conditional.branches if branch not in never]
    if not live:
        return []
    first = text[live[0].start : live[0].end]
    head_goes_on = bool(first.strip()) and _BRACE.match(text, conditional.end) is not None
    return live[1:] if head_goes_on or first.count(b"{") != first.count(b"}") else []
