"""What identifies a piece of C++, Metal or Objective-C++: its tokens, whatever its comments and its layout.

A manifest names by digest the texts that may be replaced. Upstream reflows code and edits comments without changing
what the code does, so neither counts.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator

from patchstack.tree.text import digest, line_number

_TOKEN = re.compile(
    rb"""
      (?P<comment>//(?:[^\n\\]|\\\r?\n|\\.)*|/\*.*?(?:\*/|\Z))
    | (?P<continued>\\[ \t]*\r?\n)
    | (?P<newline>\n)
    | (?:u8|[uUL])?R"(?P<delim>[^\s()\\]{0,16})\(.*?\)(?P=delim)"   # raw string
    | @?"(?:[^"\\\n]|\\\r?\n|\\.)*"                                # string
    | \.?\d(?:[eEpP][+-]|'?[\w.])*                                 # number, with exponent and digit separators
    | '(?:[^'\\\n]|\\.)*'
    | [A-Za-z_\x80-\xff]\w*
    | <=>|<<=|->\*|\.\.\.|::|\+\+|--|->|<<|<=|>=|==|!=|&&|\|\||\+=|-=|\*=|/=|%=|&=|\|=|\^=|\#\#|\.\*
    | \S                                                           # ">>" is two: it may close two template lists
    """,
    re.VERBOSE | re.DOTALL,
)
_MARKS = re.compile(rb"^[ \t]*(?://[/!<]*|/\*+|\*+/|\*)|\*+/[ \t]*$", re.MULTILINE)


def code_digest(text: bytes) -> str:
    """``tokens:`` and 16 hexadecimal digits of the tokens of ``text``; comments, blanks and line breaks are none."""
    return _named(code_tokens(text))


def comment_digest(text: bytes) -> str:
    """The same of the words of comment lines; where the lines break does not matter."""
    return _named(_words(text))


def is_known(text: bytes, digests: Iterable[str]) -> bool:
    """Whether a piece of code is one of those that are meant: by its tokens, or by all of its text (``sha256:``)."""
    return bool({code_digest(text), digest(text)}.intersection(digests))


def is_known_comment(text: bytes, digests: Iterable[str]) -> bool:
    """The same of comment lines."""
    return bool({comment_digest(text), digest(text)}.intersection(digests))


def code_tokens(text: bytes) -> Iterator[bytes]:
    """The tokens of a piece of code; the end of a preprocessor line is one, since it means something."""
    starts_line, in_directive = True, False
    for match in _TOKEN.finditer(text):
        if match.group("comment") is not None or match.group("continued") is not None:
            continue
        if match.group("newline") is not None:
            if in_directive:
                yield b"\n"
            starts_line, in_directive = True, False
            continue
        in_directive = in_directive or (starts_line and match.group() == b"#")
        starts_line = False
        yield match.group()


def comments_of(text: bytes) -> list[tuple[int, str]]:
    """The comments of a piece of code, those on lines one below the other together: 1-based line, and the words."""
    found: list[tuple[int, int, bytes]] = []
    for match in _TOKEN.finditer(text):
        if match.group("comment") is None:
            continue
        line = line_number(text, match.start())
        between = text[found[-1][1] : match.start()] if found else b"x"
        if not between.strip() and between.count(b"\n") <= 1:
            first, _, words = found.pop()
            found.append((first, match.end(), words + b"\n" + match.group()))
        else:
            found.append((line, match.end(), match.group()))
    return [(line, b" ".join(_words(comment)).decode(errors="replace")) for line, _, comment in found]


def _words(comment: bytes) -> list[bytes]:
    return _MARKS.sub(b" ", comment).split()


def _named(tokens: Iterable[bytes]) -> str:
    return "tokens:" + hashlib.sha256(b"\0".join(tokens)).hexdigest()[:16]
