"""A static rule: simdgroup functions that some lanes of a simdgroup skip.

``in_range && simd_all(x)`` calls the function only in the lanes whose left side is true. Metal combines those lanes; a
GPU of another make waits for all of them for ever. The run-time detector sees lanes part while both are still running;
this rule also sees what ends right after. What depends on the thread is followed by name: from the kernels' thread
attributes through assignments and calls, but not through what a function writes to its arguments, nor through which
branch assigned.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from stackproof.metal.tokens import TokenStream

_THREAD = re.compile(
    r"thread_(?:position_in_(?:grid|threadgroup)|index_in_(?:threadgroup|simdgroup|quadgroup|quad_group))"
    r"|quadgroup_index_in_threadgroup"
)
_SIMDGROUP = re.compile(
    r"(?:simd|quad)_(?:sum|product|min|max|and|or|xor|all|any|ballot|vote_all|vote_any|broadcast\w*|shuffle\w*|prefix_\w+)"
    r"|simdgroup_barrier"
)
# What these return is the same in all lanes.
_UNIFORM = re.compile(r"simd_(?:sum|product|min|max|and|or|xor|all|any|ballot|broadcast|broadcast_first)")
_ASSIGN = frozenset({"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="})
_NOT_A_FUNCTION = frozenset({"if", "for", "while", "switch", "return", "sizeof", "alignas", "decltype"})


@dataclass
class _Function:
    """One function definition; indices of tokens.

    Attributes:
        name: without scopes.
        parameters: names, in order.
        begin: of its body, at the brace.
        end: of its body, at the brace.
        varies: names in it that depend on the thread.
    """

    name: str
    parameters: list[str]
    begin: int
    end: int
    varies: set[str] = field(default_factory=set)


def divergent_calls(tokens: TokenStream) -> Iterator[tuple[int, str]]:
    """Index of each such call, and the condition that not all lanes share."""
    functions = _functions(tokens)
    while _spread(tokens, functions):
        pass
    for function in functions:
        for at in range(function.begin, function.end):
            if _SIMDGROUP.fullmatch(tokens[at].text) and tokens.is_text(tokens.skip_angles(at + 1), "("):
                together = 4 if tokens[at].text.startswith("quad_") else 32
                for begin, end in _conditions(tokens, at, function.begin):
                    if _parts_lanes(tokens, begin, end, function.varies, together):
                        yield at, tokens.source(begin, end)
                        break


def _parts_lanes(tokens: TokenStream, begin: int, end: int, varies: set[str], together: int) -> bool:
    """Whether a condition may be true in some lanes of ``together`` neighbours and false in others."""
    parts, at = [begin], begin
    while at < end:
        if tokens.is_text(at, "&&", "||"):
            parts.append(at + 1)
        at = tokens.partner[at] + 1 if tokens.is_text(at, "(", "[", "{") else at + 1
    ends = [*(part - 1 for part in parts[1:]), end]
    return any(
        _words(tokens, first, last) & varies and not _is_shared(tokens, first, last, together)
        for first, last in zip(parts, ends, strict=True)
    )


def _is_shared(tokens: TokenStream, begin: int, end: int, together: int) -> bool:
    """Whether a comparison that depends on the thread parts no simdgroup: ``thread < 64``, ``thread >= 32``."""
    if end - begin != 3 or not tokens.is_text(begin + 1, "<", ">="):
        return False
    bound = tokens[begin + 2].text.rstrip("uUlL")
    return bound == "simdgroup_size" or (bound.isdigit() and int(bound) % together == 0)


def _functions(tokens: TokenStream) -> list[_Function]:
    found = []
    last = 0
    for at, token in enumerate(tokens):
        if token.text != "(" or at < last or tokens[at - 1].kind != "word" or tokens[at - 1].text in _NOT_A_FUNCTION:
            continue
        body = tokens.partner[at] + 1
        body += tokens.is_text(body, "const")
        if not tokens.is_text(body, "{"):
            continue
        last = tokens.partner[body]
        parts = tokens.split(at + 1, tokens.partner[at])
        names = [_declared(tokens, begin, end) for begin, end in parts]
        varies = {
            name
            for name, (begin, end) in zip(names, parts, strict=True)
            if any(_THREAD.fullmatch(tokens[i].text) for i in range(begin, end))
        }
        found.append(_Function(tokens[at - 1].text, names, body, last, varies))
    return found


def _declared(tokens: TokenStream, begin: int, end: int) -> str:
    """Name of a parameter: the last word before attributes and a default."""
    name = ""
    for at in range(begin, end):
        if tokens[at].text in ("[", "="):
            break
        if tokens[at].kind == "word":
            name = tokens[at].text
    return name


def _spread(tokens: TokenStream, functions: list[_Function]) -> bool:
    """One round of following values; whether anything came of it."""
    before = sum(len(one.varies) for one in functions)
    by_name: dict[str, list[_Function]] = {}
    for one in functions:
        by_name.setdefault(one.name, []).append(one)
    for function in functions:
        for at in range(function.begin + 1, function.end):
            if tokens[at].text in _ASSIGN:
                if _words(tokens, at + 1, _end_of_value(tokens, at + 1)) & function.varies:
                    function.varies.add(_assigned(tokens, at - 1))
            elif tokens[at].text in by_name and tokens.is_text(tokens.skip_angles(at + 1), "("):
                opened = tokens.skip_angles(at + 1)
                arguments = tokens.split(opened + 1, tokens.partner[opened])
                varying = [bool(_words(tokens, *one) & function.varies) for one in arguments]
                for called in by_name[tokens[at].text]:
                    called.varies |= {name for name, varies in zip(called.parameters, varying, strict=False) if varies}
    for function in functions:
        function.varies.discard("")
    return sum(len(one.varies) for one in functions) > before


def _assigned(tokens: TokenStream, at: int) -> str:
    """The variable that is assigned, of ``x``, ``x[i].y`` and the like; none where memory is written through it."""
    while tokens.is_text(at, "]") or tokens.is_text(at - 1, ".", "->"):
        at = tokens.partner[at] - 1 if tokens.is_text(at, "]") else at - 2
    return tokens[at].text if tokens[at].kind == "word" else ""


def _end_of_value(tokens: TokenStream, at: int) -> int:
    while at < len(tokens) and not tokens.is_text(at, ";", ",", ")", "]", "}"):
        at = tokens.partner[at] + 1 if tokens.is_text(at, "(", "[", "{") else at + 1
    return at


def _words(tokens: TokenStream, begin: int, end: int) -> set[str]:
    """Names of variables in an expression, without those inside of what is the same in all lanes."""
    found = set()
    at = begin
    while at < end:
        token = tokens[at]
        opened = tokens.skip_angles(at + 1)
        if _UNIFORM.fullmatch(token.text) and tokens.is_text(opened, "("):
            at = tokens.partner[opened]
        elif token.kind == "word" and not tokens.is_text(at - 1, ".", "->", "::"):
            found.add(token.text)
        at += 1
    return found


def _conditions(tokens: TokenStream, at: int, begin: int) -> Iterator[tuple[int, int]]:
    """What decides whether the call at ``at`` is made: outwards, up to the function's body at ``begin``."""
    while at > begin:
        operators, start = _leftwards(tokens, at)
        yield from ((start, operator) for operator in operators)
        first = _statement(tokens, start)
        if tokens.is_text(first - 1, ")"):
            yield from _governing(tokens, first - 1)
        at = _enclosing(tokens, first)
        if tokens.is_text(at, "{") and tokens.is_text(at - 1, ")"):
            yield from _governing(tokens, at - 1)


def _leftwards(tokens: TokenStream, at: int) -> tuple[list[int], int]:
    """The short-circuiting operators left of a place in its own bracket, and where its expression begins."""
    operators = []
    while not tokens.is_text(at - 1, ";", "{", "}", "(", "[", ",", "return", *_ASSIGN):
        before = tokens[at - 1].text
        if before in (")", "]"):
            opened = tokens.partner[at - 1]
            if before == ")" and tokens.is_text(opened - 1, "if", "for", "while"):
                break
            at = opened
            continue
        if before in ("&&", "||", "?"):
            operators.append(at - 1)
        at -= 1
    return operators, at


def _statement(tokens: TokenStream, at: int) -> int:
    """Where the statement, or the argument, that holds a place begins."""
    while not tokens.is_text(at - 1, ";", "{", "}", "(", "["):
        if tokens.is_text(at - 1, ")", "]"):
            opened = tokens.partner[at - 1]
            if tokens.is_text(opened - 1, "if", "for", "while"):
                break
            at = opened
        else:
            at -= 1
    return at


def _governing(tokens: TokenStream, closed: int) -> Iterator[tuple[int, int]]:
    """The condition of an ``if`` or a loop whose head ends with the bracket at ``closed``."""
    opened = tokens.partner[closed]
    if tokens.is_text(opened - 1, "if", "while"):
        yield opened + 1, closed
    elif tokens.is_text(opened - 1, "for"):
        parts = [at for at in range(opened + 1, closed) if tokens.is_text(at, ";")]
        if len(parts) == 2:
            yield parts[0] + 1, parts[1]


def _enclosing(tokens: TokenStream, at: int) -> int:
    """The bracket around a place."""
    at -= 1
    while not tokens.is_text(at, "(", "[", "{"):
        at = tokens.partner[at] - 1 if tokens.is_text(at, ")", "]", "}") else at - 1
    return at
