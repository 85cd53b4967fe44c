"""The statements of a function's body: what stands where, whatever Metal or Objective-C++ is written in between.

The grammar that finds definitions does not know message sends, blocks and address spaces, of which bodies are full. The
statements of a body can be told without it: by semicolons, brackets, and the words that begin them. The grammar then
judges one statement at a time, where what it cannot read stays that statement's affair.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import tree_sitter_cpp
from tree_sitter import Language, Node, Parser

from patchstack.tree.cxx import CxxFile, Definition
from patchstack.tree.cxx_mask import closing_brace, code_only

_SIGN = re.compile(rb"[()\[\]{};]|(?<!:):(?!:)")
_BLANK = re.compile(rb"\s*")
_FIRST = re.compile(rb"@?\w+")
_CONTROL = (b"if", b"for", b"while", b"switch", b"else", b"do", b"try", b"@autoreleasepool", b"@synchronized", b"@try")
_GOES_ON = (b"else", b"catch", b"@catch", b"@finally")
_LABELS = (b"case", b"default")
_OPENS_BLOCK = re.compile(rb"(?:[;{})\]^:]|\b(?:else|do|try|mutable|noexcept|const)|@\w+|->[^;{}()]*)\s*\Z")
_MACRO_HEAD = re.compile(rb"\w+\s*\([^=]*\)\s*\Z", re.DOTALL)
_QUALIFIER = re.compile(rb"\b(?:device|constant|threadgroup|thread)\b(?=\s*[\w:])")
_CLOSES = {b"(": b")", b"[": b"]", b"{": b"}"}
_HEAD = b"void f() {"


@dataclass(frozen=True)
class Statement:
    """One statement.

    Attributes:
        start: offset of its first byte.
        end: offset behind its last one.
        text: its code, with the inside of blocks in it blanked: these have statements of their own.
        block: where the block that it stands in begins and ends, its braces excluded.
    """

    start: int
    end: int
    text: bytes
    block: tuple[int, int]

    @property
    def words(self) -> bytes:
        """Its text, each run of blanks as one."""
        return b" ".join(self.text.split())

    @property
    def returns(self) -> bool:
        return re.match(rb"return\b", self.text) is not None

    def has(self, name: str) -> bool:
        """Whether a name stands in it."""
        return re.search(rb"\b%s\b" % re.escape(name.encode()), self.text) is not None

    def calls(self, name: str) -> bool:
        """Whether it calls a function, or sends a message, of that name."""
        word = re.escape(name.encode())
        called = re.search(rb"\b%s\s*(?:<[^;{}()]*>\s*)?\(|\[[^\]]*\b%s\s*[:\]]" % (word, word), self.text)
        return called is not None and name not in self.declares

    def assigns(self, name: str) -> bool:
        """Whether it gives a variable, an element of it or a member of it another value."""
        target = rb"\**\s*%s\s*(?:\[[^\]]*\]\s*|(?:\.|->)\w+\s*)*(?:[-+*/%%&|^]|<<|>>)?=(?!=)"
        return re.match(target % re.escape(name.encode()), self.text) is not None

    @property
    def declares(self) -> tuple[str, ...]:
        """The variables that it declares."""
        return _declared(self.text)


def body_of(file: CxxFile, function: Definition) -> tuple[int, int] | None:
    """Where the body of a function begins and ends, its braces excluded; ``None`` where it cannot be told."""
    code = code_only(file.data[function.start : function.end])
    depth = 0
    for match in re.finditer(rb"[()\[\]{]", code):
        sign = match.group()
        if sign == b"{" and not depth:
            end = closing_brace(code, match.start(), len(code))
            return None if end is None else (function.start + match.end(), function.start + end)
        depth += {b"(": 1, b"[": 1}.get(sign, 0) - (sign in (b")", b"]"))
    return None


def statements_of(file: CxxFile, function: Definition) -> list[Statement]:
    """All statements of a function's body in the order of their beginnings, those in blocks included."""
    body = body_of(file, function)
    if body is None:
        return []
    start = function.start
    code = b" " * start + code_only(file.data[start : function.end])
    return sorted(_statements(code, *body), key=lambda statement: statement.start)


def statements_in(text: bytes) -> list[Statement]:
    """The statements of a text that is to stand in a function's body."""
    return sorted(_statements(code_only(text), 0, len(text)), key=lambda statement: statement.start)


def brackets_pair(text: bytes) -> bool:
    """Whether every bracket of a text has its counterpart."""
    opened: list[bytes] = []
    for match in re.finditer(rb"[()\[\]{}]", code_only(text)):
        sign = match.group()
        if sign in _CLOSES:
            opened.append(_CLOSES[sign])
        elif not opened or opened.pop() != sign:
            return False
    return not opened


def _statements(code: bytes, low: int, high: int) -> Iterator[Statement]:
    at = _skip(code, low)
    while at < high:
        end, blocks = _end(code, at, high)
        text = bytearray(code[at:end])
        for start, stop in blocks:
            text[start - at : stop - at] = b" " * (stop - start)
            yield from _statements(code, start, stop)
        if _first(code, at) not in _LABELS and text.strip(b"; \t\r\n"):
            yield Statement(at, end, bytes(text), (low, high))
        at = _skip(code, end)


def _end(code: bytes, start: int, high: int) -> tuple[int, list[tuple[int, int]]]:
    """Where the statement that begins at an offset ends, and the blocks in it."""
    depth, at, blocks = 0, start, list[tuple[int, int]]()
    first = _first(code, start)
    while match := _SIGN.search(code, at, high):
        sign, at = match.group(), match.end()
        if sign == b"{":
            stop = closing_brace(code, match.start(), high)
            if stop is None:
                return high, blocks
            head = code[start : match.start()]
            is_block = not head.strip() or _OPENS_BLOCK.search(head) is not None
            if is_block:
                blocks.append((at, stop))
            at = stop + 1
            ends = is_block and (not head.strip() or first in _CONTROL or _MACRO_HEAD.match(head))
            if not depth and ends and not _goes_on(code, first, at, high):
                return at, blocks
        elif sign in (b"(", b"["):
            depth += 1
        elif sign in (b")", b"]", b"}"):
            depth -= 1
        elif not depth and (
            (sign == b":" and first in _LABELS) or (sign == b";" and not _goes_on(code, first, at, high))
        ):
            return at, blocks
    return high, blocks


def _goes_on(code: bytes, first: bytes, at: int, high: int) -> bool:
    following = _first(code, min(_skip(code, at), high))
    return following in _GOES_ON or (first == b"do" and following == b"while")


def _first(code: bytes, at: int) -> bytes:
    match = _FIRST.match(code, at)
    return match.group() if match else b""


def _skip(code: bytes, at: int) -> int:
    match = _BLANK.match(code, at)
    return match.end() if match else at


@lru_cache(maxsize=1)
def _parser() -> Parser:
    return Parser(Language(tree_sitter_cpp.language()))


@lru_cache(maxsize=512)
def _declared(text: bytes) -> tuple[str, ...]:
    bare = _QUALIFIER.sub(lambda match: b" " * len(match.group()), _without_values(text))
    tree = _parser().parse(_HEAD + bare + b"}")
    function = tree.root_node.named_child(0)
    body = function.child_by_field_name("body") if function is not None else None
    declaration = body.named_child(0) if body is not None else None
    if declaration is None or declaration.type != "declaration":
        return ()
    found = (name for node in declaration.children_by_field_name("declarator") for name in _names(node))
    return tuple(dict.fromkeys(found))


def _names(node: Node) -> Iterator[str]:
    if node.type == "identifier" and node.text is not None:
        yield node.text.decode(errors="replace")
    elif node.type == "structured_binding_declarator":
        yield from (child.text.decode(errors="replace") for child in node.named_children if child.text)
    else:
        inner = node.child_by_field_name("declarator")
        candidates = (
            [inner] if inner else [c for c in node.named_children if "declarator" in c.type or c.type == "identifier"]
        )
        for child in candidates[:1]:
            yield from _names(child)


def _without_values(text: bytes) -> bytes:
    """A declaration without what its variables begin with, which may be anything."""
    out, depth, at, skips = bytearray(text), 0, 0, False
    for match in re.finditer(rb"[(\[{]|[)\]}]|(?<![=!<>])=(?!=)|[,;]", text):
        sign = match.group()
        if sign in (b"(", b"[", b"{"):
            depth += 1
        elif sign in (b")", b"]", b"}"):
            depth -= 1
        elif depth == 0 and sign == b"=" and not skips:
            skips, at = True, match.start()
        elif depth == 0 and sign in (b",", b";") and skips:
            out[at : match.start()] = b" " * (match.start() - at)
            skips = False
    return bytes(out)
