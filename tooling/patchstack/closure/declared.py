"""Which identifiers of a piece of code are declared in it: parameters, variables, template parameters, members.

No scopes inside a definition are told apart, so a name that is declared anywhere in it counts as known in all of it:
what is reported as missing is missing, and not every missing name is reported.
"""

from __future__ import annotations

from collections.abc import Iterator

from patchstack.closure.known import KEYWORDS, NOT_TYPES, SPECIFIERS
from patchstack.closure.tokens import Tokens

_BEHIND = frozenset({"=", ";", ",", ")", "{", "[", "(", ":", ">", "...", "+="})
_INTRODUCE = frozenset({"struct", "class", "union", "enum", "namespace", "using", "typename", "concept"})
_REFERENCE = frozenset({"*", "&", "&&", "^", "..."})


def declared(tokens: Tokens) -> Iterator[int]:
    """The tokens that declare a name."""
    for index, is_name in enumerate(tokens.names):
        if not is_name or tokens.texts[index] in KEYWORDS:
            continue
        if _declares(tokens, index):
            yield index


def _declares(tokens: Tokens, index: int) -> bool:
    before, behind = tokens.at(index - 1), tokens.at(index + 1)
    if behind == "::" or before in ("::", ".", "->", "@", "#"):
        return False
    if tokens.is_name(index - 1):
        return _behind_name(tokens, index)
    if before in _REFERENCE:
        if tokens.at(index - 2) == "," and behind in ("=", ";", ","):  # int *a, *b
            return _is_listed(tokens, index, ",", behind)
        return behind in _BEHIND and _is_reference(tokens, index)
    if tokens.at(index - 2) == "##":  # a type that is put together: T##3 x
        return behind in _BEHIND
    if before == ">" and index - 1 in tokens.opening:
        return behind in _BEHIND and not _is_cast(tokens, index - 1)
    if before == "[" or before == ",":
        return _is_listed(tokens, index, before, behind)
    if before == "]" and behind in ("=", ";", ",", ")"):  # int32_t index [[attribute]]; an attribute before a name
        return False
    if before == "}":  # union { ... } x;
        return behind in ("=", ";", "[", ",") and _is_type_body(tokens, index - 1)
    return before == ")" and behind in ("=", ";") and _is_attribute(tokens, index)


def _behind_name(tokens: Tokens, index: int) -> bool:
    """Whether a name behind a name is declared: ``int x``, ``typename T``; not ``return x``, ``const T``."""
    before, behind = tokens.at(index - 1), tokens.at(index + 1)
    if before in NOT_TYPES:
        return False
    if before in _INTRODUCE:
        return True
    if behind == "<" and tokens.at(tokens.behind_arguments(index + 1)) == "(" and before != "operator":
        return False  # an explicit instantiation or specialization of what is defined elsewhere
    if before not in SPECIFIERS:
        return True
    at = index - 2  # const auto x, T* const x: what stands before the specifiers
    while tokens.at(at) in SPECIFIERS:
        at -= 1
    is_type = (tokens.is_name(at) and tokens.at(at) not in NOT_TYPES) or tokens.at(at) in ("*", "&")
    is_type = is_type or (tokens.at(at) == ">" and at in tokens.opening)
    return is_type and behind in _BEHIND


def _is_reference(tokens: Tokens, index: int) -> bool:
    """Whether ``T* x`` or ``T& x`` declares, rather than multiplies."""
    at = index - 1
    while tokens.at(at) in _REFERENCE or tokens.at(at) in SPECIFIERS:
        at -= 1
    arguments = tokens.at(at) == ">" and at in tokens.opening
    if arguments:
        at = tokens.opening[at] - 1
    if not tokens.is_name(at) or tokens.at(at) in NOT_TYPES:
        return tokens.at(at) == "(" and tokens.at(index + 1) == ")"  # void (^name)(): a block or function pointer
    name = tokens.at(at)
    while tokens.at(at - 1) == "::":
        at -= 2
        if tokens.at(at) == ">" and at in tokens.opening:
            at = tokens.opening[at] - 1
    before = tokens.at(at - 1)
    if before in SPECIFIERS or before in (";", "{", "}", ")", "]", ":") or at <= 0 or name in KEYWORDS:
        return True
    return before in ("(", ",", "<") and (arguments or _looks_like_type(name))


def _looks_like_type(name: str) -> bool:
    return name.endswith("_t") or len(name) == 1 or (name[0].isupper() and not name.isupper())


def _is_cast(tokens: Tokens, closing: int) -> bool:
    return tokens.at(tokens.opening[closing] - 1).endswith("_cast")


def _is_listed(tokens: Tokens, index: int, before: str, behind: str) -> bool:
    """Whether a name is one of several: ``auto [a, b]``, ``int a, b``, ``[copy = value]``."""
    opening = tokens.around[index]
    bracket = tokens.at(opening)
    if bracket == "[":
        head = tokens.at(opening - 1)
        is_binding = head == "auto" or (head in ("&", "&&") and tokens.at(opening - 2) == "auto")
        return is_binding or (behind == "=" and not tokens.is_name(opening - 1))
    if before != "," or behind not in ("=", ";", ",", "[", "{", "("):
        return False
    if bracket == "(":
        return tokens.at(opening - 1) == "for"
    return opening < 0 or (bracket == "{" and is_block(tokens, opening))


def _is_type_body(tokens: Tokens, closing: int) -> bool:
    at = tokens.opening.get(closing, 0) - 1
    return not {"struct", "union", "class", "enum"}.isdisjoint((tokens.at(at), tokens.at(at - 1)))


def _is_attribute(tokens: Tokens, index: int) -> bool:
    opening = tokens.opening.get(index - 1, 0)
    return tokens.at(opening - 1) in ("alignas", "__attribute__", "__declspec")


def is_block(tokens: Tokens, opening: int) -> bool:
    """Whether a brace opens statements or members rather than a list of values."""
    before = tokens.at(opening - 1)
    if before in (")", ";", "{", "}", ":", "else", "do", "try", "const", "noexcept", "override", "final", "mutable"):
        return True
    at = opening - 1  # struct Name : Base<T> {
    while at >= 0 and tokens.at(at) not in (";", "{", "}", "=", "(", ","):
        if tokens.at(at) in ("struct", "class", "union", "namespace", "extern"):
            return True
        at -= 1
    return before in ("autoreleasepool", "]", "thread", "device", "constant", "threadgroup")
