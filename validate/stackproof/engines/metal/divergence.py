"""A static rule: simdgroup functions that some lanes of a simdgroup skip.

``in_range && simd_all(x)`` calls the function only in the lanes whose left side is true. Metal combines those lanes; a
GPU of another make waits for all of them for ever. The run-time detector sees lanes part while both are still running;
this rule also sees what ends right after.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from stackproof.engines.metal.tokens import TokenStream
from stackproof.engines.metal.varying import ASSIGNMENTS, Function, Varying

_SIMDGROUP = re.compile(
    r"(?:simd|quad)_(?:sum|product|min|max|and|or|xor|all|any|ballot|vote_all|vote_any|broadcast\w*|shuffle\w*|prefix_\w+)"
    r"|simdgroup_barrier"
)


def divergent_calls(tokens: TokenStream) -> Iterator[tuple[int, str]]:
    """Index of each such call, and the condition that not all lanes share."""
    if not any(_SIMDGROUP.fullmatch(token.text) for token in tokens):
        return
    varying = Varying(tokens)
    for function in varying.functions:
        for at in range(function.begin, function.end):
            if _SIMDGROUP.fullmatch(tokens[at].text) and tokens.is_text(tokens.skip_angles(at + 1), "("):
                together = 4 if tokens[at].text.startswith("quad_") else 32
                for begin, end in _conditions(tokens, at, function.begin):
                    if _parts_lanes(tokens, varying, function, (begin, end), together):
                        yield at, tokens.source(begin, end)
                        break


def _parts_lanes(
    tokens: TokenStream, varying: Varying, function: Function, place: tuple[int, int], together: int
) -> bool:
    """Whether a condition may be true in some lanes of ``together`` neighbours and false in others."""
    begin, end = place
    parts, at = [begin], begin
    while at < end:
        if tokens.is_text(at, "&&", "||"):
            parts.append(at + 1)
        at = tokens.partner[at] + 1 if tokens.is_text(at, "(", "[", "{") else at + 1
    ends = [*(part - 1 for part in parts[1:]), end]
    return any(
        varying.depends(function, first, last) and not _is_shared(tokens, first, last, together)
        for first, last in zip(parts, ends, strict=True)
    )


def _is_shared(tokens: TokenStream, begin: int, end: int, together: int) -> bool:
    """Whether a comparison that depends on the thread parts no simdgroup: ``thread < 64``, ``thread >= 32``."""
    if end - begin != 3 or not tokens.is_text(begin + 1, "<", ">="):
        return False
    bound = tokens[begin + 2].text.rstrip("uUlL")
    return bound == "simdgroup_size" or (bound.isdigit() and int(bound) % together == 0)


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
    while not tokens.is_text(at - 1, ";", "{", "}", "(", "[", ",", "return", *ASSIGNMENTS):
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
