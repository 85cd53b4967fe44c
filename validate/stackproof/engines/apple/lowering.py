"""Turns the module of an Apple-compiled kernel into one that LLVM compiles for another target.

Three things are rewritten, line by line. Calls of ``air.*`` functions get the number of their place, and a definition
in the module. Program-scope threadgroup variables, of which a threadgroup has its own, become memory of the executor.
In watched builds every access to a buffer or to threadgroup memory is told to the detectors before it happens. Pointers
keep their address spaces, which are plain memory on a host and mean nearly the same on a GPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from stackproof.engines.apple.definitions import Body, Definition, define
from stackproof.engines.apple.ir import (
    Function,
    Module,
    address_space,
    closing,
    leading_type,
    read_module,
    split_arguments,
    store_size,
)
from stackproof.engines.apple.metadata import read_kernel
from stackproof.engines.apple.model import AirKernel
from stackproof.engines.apple.target import Target

_GLOBAL = re.compile(r'^@("[^"]*"|[\w.$]+) = .*?\baddrspace\(3\) global (.*)$')
_AIR_CALL = re.compile(r"\bcall .*?@(air\.[\w.]+)\(")
_CONSTANT_EXPRESSION = re.compile(r"\b(getelementptr|ptrtoint|addrspacecast|bitcast)\b([\w ]*)\(")
_LOAD = re.compile(r"^  %\S+ = load (?:atomic )?(?:volatile )?")
_STORE = re.compile(r"^  store (?:atomic )?(?:volatile )?")
_POINTER = re.compile(r"^(ptr addrspace\([123]\)) (%\S+?)(?:,|$)")
_STORED_TO = re.compile(r"^(.*), (ptr addrspace\([123]\)) (%[^\s,]+), align \d+")
_LABEL = re.compile(r'^("[^"]*"|[\w.$-]+):')
_BULK = re.compile(r"\bcall void @llvm\.(memcpy|memmove|memset)\.[\w.]*\(")
# What Apple's compiler promises of its functions does not hold for the definitions that take their place.
_PROMISES = re.compile(r"\b(?:memory\([^)]*\)|willreturn|nosync|nofree|speculatable|mustprogress)\s?")
_DROPPED = ("target datalayout", "target triple", "!air.", "!llvm.module.flags", "source_filename")
_READ, _WRITE = 1, 2


@dataclass(frozen=True)
class Lowered:
    """A module for the target.

    Attributes:
        kernel: what the metadata says.
        text: IR with a definition of everything but the executor's functions.
        sites: lines of the disassembly that calls and accesses are numbered by, number ``first_site`` first.
    """

    kernel: AirKernel
    text: str
    sites: tuple[int, ...]


@dataclass
class _Places:
    """Numbers for lines of the disassembly."""

    first: int
    lines: list[int] = field(default_factory=list)

    def number(self, line: int) -> int:
        if not self.lines or self.lines[-1] != line:
            self.lines.append(line)
        return self.first + len(self.lines) - 1


def lower(text: str, where: str, target: Target, *, number: int, first_site: int = 1, watched: bool = False) -> Lowered:
    """Translate one module.

    Args:
        text: the disassembly.
        where: the kernel's name, for errors.
        target: what to compile for.
        number: of the kernel in its library; the entry point is called by it.
        first_site: number of the first place.
        watched: tell the detectors of accesses and conversions.

    Raises:
        UnmappedIntrinsicError: it calls a function of Apple's that nothing defines.
        TranslationError: it has something else that is not understood.
    """
    module = read_module(text, where)
    kernel = read_kernel(module)
    places = _Places(first_site)
    body = Body(watched=False)
    variables = {match[1]: _size_of(match[2]) for line in module.lines if (match := _GLOBAL.match(line))}
    lines = list(_rewritten(module, kernel, variables, places, body, watched=watched))
    definitions = [
        define(declared, target.rules, where, watched=watched)
        for declared in module.declarations
        if declared.name.startswith("air.")
    ]
    entry = target.entry_point(kernel, module.function(kernel.name), number)
    parts = [target.header, *lines, *_texts(definitions, body, module), entry]
    return Lowered(kernel, "\n".join(parts) + "\n", tuple(places.lines))


def _texts(definitions: list[Definition], body: Body, module: Module) -> Iterator[str]:
    """Definitions, and declarations of what they and the rewritten lines call, each once."""
    yield from (one.text for one in definitions)
    declared = {one.name for one in module.declarations}
    needed = body.declarations.union(*(one.declarations for one in definitions))
    for line in sorted(needed):
        name = line.partition("@")[2].partition("(")[0]
        if name not in declared:
            yield line


def _rewritten(
    module: Module, kernel: AirKernel, variables: dict[str, str], places: _Places, body: Body, *, watched: bool
) -> Iterator[str]:
    at = 0
    for function in (*module.functions, None):
        yield from _outside(module.lines[at : function.first if function else None])
        if function is None:
            return
        head = module.lines[function.first]
        yield head.replace("define weak_odr ", "define internal ", 1) if function.name == kernel.name else head
        yield from _inside(module, function, variables, places, body, watched=watched)
        at = function.last + 1


def _outside(lines: Iterable[str]) -> Iterator[str]:
    """Types, constants, declarations and metadata, without what belongs to Apple's target."""
    for line in lines:
        if line.startswith(_DROPPED) or _GLOBAL.match(line) or (line.startswith("declare") and "@air." in line):
            continue
        yield _PROMISES.sub("", line) if line.startswith(("attributes #", "declare")) else line


def _inside(
    module: Module, function: Function, variables: dict[str, str], places: _Places, body: Body, *, watched: bool
) -> Iterator[str]:
    """The lines of a function after its head."""
    threadgroup = _ThreadgroupVariables(module, function, variables)
    first = function.first + 1
    if _LABEL.match(module.lines[first]):
        yield module.lines[first]
        first += 1
    yield from threadgroup.prologue(body)
    for at in range(first, function.last + 1):
        line = threadgroup.replaced(at)
        if watched:
            yield from _watched(line, at + 1, places, body)
        yield _numbered(line, at + 1, places)


def _numbered(line: str, number: int, places: _Places) -> str:
    """The line with the number of its place as the last argument of an ``air.*`` call."""
    call = _AIR_CALL.search(line)
    if call is None:
        return line
    end = closing(line, call.end() - 1)
    comma = "" if line[end - 1] == "(" else ", "
    return f"{line[:end]}{comma}i32 {places.number(number)}{_PROMISES.sub('', line[end:])}"


def _watched(line: str, number: int, places: _Places, body: Body) -> Iterator[str]:
    """Calls that tell the detectors of the accesses in this line, private memory left out."""
    for pointer, space, size, kind in _accesses(line):
        plain = f"%watch.{number}.{kind}"
        site = places.number(number)
        body.declarations.add("declare void @__metal_host_access(ptr, i32, i32, i32)")
        yield f"  {plain} = addrspacecast {space} {pointer} to ptr"
        yield f"  call void @__metal_host_access(ptr {plain}, i32 {size}, i32 {kind}, i32 {site})"


def _accesses(line: str) -> Iterator[tuple[str, str, str, int]]:
    """Pointer, its type, bytes and kind of each access."""
    if load := _LOAD.match(line):
        type_ = leading_type(line[load.end() :])
        if pointer := _POINTER.match(line[load.end() + len(type_) + 2 :]):
            yield pointer[2], pointer[1], _size_of(type_), _READ
    elif store := _STORE.match(line):
        if to := _STORED_TO.match(line[store.end() :]):
            yield to[3], to[2], _size_of(leading_type(to[1])), _WRITE
    elif bulk := _BULK.search(line):
        arguments = split_arguments(line[bulk.end() : closing(line, bulk.end() - 1)])
        size = arguments[2].split()[-1]
        for argument, kind in zip(arguments[: 1 if bulk[1] == "memset" else 2], (_WRITE, _READ), strict=False):
            space = leading_type(argument)
            if address_space(space):
                yield argument.split()[-1], space, size, kind


def _size_of(text: str) -> str:
    """Bytes of the type that ``text`` starts with, as a constant expression where only LLVM knows them."""
    type_ = leading_type(text)
    size = store_size(type_)
    return str(size) if size is not None else f"ptrtoint (ptr getelementptr ({type_}, ptr null, i32 1) to i32)"


class _ThreadgroupVariables:
    """The threadgroup variables of one function, as values that its first block asks the executor for."""

    def __init__(self, module: Module, function: Function, variables: dict[str, str]) -> None:
        self._lines = {at: module.lines[at] for at in range(function.first + 1, function.last + 1)}
        self._values: dict[str, str] = {}
        self._setup: list[str] = []
        self._wanted: list[tuple[int, str, str]] = []
        if not variables:
            return
        mentioned = re.compile("|".join(rf"@{re.escape(name)}(?![\w.$])" for name in variables))
        order = {f"@{name}": (i, size) for i, (name, size) in enumerate(variables.items())}
        for at, line in self._lines.items():
            if mentioned.search(line):
                self._lines[at] = self._line(line, mentioned, order)

    def replaced(self, at: int) -> str:
        """The line with the values in place of the variables."""
        return self._lines[at]

    def prologue(self, body: Body) -> Iterator[str]:
        """Instructions for the start of the function."""
        for number, name, size in self._wanted:
            body.declarations.add("declare ptr addrspace(3) @__metal_host_threadgroup(i32, i64)")
            bytes_ = size if size.isdigit() else size.replace(" to i32)", " to i64)")
            yield f"  {name} = call ptr addrspace(3) @__metal_host_threadgroup(i32 {number + 1}, i64 {bytes_})"
        yield from self._setup

    def _line(self, line: str, mentioned: re.Pattern[str], order: dict[str, tuple[int, str]]) -> str:
        at = 0
        while expression := _CONSTANT_EXPRESSION.search(line, at):
            end = closing(line, expression.end() - 1)
            text = line[expression.start() : end + 1]
            at = expression.end()
            if mentioned.search(text):
                inner = self._line(line[expression.end() : end], mentioned, order)
                value = self._hoisted(f"{expression[1]}{expression[2].rstrip()} {inner}")
                line = line[: expression.start()] + value + line[end + 1 :]
                at = expression.start()
        return mentioned.sub(lambda name: self._variable(name[0], *order[name[0]]), line)

    def _variable(self, name: str, number: int, size: str) -> str:
        if name not in self._values:
            self._values[name] = f"%threadgroup.{number}"
            self._wanted.append((number, self._values[name], size))
        return self._values[name]

    def _hoisted(self, instruction: str) -> str:
        if instruction not in self._values:
            self._values[instruction] = f"%threadgroup.at.{len(self._setup)}"
            self._setup.append(f"  {self._values[instruction]} = {instruction}")
        return self._values[instruction]
