"""Features of Metal that Clang has no word for, as edits: function constants, results in ``thread``, ``coherent``.

A function constant gets its value when a pipeline is made. Here a host gives the values before the source is compiled;
one that it does not give is zero and counts as not defined.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from stackproof.engines.metal.declarations import Scope, declarator, statements
from stackproof.engines.metal.tokens import Edit, TokenStream


def function_constants(tokens: TokenStream, values: Mapping[int, str]) -> Iterator[Edit]:
    """``constant T x [[function_constant(n)]];`` becomes a constant of this value.

    Args:
        tokens: of the source.
        values: literals by index of the constant.
    """
    indices: dict[str, int] = {}
    for statement in statements(tokens):
        if statement.scope is not Scope.PROGRAM:
            continue
        written = declarator(tokens, statement.begin)
        if written is None or not tokens.is_text(written.end + 3, "function_constant"):
            continue
        close = tokens.partner[written.end + 1]
        name, number = tokens[written.end].text, tokens[written.end + 5].text
        indices[name] = int(number) if number.isdigit() else -1
        kind = " ".join(word for word in written.words if word not in ("constant", "const", "static", "constexpr"))
        value = values.get(indices[name], "0")
        if "constexpr" not in written.words:
            yield Edit(tokens[statement.begin].start, tokens[statement.begin].start, "constexpr ")
        yield Edit(tokens[written.end + 1].start, tokens[close].end, f"= {kind}({value})")
    for index, token in enumerate(tokens):
        if token.text == "is_function_constant_defined" and tokens.is_text(index + 1, "("):
            close = tokens.partner[index + 1]
            defined = indices.get(tokens[index + 2].text, -1) in values
            yield Edit(token.start, tokens[close].end, "true" if defined else "false")


def thread_results(tokens: TokenStream) -> Iterator[Edit]:
    """A member function that returns ``thread T&`` or ``thread T*`` hands out parts of an object of the thread."""
    for statement in statements(tokens):
        if statement.scope is not Scope.CLASS:
            continue
        written = declarator(tokens, statement.begin)
        if written is None or not written.indirect or "thread" not in written.words:
            continue
        open_list = written.end + 1
        if tokens.is_text(written.end, "operator"):
            while open_list < len(tokens) and not tokens.is_text(open_list, "("):
                open_list += 1
            if tokens.is_text(open_list + 1, ")") and tokens.is_text(open_list + 2, "("):
                open_list += 2
        if not tokens.is_text(open_list, "("):
            continue
        brace = tokens.partner[open_list] + 1
        while tokens.is_text(brace, "const", "constexpr", "noexcept"):
            brace += 1
        if tokens.is_text(brace, "{"):
            yield from _returned(tokens, brace, pointer=tokens.is_text(written.end - 1, "*"))


def thread_constructors(tokens: TokenStream) -> Iterator[Edit]:
    """``S() thread`` loses its ``thread``: what Clang makes for the time of an expression has no address space."""
    for statement in statements(tokens):
        if statement.scope is not Scope.CLASS:
            continue
        written = declarator(tokens, statement.begin)
        if written and not written.indirect and tokens.is_text(written.end, "("):
            after = tokens.partner[written.end] + 1
            if tokens.is_text(after, "thread"):
                yield Edit(tokens[after].start, tokens[after].end, "")


def _returned(tokens: TokenStream, brace: int, *, pointer: bool) -> Iterator[Edit]:
    function = "as_thread_pointer" if pointer else "as_thread"
    at = brace
    while at < tokens.partner[brace]:
        if tokens.is_text(at, "return") and not tokens.is_text(at + 1, ";"):
            end = at
            while not tokens.is_text(end, ";"):
                end = tokens.partner[end] + 1 if tokens.is_text(end, "(", "[", "{") else end + 1
            yield Edit(tokens[at].end, tokens[at].end, f" __metal_host::{function}(")
            yield Edit(tokens[end].start, tokens[end].start, ")")
            at = end
        at += 1


def constant_tables(tokens: TokenStream) -> Iterator[Edit]:
    """``constexpr constant float t[4]`` is an array that ``constant float*`` can point to, ``const`` or not."""
    for statement in statements(tokens):
        written = declarator(tokens, statement.begin)
        if (
            written is None
            or statement.scope is not Scope.PROGRAM
            or written.type_name not in ("float", "half")
            or not {"constexpr", "constant"} <= set(written.words)
            or not tokens.is_text(written.end + 1, "[")
        ):
            continue
        for at in range(statement.begin, written.end):
            if tokens.is_text(at, "constexpr", "const"):
                yield Edit(tokens[at].start, tokens[at].end, "")


def coherent_buffers(tokens: TokenStream) -> Iterator[Edit]:
    """``coherent`` and ``coherent(system)`` say who sees a write; threads of a host see everything."""
    for index, token in enumerate(tokens):
        if token.text != "coherent" or token.kind != "word" or tokens.is_text(index - 1, ".", "->"):
            continue
        close = tokens.partner[index + 1] if tokens.is_text(index + 1, "(") else index
        after = close + 1
        if tokens.is_text(after, "device", "const", "volatile") or tokens.is_text(index - 1, "device"):
            yield Edit(token.start, tokens[close].end, "")
