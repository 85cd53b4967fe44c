"""What is spelled in Metal as in C++, and Clang's C++ for OpenCL reads otherwise or not at all, as edits of the text.

Each of these was met in public code that Apple compiles: MLX, llama.cpp, what SPIRV-Cross generates.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from stackproof.engines.metal.tokens import Edit, TokenStream

_VECTOR_NAME = re.compile(r"(?:u?(?:char|short|int|long)|float|half|bfloat|bool)[34]")
_SIZE_TYPES = ("uint", "unsigned", "uint32_t", "size_t", "ushort", "uint16_t", "uint8_t")
_SCALARS = (
    *("bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "float", "half", "size_t"),
    *("int8_t", "uint8_t", "int16_t", "uint16_t", "int32_t", "uint32_t", "int64_t", "uint64_t"),
)
_STATEMENT_STARTS = (";", "{", "}")


def wording_edits(tokens: TokenStream) -> Iterator[Edit]:
    """All of them; no two touch one place."""
    yield from _function_types(tokens)
    yield from _vector_sizes(tokens)
    yield from _short_lists(tokens)
    yield from _members_again(tokens)
    yield from _scalar_references(tokens)
    yield from _constant_references(tokens)
    yield from _additions(tokens)
    yield from _conversions(tokens)


def _function_types(tokens: TokenStream) -> Iterator[Edit]:
    """The same where the type has a name: ``using F = R (*)(A)``, of which only template parameters are made."""
    for index, token in enumerate(tokens):
        if token.text != "using" or not tokens.is_text(index + 2, "="):
            continue
        name = tokens[index + 1].text
        end = next((at for at in range(index, len(tokens)) if tokens.is_text(at, ";")), index)
        star = next((at for at in range(index + 3, end) if tokens.is_text(at, "*") and tokens.is_text(at - 1, "(")), 0)
        if not star or not (tokens.is_text(star + 1, ")") and tokens.is_text(star + 2, "(")):
            continue
        headers = [
            range(at + 1, tokens.skip_angles(at + 1))
            for at, one in enumerate(tokens)
            if one.text == "template" and tokens.is_text(at + 1, "<")
        ]
        uses = [at for at, one in enumerate(tokens) if one.text == name and at != index + 1]
        if uses and all(any(use in header for header in headers) for use in uses):
            yield Edit(tokens[star].start, tokens[star].end, "&")


def _vector_sizes(tokens: TokenStream) -> Iterator[Edit]:
    """``template <uint N> f(vec<T, N>)`` to ``template <int N>``: whose type may be any."""
    for index, token in enumerate(tokens):
        if token.text != "template" or not tokens.is_text(index + 1, "<"):
            continue
        after = tokens.skip_angles(index + 1)
        unsigned = [
            (at, tokens[at + 1].text)
            for at in range(index + 2, after)
            if tokens.is_text(at, *_SIZE_TYPES) and tokens.is_text(at + 2, ",", ">", "=")
        ]
        end = next((at for at in range(after, len(tokens)) if tokens.is_text(at, "{", ";")), after)
        sizes = {tokens[at].text for at in range(after + 2, end) if _is_vector_size(tokens, at)}
        for at, name in unsigned:
            if name in sizes:
                yield Edit(tokens[at].start, tokens[at].end, "int")


def _is_vector_size(tokens: TokenStream, at: int) -> bool:
    """Whether this token is the ``N`` of ``vec<T, N>``."""
    if not (tokens.is_text(at - 1, ",") and tokens.is_text(at + 1, ">")):
        return False
    opening = next((i for i in range(at - 2, max(at - 8, 0), -1) if tokens.is_text(i, "<")), 0)
    return opening > 0 and tokens.is_text(opening - 1, "vec", "packed_vec") and tokens.skip_angles(opening) == at + 2


def _short_lists(tokens: TokenStream) -> Iterator[Edit]:
    """``float4 v = {a, b, c}``: the elements that are left out are zero, as in a list for an array."""
    for index, token in enumerate(tokens):
        if not (
            _VECTOR_NAME.fullmatch(token.text) and tokens.is_text(index + 2, "=") and tokens.is_text(index + 3, "{")
        ):
            continue
        close = tokens.partner[index + 3]
        count = len(tokens.split(index + 4, close))
        if 1 < count < int(token.text[-1]) and not tokens.is_text(index - 1, "constant", "constexpr", "const"):
            yield Edit(tokens[index + 3].start, tokens[index + 3].end, f"__metal_host::listed<{token.text}>(")
            yield Edit(tokens[close].start, tokens[close].end, ")")


def _members_again(tokens: TokenStream) -> Iterator[Edit]:
    """``constant constexpr float S::a[2];`` outside of its class repeats a member, which Clang wants initialised."""
    for index, token in enumerate(tokens):
        if token.text != "constexpr" or not tokens.is_text(index - 1, "constant", "static"):
            continue
        start = index - 1
        end = next((at for at in range(index, len(tokens)) if tokens.is_text(at, ";", "=", "{", "(")), 0)
        if tokens.is_text(end, ";") and any(tokens.is_text(at, "::") for at in range(index, end)):
            while tokens.is_text(start - 1, "constant", "static", "const"):
                start -= 1
            yield Edit(tokens[start].start, tokens[end].start, "")


def _scalar_references(tokens: TokenStream) -> Iterator[Edit]:
    """``thread const short& x`` to ``const short x``, a parameter: Clang binds no temporary to such a reference."""
    for index, token in enumerate(tokens):
        if token.text != "&" or not tokens.is_text(index - 1, *_SCALARS) or not tokens.is_text(index + 2, ",", ")"):
            continue
        space = next((at for at in (index - 2, index - 3) if tokens.is_text(at, "thread")), 0)
        if space and any(tokens.is_text(at, "const") for at in (index - 2, index - 3)):
            yield Edit(token.start, token.end, "")
            yield Edit(tokens[space].start, tokens[space].end, "")


def _constant_references(tokens: TokenStream) -> Iterator[Edit]:
    """``constant int& n`` to ``const constant int& n``: in Metal one binds to what is ``const constant``."""
    for index, token in enumerate(tokens):
        if (
            token.text == "constant"
            and tokens.is_text(index + 1, *_SCALARS)
            and tokens.is_text(index + 2, "&")
            and not tokens.is_text(index - 1, "const")
        ):
            yield Edit(token.start, token.start, "const ")


def _additions(tokens: TokenStream) -> Iterator[Edit]:
    """``p += n;`` to ``p = p + n;``: Clang has no ``+=`` of a pointer and of what is converted to a number."""
    for index, token in enumerate(tokens):
        names = tokens[index - 1 : index + 2] if index else []
        if (
            token.text in ("+=", "-=")
            and tokens.is_text(index - 2, *_STATEMENT_STARTS)
            and tokens.is_text(index + 2, ";")
            and names[0].kind == names[-1].kind == "word"
        ):
            yield Edit(token.start, token.end, f"= {names[0].text} {token.text[0]}")


def _conversions(tokens: TokenStream) -> Iterator[Edit]:
    """``operator T() const thread`` to ``operator T() const``: a temporary has no space in Clang."""
    for index, token in enumerate(tokens):
        if token.text != "operator" or tokens[index + 1].kind != "word":
            continue
        after = tokens.skip_angles(index + 2)
        if tokens.is_text(after, "(") and tokens.partner[after] == after + 1:
            for at in (after + 2, after + 3):
                if tokens.is_text(at, "thread") and (at == after + 2 or tokens.is_text(at - 1, "const")):
                    yield Edit(tokens[at].start, tokens[at].end, "")
