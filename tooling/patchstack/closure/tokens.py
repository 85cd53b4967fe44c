"""The tokens of a C++, Metal or Objective-C++ file with their offsets, brackets and template arguments matched.

The grammar that finds the anchors reads only the skeleton of a file. Names stand in function bodies too, which hold
message sends, blocks, address spaces and macros; a flat list of tokens can be read in all of them.

It is for text that may be broken anywhere, so that brackets that do not match are left alone. The Metal front end has
tokens of its own: those of one preprocessed unit, with the file and line of each, where such a bracket is an error.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_TOKEN = re.compile(
    r"""
    \s*(?:
      (?P<identifier>[A-Za-z_]\w*)
    | (?P<number>\.?\d(?:'?[\w.]|(?<=[eEpP])[+-])*)
    | (?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    | (?P<sign>::|->|\.\.\.|\+\+|--|&&|\|\||\#\#|<<=|<<|[<>=!+\-*/%&|^]=|\S)
    )
    """,
    re.VERBOSE,
)
_RAW = re.compile(r'(?:u8|[uUL])?R"([^\s()\\]{0,16})\(.*?\)\1"', re.DOTALL)
_PAIRS = {"(": ")", "[": "]", "{": "}"}
_NOT_IN_ARGUMENTS = frozenset({";", "{", "}", "&&", "||", "?", "=", ".", "->", "+=", "-=", "++", "--"})
_MOST_ARGUMENTS = 160  # tokens; a comparison is not followed further than that
_BEFORE_VALUE = frozenset({"operator"})


class Tokens:
    """A list of tokens.

    Attributes:
        texts: each token as written; blanks, comments and preprocessor lines are left out.
        starts: offset of each in the file.
        names: whether each is an identifier.
        closing: for each opening bracket, and each ``<`` that opens template arguments, the token that closes it.
        opening: the reverse.
        around: for each token, the opening bracket it stands in directly; -1 for none.
    """

    def __init__(self, text: str, start: int = 0) -> None:
        """Read a text in which comments and preprocessor lines are blanked.

        Args:
            start: offset of the text in its file.
        """
        if 'R"' in text:
            text = _RAW.sub(lambda match: '"' + " " * (len(match.group()) - 2) + '"', text)
        matches = [(match, match.lastgroup or "") for match in _TOKEN.finditer(text)]
        self.texts: list[str] = [match[kind] for match, kind in matches]
        self.starts: list[int] = [start + match.start(kind) for match, kind in matches]
        self.names: list[bool] = [kind == "identifier" for _, kind in matches]
        self.closing: dict[int, int] = {}
        self.opening: dict[int, int] = {}
        self.around = self._match_brackets()
        self._match_angles()

    def __len__(self) -> int:
        return len(self.texts)

    def at(self, index: int) -> str:
        """The token there; an empty string outside the list."""
        return self.texts[index] if 0 <= index < len(self.texts) else ""

    def is_name(self, index: int) -> bool:
        """Whether there is an identifier there."""
        return 0 <= index < len(self.names) and self.names[index]

    def behind_arguments(self, index: int) -> int:
        """The token behind template arguments that open at ``index``; ``index`` itself where none do."""
        return self.closing[index] + 1 if self.at(index) == "<" and index in self.closing else index

    def _match_brackets(self) -> list[int]:
        around: list[int] = []
        opened: list[int] = []
        for index, text in enumerate(self.texts):
            if text in (")", "]", "}") and opened and _PAIRS[self.texts[opened[-1]]] == text:
                begin = opened.pop()
                self.closing[begin], self.opening[index] = index, begin
            around.append(opened[-1] if opened else -1)
            if text in _PAIRS:
                opened.append(index)
        return around

    def _match_angles(self) -> None:
        texts = self.texts
        for index, text in enumerate(texts):
            if text != "<" or index in self.closing or not self.is_name(index - 1):
                continue
            if texts[index - 1] in _BEFORE_VALUE:
                continue
            opened = [index]
            at = index + 1
            stop = min(len(texts), index + _MOST_ARGUMENTS)
            found: list[tuple[int, int]] = []
            while at < stop and opened:
                here = texts[at]
                if here == "<" and (self.is_name(at - 1)):
                    opened.append(at)
                elif here == ">":
                    found.append((opened.pop(), at))
                elif here in ("(", "["):
                    at = self.closing.get(at, stop)
                elif here in _NOT_IN_ARGUMENTS or here in (")", "]"):
                    break
                at += 1
            if not opened:
                for begin, end in found:
                    self.closing[begin], self.opening[end] = end, begin


def split_at_commas(tokens: Tokens, begin: int, end: int, *, angles: bool) -> list[tuple[int, int]]:
    """The parts of a bracketed list, as ranges of tokens; commas inside brackets do not count.

    Args:
        begin: the opening bracket.
        end: the closing one.
        angles: whether commas in template arguments are inside brackets too, as they are not for the preprocessor.
    """
    parts: list[tuple[int, int]] = []
    at = start = begin + 1
    while at < end:
        text = tokens.texts[at]
        if text == ",":
            parts.append((start, at))
            start = at + 1
        elif at in tokens.closing and (angles or text != "<"):
            at = tokens.closing[at]
        at += 1
    if parts or start < end:
        parts.append((start, end))
    return parts


def texts_of(tokens: Tokens, part: tuple[int, int]) -> Sequence[str]:
    """The tokens of a range."""
    return tokens.texts[part[0] : part[1]]
