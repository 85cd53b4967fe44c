"""Static rules about address spaces and storage: what Metal requires of every declaration, and Clang does not.

Metal Shading Language specification 3.2, chapter 4: pointers and references name the address space of their target; a
variable at program scope is in ``constant``; ``threadgroup`` variables belong to kernels; a function has no statics but
constants. In C++ for OpenCL a missing address space means "any".
"""

from __future__ import annotations

from collections.abc import Iterator

from stackproof.engines.metal.declarations import (
    SPACES,
    Declarator,
    Scope,
    Statement,
    declarator,
    spaced_types,
    statements,
)
from stackproof.engines.metal.tokens import Token, TokenStream

# What may follow the name of a declared variable or function.
_AFTER_NAME = ("=", ";", ",", "[", "(", "{", ":", ")")
_CASTS = ("static_cast", "reinterpret_cast", "const_cast", "as_type")
_TYPE_WORDS = ("sizeof", "alignof", "decltype", "typeid", "operator")

Found = tuple[Token, str]


def missing_spaces(tokens: TokenStream) -> Iterator[Found]:
    """Pointers and references whose target has no address space: declared, returned, cast to, or named by an alias."""
    spaced = spaced_types(tokens)
    for statement in statements(tokens):
        if found := _declared(tokens, statement, spaced):
            yield found
    for index, token in enumerate(tokens):
        if token.text == "(":
            yield from _parameters(tokens, index, spaced)
            yield from _cast(tokens, index, index + 1, spaced)
        elif token.text in _CASTS and tokens.is_text(index + 1, "<"):
            yield from _cast(tokens, index, index + 2, spaced)
        elif token.text == "using" and tokens.is_text(index + 2, "="):
            yield from _named(tokens, index + 3, spaced)
        elif token.text == "typedef" and token.kind == "word":
            yield from _named(tokens, index + 1, spaced)


def _declared(tokens: TokenStream, statement: Statement, spaced: frozenset[str]) -> Found | None:
    written = declarator(tokens, statement.begin, spaced)
    if written is None or written.end >= len(tokens):
        return None
    name = tokens[written.end]
    if not written.bare:
        return None
    outside = statement.scope in (Scope.PROGRAM, Scope.CLASS)
    # Inside of a function, `a && metal::all(b)` is an expression.
    follows = (*_AFTER_NAME, "::", "<") if outside else _AFTER_NAME
    if name.kind != "word" or not (name.text == "operator" or tokens.is_text(written.end + 1, *follows)):
        return None
    returns = name.text == "operator" or (outside and tokens.is_text(written.end + 1, "(", "::", "<"))
    what = f"the result of {name.text}" if returns else f"the variable {name.text}"
    if statement.scope is Scope.CLASS and not returns:
        what = f"the member {name.text}"
    return tokens[written.bare], f"{what} is a pointer or reference whose target has no address space"


def _parameters(tokens: TokenStream, index: int, spaced: frozenset[str]) -> Iterator[Found]:
    if not _is_function_head(tokens, index):
        return
    for low, high in tokens.split(index + 1, tokens.partner[index]):
        words = {tokens[i].text for i in range(low, high)}
        array = next((i for i in range(low, high - 1) if tokens.is_text(i, "(") and tokens.is_text(i + 1, "&")), 0)
        if array and not words & SPACES:
            yield tokens[array + 1], f"the parameter {tokens.source(low, high)} names no address space"
        elif "(" not in words and "operator" not in words:
            written = declarator(tokens, low, spaced)
            # A pointer that is passed by reference is one of the thread: MLX has such parameters.
            if written and written.bare and not tokens.is_text(written.bare - 1, "*"):
                yield tokens[written.bare], f"the parameter {tokens.source(low, high)} names no address space"


def _is_function_head(tokens: TokenStream, index: int) -> bool:
    """A parameter list of a function definition outside of any function body."""
    if index == 0 or tokens[index - 1].kind != "word" or not tokens.is_text(tokens.partner[index] + 1, "{", "const"):
        return False
    before = tokens[index - 2] if index > 1 else None
    named = before is not None and (before.kind == "word" or before.text in (">", "*", "&"))
    return named and tokens[index - 1].text not in ("if", "for", "while", "switch", "return", "constexpr")


def _cast(tokens: TokenStream, index: int, begin: int, spaced: frozenset[str]) -> Iterator[Found]:
    """``(T*)x`` and ``static_cast<T*>(x)``, where ``begin`` is the first token of the type."""
    named = begin == index + 2
    if not named and index and (tokens[index - 1].kind == "word" and tokens[index - 1].text != "return"):
        return
    if not named and tokens.is_text(index - 1, ")", "]", ">", *_TYPE_WORDS):
        return
    written = declarator(tokens, begin, spaced)
    if written and written.bare and tokens.is_text(written.end, ">" if named else ")"):
        if not named and not _begins_operand(tokens, written.end + 1):
            return
        yield tokens[written.bare], f"the cast to {tokens.source(begin, written.end)} names no address space"


def _begins_operand(tokens: TokenStream, at: int) -> bool:
    return at < len(tokens) and (tokens[at].kind in ("word", "number") or tokens.is_text(at, "(", "&", "*", "-", "~"))


def _named(tokens: TokenStream, begin: int, spaced: frozenset[str]) -> Iterator[Found]:
    written = declarator(tokens, begin, spaced)
    if written and written.bare:
        yield tokens[written.bare], f"the type {tokens.source(begin, written.end)} names no address space"


def misplaced_storage(tokens: TokenStream) -> Iterator[Found]:
    """Variables at program scope outside of ``constant``, statics of functions, threadgroup variables of helpers."""
    spaced = spaced_types(tokens)
    for statement in statements(tokens):
        written = declarator(tokens, statement.begin)
        if statement.scope is Scope.PROGRAM:
            yield from _program_scope(tokens, statement, written, spaced)
        elif written is not None and _is_variable(tokens, written.end):
            yield from _in_function(tokens, statement, written)


def _program_scope(
    tokens: TokenStream, statement: Statement, written: Declarator | None, spaced: frozenset[str]
) -> Iterator[Found]:
    if body := _class_body(tokens, statement.begin):
        # `struct P { ... } p;` declares a variable after the class.
        qualifiers = {tokens[i].text for i in range(statement.begin, body)}
        name = tokens.partner[body] + 1
        if not qualifiers & {"constant", "typedef"} and tokens[name].kind == "word" and _is_variable(tokens, name):
            yield tokens[name], _outside_constant(tokens[name].text)
        return
    if written is None or not _is_variable(tokens, written.end):
        return
    own = written.own if written.indirect else {*written.words, *written.own}
    sampler = written.type_name == "sampler" and not written.indirect and "constexpr" in own
    if "constant" not in own and not sampler and written.type_name not in spaced:
        yield tokens[written.end], _outside_constant(tokens[written.end].text)


def _outside_constant(name: str) -> str:
    return f"the variable {name} at program scope is not in the constant address space"


def _class_body(tokens: TokenStream, at: int) -> int:
    """The index of the brace of a class definition that begins at ``at``; 0 where none does."""
    seen = False
    while at < len(tokens) and not tokens.is_text(at, ";", "(", "=", "{"):
        seen = seen or tokens.is_text(at, "struct", "class", "union")
        if tokens.is_text(at, "<"):
            at = max(tokens.skip_angles(at), at + 1)
        else:
            skipped = tokens.is_text(at, "[") or (tokens.is_text(at, "alignas") and tokens.is_text(at + 1, "("))
            at = tokens.partner[at if tokens.is_text(at, "[") else at + 1] + 1 if skipped else at + 1
    return at if seen and tokens.is_text(at, "{") else 0


def _is_variable(tokens: TokenStream, name: int) -> bool:
    if name >= len(tokens) or tokens[name].kind != "word" or tokens[name].text == "operator":
        return False
    after = tokens.skip_angles(name + 1)
    while tokens.is_text(after, "::"):
        after = tokens.skip_angles(after + 2)
    return tokens.is_text(after, "=", ";", ",", "[", "{")


def _in_function(tokens: TokenStream, statement: Statement, written: Declarator) -> Iterator[Found]:
    name = tokens[written.end]
    own = written.own if written.indirect else {*written.words, *written.own}
    if statement.scope in (Scope.FUNCTION, Scope.KERNEL) and "static" in written.words and "constant" not in own:
        yield name, f"the static variable {name.text} of a function is not in the constant address space"
    if statement.scope is Scope.FUNCTION and "threadgroup" in own:
        yield name, f"the threadgroup variable {name.text} is declared in a function that is no kernel"
