"""Where the declarations of a source begin, and what the types in them are made of.

The rules about address spaces and storage concern declarations at every level, the members of templates that nothing
instantiates included, which Clang does not look into. Here a token stream is cut into statements, each with the kind of
scope that it stands in.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from stackproof.engines.metal.tokens import TokenStream

SPACES = frozenset({"device", "constant", "thread", "threadgroup", "threadgroup_imageblock", "object_data", "ray_data"})
_QUALIFIERS = frozenset(
    {"const", "volatile", "static", "constexpr", "inline", "typename", "mutable", "extern", "friend", "restrict"}
    | {"__restrict", "__restrict__", "struct", "class", "union", "enum", "kernel", "explicit", "__always_inline__"}
)
_NUMBERS = frozenset({"unsigned", "signed", "int", "long", "short", "char"})
# What no `::` can follow: `void ::a::f()` names a function.
_WORDS = frozenset({"void", "bool", "float", "half", "bfloat", "double", "uint", "ushort", "uchar", "ulong", "size_t"})
_NO_TYPES = frozenset(
    {"return", "delete", "throw", "goto", "case", "else", "using", "typedef", "namespace", "template", "static_assert"}
    | {"break", "continue", "do", "if", "for", "while", "switch", "default", "public", "private", "protected"}
    | {"operator", "sizeof", "new", "this", "true", "false", "nullptr", "auto", "try", "alignof"}
)
_HEADS = frozenset({"alignas", "__attribute__", "coherent", "_Alignas"})


class Scope(enum.Enum):
    """What kind of braces a statement stands in."""

    PROGRAM = "program"
    CLASS = "class"
    KERNEL = "kernel"
    FUNCTION = "function"
    VALUES = "values"


@dataclass(frozen=True)
class Statement:
    """One declaration or statement.

    Attributes:
        begin: index of its first token, after ``template <...>``.
        scope: of the innermost braces around it.
    """

    begin: int
    scope: Scope


@dataclass(frozen=True)
class Declarator:
    """A type and what follows it up to the name.

    Attributes:
        words: qualifiers and type in front of the first ``*`` or ``&``.
        type_name: the last word of the type, ``auto`` included; empty for ``decltype``.
        bare: where a ``*`` or ``&`` stands whose target has no address space; 0 where there is none.
        own: qualifiers of the declared object itself.
        indirect: whether there is any ``*`` or ``&``.
        end: index of the token after all of that.
    """

    words: tuple[str, ...]
    type_name: str
    bare: int
    own: frozenset[str]
    indirect: bool
    end: int


@lru_cache(maxsize=8)
def statements(tokens: TokenStream) -> tuple[Statement, ...]:
    """Every declaration or statement of the source, those inside of others after what they stand in."""
    return tuple(_statements(tokens))


def _statements(tokens: TokenStream) -> Iterator[Statement]:
    stack = [Scope.PROGRAM]
    begin = 0
    for index, token in enumerate(tokens):
        text = token.text if token.kind == "operator" else ""
        if text == "{":
            if begin < index and stack[-1] is not Scope.VALUES:
                yield from _statement(tokens, begin, stack[-1])
            stack.append(_opened(tokens, begin, index, stack[-1]))
            begin = index + 1
        elif text == "}":
            opened = stack.pop()
            if stack[-1] is not Scope.VALUES and opened is not Scope.VALUES:
                begin = index + 1
        elif text == ";":
            if begin < index and stack[-1] is not Scope.VALUES:
                yield from _statement(tokens, begin, stack[-1])
            begin = index + 1
        elif text == "(" and tokens.is_text(index - 1, "for"):
            yield from _statement(tokens, index + 1, stack[-1])
        elif text == ":" and tokens.is_text(index - 1, "public", "private", "protected"):
            begin = index + 1


def _statement(tokens: TokenStream, begin: int, scope: Scope) -> Iterator[Statement]:
    while tokens.is_text(begin, "template") and tokens.is_text(begin + 1, "<"):
        after = tokens.skip_angles(begin + 1)
        if after == begin + 1:
            return
        begin = after
    # The rest of a statement that braces interrupt (`S s{1}, t;`) begins with an operator.
    if begin < len(tokens) and (tokens[begin].kind == "word" or tokens.is_text(begin, "[", "::")):
        yield Statement(begin, scope)


def _opened(tokens: TokenStream, begin: int, brace: int, outside: Scope) -> Scope:
    """The kind of the braces that open at ``brace``, after a head that begins at ``begin``."""
    words, calls, assigned, at = set(), False, False, begin
    while at < brace:
        if tokens.is_text(at, "<"):
            at = max(tokens.skip_angles(at), at + 1)
            continue
        if tokens[at].text in ("(", "[") and at in tokens.partner and tokens.partner[at] < brace:
            calls = calls or (tokens.is_text(at, "(") and not tokens.is_text(at - 1, *_HEADS))
            if tokens.is_text(at, "[") and tokens.is_text(at + 1, "["):
                words |= {tokens[i].text for i in range(at + 2, tokens.partner[at])} & {"kernel"}
            at = tokens.partner[at]
        assigned = assigned or tokens.is_text(at, "=")
        words.add(tokens[at].text)
        at += 1
    if outside is Scope.VALUES:
        return outside
    if {"struct", "class", "union"} & words and not calls:
        return Scope.CLASS
    if "enum" in words or (assigned and "operator" not in words):
        return Scope.VALUES
    if outside in (Scope.PROGRAM, Scope.CLASS):
        if "namespace" in words or ("extern" in words and not calls):
            return Scope.PROGRAM
        if not calls and "operator" not in words:
            return Scope.VALUES
        return Scope.KERNEL if "kernel" in words else Scope.FUNCTION
    is_block = begin == brace or calls or bool({"do", "else", "try", "default", "case"} & words)
    return outside if is_block or tokens.is_text(brace - 1, ":") else Scope.VALUES


def declarator(tokens: TokenStream, begin: int, spaced: frozenset[str] = frozenset()) -> Declarator | None:
    """The type that begins at ``begin`` with its ``*`` and ``&``; ``None`` where no type does.

    Args:
        tokens: of the source.
        begin: index of the first token.
        spaced: names of types that bring an address space of their own.
    """
    found = _type(tokens, begin)
    if found is None:
        return None
    words, name, at = found
    segment = set(words)
    has_space = bool(segment & SPACES) or name in spaced or name == "auto"
    bare, indirect = 0, False
    while at < len(tokens) and (tokens.is_text(at, "*", "&", "&&") or _qualifies(tokens, at)):
        if tokens.is_text(at, "*", "&", "&&"):
            bare = bare or (0 if has_space else at)
            segment, has_space, indirect = set(), False, True
        else:
            segment.add(tokens[at].text)
            has_space = has_space or tokens[at].text in SPACES
        at += 1
    return Declarator(tuple(words), name, bare, frozenset(segment), indirect, at)


def _qualifies(tokens: TokenStream, at: int) -> bool:
    return tokens[at].kind == "word" and tokens[at].text in SPACES | _QUALIFIERS


def _type(tokens: TokenStream, at: int) -> tuple[list[str], str, int] | None:
    """Its words, the name, and the index after it with the qualifiers that follow."""
    words: list[str] = []
    name = ""
    named = False
    while at < len(tokens):
        text, kind = tokens[at].text, tokens[at].kind
        if text in _HEADS and tokens.is_text(at + 1, "("):
            at = tokens.partner[at + 1] + 1
        elif text == "coherent" and kind == "word":
            at += 1
        elif text == "[" and tokens.is_text(at + 1, "["):
            at = tokens.partner[at] + 1
        elif kind == "word" and text in SPACES | _QUALIFIERS:
            words.append(text)
            at += 1
        elif kind == "word" and text in _NUMBERS and (not named or name in _NUMBERS):
            words.append(text)
            named, name, at = True, text, at + 1
        elif not named and text == "decltype" and tokens.is_text(at + 1, "("):
            named, at = True, tokens.partner[at + 1] + 1
        elif not named and text in _WORDS | {"auto"}:
            words.append(text)
            named, name, at = True, text, at + 1
        elif not named and ((kind == "word" and text not in _NO_TYPES) or text == "::"):
            named = True
            name, at = _path(tokens, at)
            words.append(name)
        else:
            break
    return (words, name, at) if named else None


def _path(tokens: TokenStream, at: int) -> tuple[str, int]:
    """The last word of ``a::b<c>::d`` and the index after it."""
    name = ""
    while at < len(tokens):
        if tokens.is_text(at, "::"):
            at += 1
        if tokens.is_text(at, "template"):
            at += 1
        if at >= len(tokens) or tokens[at].kind != "word":
            break
        name = tokens[at].text
        at = tokens.skip_angles(at + 1)
        if not tokens.is_text(at, "::"):
            break
    return name, at


@lru_cache(maxsize=8)
def spaced_types(tokens: TokenStream) -> frozenset[str]:
    """Names of types whose definition has an address space: ``using P = device float;``."""
    found = set()
    for index, token in enumerate(tokens):
        if token.text == "using" and tokens.is_text(index + 2, "="):
            written = declarator(tokens, index + 3)
            name = tokens[index + 1].text
        elif token.text == "typedef" and token.kind == "word":
            written = declarator(tokens, index + 1)
            name = tokens[written.end].text if written and written.end < len(tokens) else ""
        else:
            continue
        if written and (written.own & SPACES if written.indirect else set(written.words) & SPACES):
            found.add(name)
    return frozenset(found)
