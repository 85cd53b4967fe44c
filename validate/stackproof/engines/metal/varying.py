"""Which names of a source depend on the thread, followed without types: by assignments, calls and fields.

It begins at the thread attributes of the kernels. Names are those of one function; a field is one for all structs,
and is told apart from its struct where the source assigns it. What a function writes to its arguments is not followed,
nor which branch assigned. The threads of a simdgroup are taken to lie along x: `.y` of a position is the same in all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from stackproof.engines.metal.tokens import TokenStream

_THREAD = re.compile(
    r"thread_(?:position_in_(?:grid|threadgroup)|index_in_(?:threadgroup|simdgroup|quadgroup|quad_group))"
    r"|quadgroup_index_in_threadgroup"
)
# What these return is the same in all lanes.
_UNIFORM = re.compile(r"simd_(?:sum|product|min|max|and|or|xor|all|any|ballot|broadcast|broadcast_first)")
ASSIGNMENTS = frozenset({"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="})
_NOT_A_FUNCTION = frozenset({"if", "for", "while", "switch", "return", "sizeof", "alignas", "decltype"})


@dataclass
class Function:
    """One function definition; indices of tokens.

    Attributes:
        name: without scopes.
        parameters: names, in order.
        begin: of its body, at the brace.
        end: of its body, at the brace.
        varies: names in it that depend on the thread; fields begin with a dot.
        positions: those that are thread attributes.
    """

    name: str
    parameters: list[str]
    begin: int
    end: int
    varies: set[str] = field(default_factory=set)
    positions: frozenset[str] = frozenset()


class Varying:
    """The functions of a source, with what depends on the thread in each.

    Attributes:
        functions: in the order of the source.
    """

    def __init__(self, tokens: TokenStream) -> None:
        self._tokens = tokens
        self.functions = list(functions_of(tokens))
        self._by_name: dict[str, list[Function]] = {}
        for one in self.functions:
            self._by_name.setdefault(one.name, []).append(one)
        self._structs = dict(_structs(tokens))
        self._fields = {field for fields in self._structs.values() for field in fields} & self._assigned_fields()
        while self._spread():
            pass

    def depends(self, function: Function, begin: int, end: int) -> bool:
        """Whether an expression of the function may differ between threads."""
        return not function.varies.isdisjoint(self._names(function, begin, end))

    def _spread(self) -> bool:
        """One round of following values; whether anything came of it."""
        before = sum(len(one.varies) for one in self.functions)
        for function in self.functions:
            for at in range(function.begin + 1, function.end):
                if self._tokens[at].text in ASSIGNMENTS:
                    if self.depends(function, at + 1, _end_of_value(self._tokens, at + 1)):
                        function.varies.add(self._assigned(at - 1))
                elif self._tokens[at].text in self._by_name:
                    self._pass_arguments(function, at)
            for name, begin, end in self._initialised(function):
                if self.depends(function, begin, end):
                    function.varies.add(name)
        varying_fields = {name for one in self.functions for name in one.varies if name.startswith(".")}
        for function in self.functions:
            function.varies |= varying_fields
            function.varies.discard("")
        return sum(len(one.varies) for one in self.functions) > before

    def _pass_arguments(self, function: Function, at: int) -> None:
        opened = self._tokens.skip_angles(at + 1)
        if not self._tokens.is_text(opened, "("):
            return
        arguments = self._tokens.split(opened + 1, self._tokens.partner[opened])
        varying = [self.depends(function, *one) for one in arguments]
        for called in self._by_name[self._tokens[at].text]:
            called.varies |= {name for name, varies in zip(called.parameters, varying, strict=False) if varies}

    def _assigned_fields(self) -> set[str]:
        """Fields that some function gives a value of their own."""
        tokens = self._tokens
        found = {name for function in self.functions for name, _, _ in self._initialised(function)}
        found |= {
            f".{tokens[at - 1].text}"
            for at in range(2, len(tokens))
            if tokens[at].text in ASSIGNMENTS and tokens.is_text(at - 2, ".", "->")
        }
        return found

    def _initialised(self, function: Function) -> Iterator[tuple[str, int, int]]:
        """Fields and their values in ``Struct name = {...}`` and the like."""
        tokens = self._tokens
        for at in range(function.begin + 1, function.end):
            fields = self._structs.get(tokens[at].text)
            opened = next((i for i in range(at + 1, at + 4) if tokens.is_text(i, "{", ";", "(")), at)
            if fields and tokens.is_text(opened, "{"):
                parts = tokens.split(opened + 1, tokens.partner[opened])
                yield from ((name, *part) for name, part in zip(fields, parts, strict=False))

    def _assigned(self, at: int) -> str:
        """What is assigned, of ``x``, ``x[i].y`` and the like; empty where memory is written through it."""
        tokens = self._tokens
        if tokens.is_text(at - 1, ".", "->") and f".{tokens[at].text}" in self._fields:
            return f".{tokens[at].text}"
        while tokens.is_text(at, "]") or tokens.is_text(at - 1, ".", "->"):
            at = tokens.partner[at] - 1 if tokens.is_text(at, "]") else at - 2
        return tokens[at].text if tokens[at].kind == "word" else ""

    def _names(self, function: Function, begin: int, end: int) -> set[str]:
        """Variables and fields of an expression, without those inside of what is the same in all lanes."""
        tokens, found, at = self._tokens, set(), begin
        while at < end:
            token = tokens[at]
            opened = tokens.skip_angles(at + 1)
            if _UNIFORM.fullmatch(token.text) and tokens.is_text(opened, "("):
                at = tokens.partner[opened]
            elif token.kind == "word" and not tokens.is_text(at - 1, ".", "->", "::"):
                if (
                    token.text in function.positions
                    and tokens.is_text(at + 1, ".")
                    and tokens.is_text(at + 2, "y", "z")
                ):
                    at += 1
                    continue
                known = tokens.is_text(at + 1, ".", "->") and f".{tokens[at + 2].text}" in self._fields
                found.add(f".{tokens[at + 2].text}" if known else token.text)
            at += 1
        return found


def functions_of(tokens: TokenStream) -> Iterator[Function]:
    """Every function definition, members of classes included."""
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
        yield Function(tokens[at - 1].text, names, body, last, varies, frozenset(varies))


def _structs(tokens: TokenStream) -> Iterator[tuple[str, list[str]]]:
    """Names of structs with their fields, which begin with a dot, in order."""
    for at in range(len(tokens) - 2):
        if not tokens.is_text(at, "struct") or tokens[at + 1].kind != "word" or not tokens.is_text(at + 2, "{"):
            continue
        fields, start = [], at + 3
        while start < tokens.partner[at + 2]:
            end = start
            while not tokens.is_text(end, ";", "{", "}", "("):
                end += 1
            if tokens.is_text(end, ";"):
                fields.append(f".{_declared(tokens, start, end)}")
            start = tokens.partner[end] + 1 if tokens.is_text(end, "{", "(") else end + 1
        yield tokens[at + 1].text, fields


def _declared(tokens: TokenStream, begin: int, end: int) -> str:
    """Name of a parameter or field: the last word before attributes, an array's length and a default."""
    name = ""
    for at in range(begin, end):
        if tokens[at].text in ("[", "="):
            break
        if tokens[at].kind == "word":
            name = tokens[at].text
    return name


def _end_of_value(tokens: TokenStream, at: int) -> int:
    while at < len(tokens) and not tokens.is_text(at, ";", ",", ")", "]", "}"):
        at = tokens.partner[at] + 1 if tokens.is_text(at, "(", "[", "{") else at + 1
    return at
