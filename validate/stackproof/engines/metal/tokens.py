"""Preprocessed C++ as tokens with their places: just enough structure to edit the text in place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, overload

from stackproof.engines.errors import RewriteError

_TOKEN = re.compile(
    r'(?P<marker>^\#[^\n]*$)|(?P<space>\s+)|(?P<word>[A-Za-z_]\w*)|(?P<string>"(?:\\.|[^"\\\n])*")'
    r"|(?P<char>'(?:\\.|[^'\\\n])*')|(?P<number>\.?\d(?:[eEpP][+-]|[\w.'])*)"
    r"|(?P<operator>\.\.\.|->|::|<<=|>>=|[-+*/%&|^=!<>]=|&&|\|\||\+\+|--|.)",
    re.MULTILINE,
)
_MARKER = re.compile(r'#\s*(?:line\s+)?(\d+)\s+"((?:\\.|[^"\\])*)"')
_OPEN = {"(": ")", "[": "]", "{": "}"}


class Token(NamedTuple):
    """One token; a tuple, since a source has tens of thousands.

    Attributes:
        kind: ``word``, ``string``, ``char``, ``number`` or ``operator``.
        text: as written.
        start: offset in the preprocessed text; ``end`` is one past the last character.
        file: source file by the line markers.
        line: 1-based line in ``file``.
    """

    kind: str
    text: str
    start: int
    end: int
    file: str
    line: int


@dataclass(frozen=True)
class Edit:
    """Replace ``text[start:end]`` by ``replacement``, which holds no newline."""

    start: int
    end: int
    replacement: str


class TokenStream(Sequence[Token]):
    """The tokens of a preprocessed text, with brackets matched.

    Attributes:
        text: the preprocessed text.
        partner: index of the matching bracket, for every bracket.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = list(_scan(text))
        self.partner = _match(self._tokens)

    def __len__(self) -> int:
        return len(self._tokens)

    @overload
    def __getitem__(self, index: int) -> Token: ...

    @overload
    def __getitem__(self, index: slice) -> list[Token]: ...

    def __getitem__(self, index: int | slice) -> Token | list[Token]:
        return self._tokens[index]

    def __iter__(self) -> Iterator[Token]:
        return iter(self._tokens)

    def is_text(self, index: int, *texts: str) -> bool:
        """Whether there is a token at ``index`` and it is one of ``texts``."""
        return 0 <= index < len(self._tokens) and self._tokens[index].text in texts

    def source(self, begin: int, end: int) -> str:
        """The text of the tokens ``begin`` up to, not including, ``end``, on one line."""
        if begin >= end:
            return ""
        return " ".join(token.text for token in self._tokens[begin:end])

    def skip_angles(self, index: int) -> int:
        """The index after the template argument list that opens at ``index``; ``index`` itself when none does."""
        if not self.is_text(index, "<"):
            return index
        depth = 0
        at = index
        while at < len(self._tokens):
            text = self._tokens[at].text
            if text in _OPEN and at in self.partner:
                at = self.partner[at]
            elif text == "<":
                depth += 1
            elif text == ">":
                depth -= 1
                if depth == 0:
                    return at + 1
            elif text in (";", "{", "}"):
                break
            at += 1
        return index

    def split(self, begin: int, end: int) -> list[tuple[int, int]]:
        """The ranges between commas at the top level of ``begin`` to ``end``; no range for an empty list."""
        ranges = []
        start = at = begin
        while at < end:
            text = self._tokens[at].text
            if text in _OPEN and at in self.partner:
                at = self.partner[at]
            elif text == "<":
                after = self.skip_angles(at)
                at = after - 1 if after > at else at
            elif text == ",":
                ranges.append((start, at))
                start = at + 1
            at += 1
        if start < end or ranges:
            ranges.append((start, end))
        return ranges

    def apply(self, edits: Sequence[Edit]) -> str:
        """The text with the edits made; insertions at one place keep their order."""
        out = []
        at = 0
        for edit in sorted(edits, key=lambda e: (e.start, e.end)):
            if edit.start < at:
                raise RewriteError("two rewrites of one place", found=self.text[edit.start : edit.end])
            out += [self.text[at : edit.start], edit.replacement]
            at = edit.end
        return "".join(out) + self.text[at:]


def _scan(text: str) -> Iterator[Token]:
    file, line, seen = "", 1, 0
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or ""
        line += text.count("\n", seen, match.start())
        seen = match.start()
        if kind == "marker":
            if marker := _MARKER.match(match[0]):
                file, line = marker[2], int(marker[1])
                # The newline after the marker would count one too many.
                line -= 1
        elif kind != "space":
            yield Token(kind, match[0], match.start(), match.end(), file, line)


def _match(tokens: Sequence[Token]) -> dict[int, int]:
    partner: dict[int, int] = {}
    stack: list[int] = []
    for index, token in enumerate(tokens):
        if token.kind != "operator":
            continue
        if token.text in _OPEN:
            stack.append(index)
        elif token.text in _OPEN.values():
            if not stack or _OPEN[tokens[stack[-1]].text] != token.text:
                raise RewriteError(f"unbalanced '{token.text}'", where=f"{token.file}:{token.line}")
            opened = stack.pop()
            partner[opened], partner[index] = index, opened
    if stack:
        token = tokens[stack[-1]]
        raise RewriteError(f"'{token.text}' is never closed", where=f"{token.file}:{token.line}")
    return partner
