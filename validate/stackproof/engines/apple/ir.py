"""Just enough structure of LLVM's textual form to rewrite it line by line.

Text and not a library's objects, because llvmlite can parse, verify and compile modules but not edit them. LLVM prints
one instruction a line; what this module needs to know beyond that is where a type or a parenthesis ends.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from stackproof.engines.apple.errors import AppleKernelError, TranslationError
from stackproof.packages import missing_package

_OPEN, _CLOSE = "([{<", ")]}>"
_NAME = r'(?:"[^"]*"|[\w.$]+)'
_DEFINE = re.compile(rf"^define .*?@({_NAME})\(")
_DECLARE = re.compile(rf"^declare (?:[\w ]+ )?(?P<ret>void|<[^>]+>|[\w]+(?: addrspace\(\d+\))?) @(?P<name>{_NAME})\(")
_ADDRESS_SPACE = re.compile(r"ptr addrspace\((\d+)\)")
_SCALAR_BYTES = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "half": 2, "bfloat": 2, "float": 4, "double": 8}
_VECTOR = re.compile(r"<(\d+) x (\w+)>")


def llvm() -> Any:
    """llvmlite's binding layer, ready for this machine.

    Raises:
        MissingPackageError: it is not installed.
    """
    try:
        from llvmlite import binding
    except ImportError:
        raise missing_package("llvmlite", "to read and compile LLVM bitcode") from None
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding


def disassemble(bitcode: bytes, where: str) -> str:
    """The text of a bitcode module.

    Raises:
        AppleKernelError: it is no bitcode that this LLVM reads.
    """
    try:
        return str(llvm().parse_bitcode(bitcode))
    except RuntimeError as error:
        raise AppleKernelError("LLVM cannot read the bitcode", where=where, found=_one_line(error)) from None


def canonical(text: str, where: str) -> str:
    """A module's text as LLVM prints it.

    Raises:
        AppleKernelError: LLVM does not read it.
    """
    try:
        return str(llvm().parse_assembly(text))
    except RuntimeError as error:
        raise AppleKernelError("LLVM cannot read the text", where=where, found=_one_line(error)) from None


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


def closing(text: str, opening: int) -> int:
    """Index of the bracket that closes the one at ``opening``; quoted text is skipped.

    Raises:
        TranslationError: there is none.
    """
    depth, quoted = 0, False
    for at in range(opening, len(text)):
        letter = text[at]
        if letter == '"':
            quoted = not quoted
        elif not quoted and letter in _OPEN:
            depth += 1
        elif not quoted and letter in _CLOSE and not (letter == ">" and text[at - 1] == "-"):
            depth -= 1
            if depth == 0:
                return at
    raise TranslationError("a bracket is not closed", found=text.strip()[:120])


def split_arguments(text: str) -> list[str]:
    """The parts of a comma-separated list; commas inside brackets and quotes do not count."""
    parts, depth, quoted, start = [], 0, False, 0
    for at, letter in enumerate(text):
        if letter == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif letter in _OPEN:
            depth += 1
        elif letter in _CLOSE:
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


def leading_type(text: str) -> str:
    """The type that ``text`` starts with: ``<2 x float>``, ``ptr addrspace(1)``, ``%struct.X``, ``[4 x i32]``."""
    if text[:1] in ("<", "[", "{"):
        return text[: closing(text, 0) + 1]
    if space := _ADDRESS_SPACE.match(text):
        return space[0]
    found = re.match(r'%"[^"]*"|%?[\w.$]+', text)
    return found[0] if found else ""


def store_size(type_: str) -> int | None:
    """Bytes that a load or store of this type touches; ``None`` for a struct or an array."""
    if type_.startswith("ptr"):
        return 8
    if type_ in _SCALAR_BYTES:
        return _SCALAR_BYTES[type_]
    if vector := _VECTOR.fullmatch(type_):
        lanes, element = int(vector[1]), vector[2]
        return (
            (lanes + 7) // 8
            if element == "i1"
            else lanes * _SCALAR_BYTES[element]
            if element in _SCALAR_BYTES
            else None
        )
    return None


def address_space(type_: str) -> int:
    """Of a pointer type; 0 for a plain ``ptr``."""
    found = _ADDRESS_SPACE.match(type_)
    return int(found[1]) if found else 0


@dataclass(frozen=True)
class Declaration:
    """A function of another module.

    Attributes:
        name: without the ``@``.
        result: its type.
        arguments: their types, attributes taken off.
    """

    name: str
    result: str
    arguments: tuple[str, ...]

    @property
    def path(self) -> tuple[str, ...]:
        """The name's parts between dots: ``air``, the family, and what tells its members apart."""
        return tuple(self.name.split("."))

    @property
    def family(self) -> str:
        """What it does, without types: ``fmax`` of ``air.fmax.v2f32``."""
        return self.path[1] if len(self.path) > 1 else self.name


def read_declaration(line: str) -> Declaration | None:
    """The function that a line declares; ``None`` if it declares none."""
    found = _DECLARE.match(line)
    if found is None:
        return None
    opening = found.end() - 1
    inside = line[opening + 1 : closing(line, opening)]
    arguments = tuple(leading_type(part) for part in split_arguments(inside))
    return Declaration(found["name"].strip('"'), found["ret"], arguments)


@dataclass(frozen=True)
class Function:
    """A function that a module defines.

    Attributes:
        name: without the ``@``.
        first: index of its ``define`` line among the module's lines.
        last: index of the line with its closing brace.
        parameters: their types.
    """

    name: str
    first: int
    last: int
    parameters: tuple[str, ...]


@dataclass(frozen=True)
class Module:
    """A module's text with its functions found.

    Attributes:
        where: what an error calls it.
        lines: of the text.
        functions: that it defines, in order.
        declarations: that it only names.
    """

    where: str
    lines: tuple[str, ...]
    functions: tuple[Function, ...]
    declarations: tuple[Declaration, ...]

    def function(self, name: str) -> Function:
        """The function of that name.

        Raises:
            TranslationError: it is not defined here.
        """
        for one in self.functions:
            if one.name == name:
                return one
        raise TranslationError("the module does not define its kernel", where=self.where, expected=name)


def read_module(text: str, where: str) -> Module:
    """Find the functions and declarations of a module."""
    lines = tuple(text.split("\n"))
    functions, declarations = [], []
    at = 0
    while at < len(lines):
        line = lines[at]
        if line.startswith("declare") and (declared := read_declaration(line)):
            declarations.append(declared)
        elif line.startswith("define") and (found := _DEFINE.match(line)):
            last = _end_of_function(lines, at, where)
            opening = found.end() - 1
            inside = line[opening + 1 : closing(line, opening)]
            parameters = tuple(leading_type(part) for part in split_arguments(inside))
            functions.append(Function(found[1].strip('"'), at, last, parameters))
            at = last
        at += 1
    return Module(where, lines, tuple(functions), tuple(declarations))


def _end_of_function(lines: Sequence[str], first: int, where: str) -> int:
    for at in range(first, len(lines)):
        if lines[at] == "}":
            return at
    raise TranslationError("a function has no end", where=where, found=lines[first][:120])
