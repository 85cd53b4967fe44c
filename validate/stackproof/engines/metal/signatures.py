"""Static rules about what a kernel may take: attributes, their types, indices and what it may call.

Metal Shading Language specification 3.2: 5.1.2 (kernels return nothing and are called by no one), 5.2.1 (indices of
resources), 5.2.3.6 (the attributes of kernel parameters, their types, and which types must match).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from stackproof.engines.metal.declarations import Scope, declarator, statements
from stackproof.engines.metal.kernels import POSITIONS, Declared, Kernel, KernelDeclaration
from stackproof.engines.metal.model import Parameter, ParameterKind
from stackproof.engines.metal.tokens import TokenStream

Problem = tuple[str, int, str]
"""File, line and message."""

# How many places of each kind a kernel has.
_PLACES = {"buffer": 31, "threadgroup": 31, "texture": 128, "sampler": 16}
_PLACE = re.compile(r"(buffer|threadgroup|texture|sampler)\((\d+)\)")
# Attributes whose parameters have one type.
_ALIKE = (
    ("thread_position_in_grid", "threads_per_grid"),
    ("thread_position_in_threadgroup", "threads_per_threadgroup", "dispatch_threads_per_threadgroup"),
)
_WHOLE = re.compile(r"(uint|ushort)([23]?)")
_KNOWN = re.compile(r"(?:packed_)?(?:u?(?:char|short|int|long)|float|half|bfloat|bool|size_t|ptrdiff_t)[234]?")
_SPELLINGS = {
    "unsigned int": "uint",
    "unsigned": "uint",
    "uint32_t": "uint",
    "unsigned short": "ushort",
    "uint16_t": "ushort",
    "int32_t": "int",
    "int16_t": "short",
    "uint64_t": "ulong",
    "int64_t": "long",
    "uint8_t": "uchar",
    "int8_t": "char",
}
_VEC = re.compile(r"(?:metal :: )?vec < (\w+(?: \w+)?) , (\d) >")


def declared_problems(declarations: Sequence[KernelDeclaration]) -> Iterator[Problem]:
    """What is wrong with a kernel whatever it is instantiated for."""
    for one in declarations:
        if not one.returns_void:
            yield one.file, one.line, f"kernel {one.simple_name} returns a value; the result of a kernel is void"
        places: dict[str, Declared] = {}
        for parameter in one.parameters or ():
            for line, message in _of_parameter(parameter, places):
                yield one.file, line, f"kernel {one.simple_name}: {message}"


def _of_parameter(parameter: Declared, places: dict[str, Declared]) -> Iterator[tuple[int, str]]:
    name = parameter.name or parameter.text
    given = [one for one in parameter.attributes if _PLACE.fullmatch(one) or one in POSITIONS or _is_index(one)]
    if len(given) > 1:
        yield parameter.line, f"parameter {name} has {' and '.join(given)}, which exclude each other"
    optional = any(one.startswith("function_constant(") for one in parameter.attributes)
    for attribute in given:
        place = _PLACE.fullmatch(attribute)
        if not place:
            continue
        count = _PLACES[place[1]]
        if int(place[2]) >= count:
            yield parameter.line, f"parameter {name} is at {attribute}; Metal has {place[1]} 0 to {count - 1}"
        if attribute in places and not optional:
            yield parameter.line, f"parameter {name} is at {attribute}, as {places[attribute].name} is"
        if not optional:  # of several parameters at one place, function constants may choose
            places.setdefault(attribute, parameter)


def _is_index(attribute: str) -> bool:
    return bool(re.fullmatch(r"thread_index_in_\w+|\w+_index_in_\w+|\w+_per_\w+|thread_execution_width", attribute))


def type_problems(kernels: Sequence[Kernel], tokens: TokenStream) -> Iterator[Problem]:
    """Parameters with an attribute that have a type which the attribute does not take, or that do not fit together."""
    aliases = _aliases(tokens)
    for kernel in kernels:
        place = kernel.declaration.file, kernel.declaration.line
        typed: dict[str, str] = {}
        for parameter in kernel.parameters:
            if parameter.kind is not ParameterKind.ATTRIBUTE:
                continue
            written = _written_type(parameter, aliases)
            whole = _WHOLE.fullmatch(written)
            if whole and (parameter.attribute in POSITIONS or not whole[2]):
                typed.setdefault(parameter.attribute, written)
            elif whole or _KNOWN.fullmatch(written):
                takes = "ushort or uint" + (
                    ", or vectors of 2 or 3 of them" if parameter.attribute in POSITIONS else ""
                )
                message = f"parameter {parameter.name} is {written}; {parameter.attribute} takes {takes}"
                yield *place, f"kernel {kernel.declaration.simple_name}: {message}"
        for message in _together(typed):
            yield *place, f"kernel {kernel.declaration.simple_name}: {message}"


def _together(typed: dict[str, str]) -> Iterator[str]:
    positions = {name: kind for name, kind in typed.items() if name in POSITIONS}
    dimensions = defaultdict(list)
    for name, kind in positions.items():
        dimensions[kind.removeprefix("ushort").removeprefix("uint") or "1"].append(name)
    if len(dimensions) > 1:
        listed = ", ".join(f"{names[0]} has {count}" for count, names in sorted(dimensions.items()))
        yield f"its positions differ in the number of components ({listed})"
        return
    for names in _ALIKE:
        kinds = {typed[name]: name for name in names if name in typed}
        if len(kinds) > 1:
            listed = " and ".join(f"{name} is {kind}" for kind, name in kinds.items())
            yield f"{listed}; they must have one type"
    if typed.get("thread_position_in_threadgroup", "").startswith("uint") and (
        typed.get("thread_index_in_threadgroup") == "ushort"
    ):
        yield "thread_index_in_threadgroup is ushort; beside a thread_position_in_threadgroup of uint it must be uint"


def _written_type(parameter: Parameter, aliases: dict[str, str]) -> str:
    """Its type in the short spelling of Metal, where that can be told."""
    words = [word for word in parameter.declaration.split() if word not in ("const", "volatile", "typename")]
    if parameter.name and words[-1:] == [parameter.name] and len(words) > 1:
        words = words[:-1]
    text = " ".join(words)
    for _ in range(4):
        text = aliases.get(text, text)
    text = text.removeprefix("metal :: ").removeprefix("simd :: ")
    if vector := _VEC.fullmatch(text):
        return _SPELLINGS.get(vector[1], vector[1]) + vector[2]
    return _SPELLINGS.get(text, text)


def _aliases(tokens: TokenStream) -> dict[str, str]:
    found = {}
    for index, token in enumerate(tokens):
        if token.text == "using" and tokens.is_text(index + 2, "="):
            written = declarator(tokens, index + 3)
            if written and tokens.is_text(written.end, ";"):
                found[tokens[index + 1].text] = tokens.source(index + 3, written.end)
        elif token.text == "typedef" and token.kind == "word":
            written = declarator(tokens, index + 1)
            if written and tokens.is_text(written.end + 1, ";"):
                found[tokens[written.end].text] = tokens.source(index + 1, written.end)
    return found


def called_kernels(declarations: Sequence[KernelDeclaration], tokens: TokenStream) -> Iterator[Problem]:
    """Calls of kernels, which only a command encoder can make."""
    names = {one.simple_name for one in declarations if one.defined or one.template}
    if not names:
        return
    others = _functions(tokens)
    inside = 0
    for statement in statements(tokens):
        if statement.scope not in (Scope.KERNEL, Scope.FUNCTION):
            continue
        at = max(statement.begin, inside)
        while at < len(tokens) and not tokens.is_text(at, ";", "{", "}"):
            after = tokens.skip_angles(at + 1)
            if (
                tokens[at].text in names - others
                and tokens.is_text(after, "(")
                and not tokens.is_text(at - 1, ".", "->")
                and (tokens[at - 1].kind == "operator" or tokens.is_text(at - 1, "return", "else"))
            ):
                yield tokens[at].file, tokens[at].line, f"{tokens[at].text} is a kernel, which no function can call"
            at += 1
        inside = at


def _functions(tokens: TokenStream) -> set[str]:
    """Names of functions that are no kernels."""
    found = set()
    for statement in statements(tokens):
        if statement.scope not in (Scope.PROGRAM, Scope.CLASS):
            continue
        written = declarator(tokens, statement.begin)
        if (
            written
            and "kernel" not in written.words
            and tokens.is_text(written.end + 1, "(")
            and not _is_kernel(tokens, statement.begin, written.end)
        ):
            found.add(tokens[written.end].text)
    return found


def _is_kernel(tokens: TokenStream, begin: int, end: int) -> bool:
    return any(tokens.is_text(i, "kernel") for i in range(begin, end))
