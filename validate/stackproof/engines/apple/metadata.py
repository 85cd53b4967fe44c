"""Reads ``!air.kernel``: the parameters of a kernel, the buffers they are bound to, and the layouts of their structs.

The metadata is a sequence of words and values without keys of its own; what a word is followed by was read off all
kernels of the 2.11 and 2.13 wheels.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from stackproof.engines.apple.errors import TranslationError
from stackproof.engines.apple.ir import Module, split_arguments
from stackproof.engines.apple.model import AirKernel, AirParameter, Field, StructLayout

_NODE = re.compile(r"^!(\d+) = (?:distinct )?!\{(.*)\}$")
_NAMED = re.compile(r"^!([\w.]+) = !\{(.*)\}$")
_INTEGER = re.compile(r"i\d+ (-?\d+)$")
_STRING = re.compile(r'!"((?:[^"\\]|\\[0-9A-Fa-f]{2})*)"$')
_POINTER = re.compile(r'(?:ptr|void [^@]*) @("[^"]*"|[\w.$]+)$')
_BUFFERS = ("air.buffer", "air.indirect_buffer")
_STRUCT = "air.struct_type_info"
_FIELD_VALUES = 5
# Words with one value after them, and words that stand alone; both may follow in any order.
_VALUES = (
    "air.buffer_size",
    "air.address_space",
    "air.arg_type_size",
    "air.arg_type_align_size",
    "air.arg_type_name",
    "air.arg_name",
    _STRUCT,
)

Word = int | str
"""A number, a string, or a reference ``!N`` to another node."""


class _Nodes:
    """The metadata of one module."""

    def __init__(self, module: Module) -> None:
        self.where = module.where
        self._numbered: dict[str, str] = {}
        self.named: dict[str, str] = {}
        for line in module.lines:
            if not line.startswith("!"):
                continue
            if node := _NODE.match(line):
                self._numbered[f"!{node[1]}"] = node[2]
            elif named := _NAMED.match(line):
                self.named[named[1]] = named[2]

    def node(self, reference: Word) -> list[str]:
        """The elements of a node, as written."""
        if not isinstance(reference, str) or reference not in self._numbered:
            raise self.damaged("a reference to no node", reference)
        return split_arguments(self._numbered[reference])

    def words(self, reference: Word) -> list[Word]:
        """The elements of a node, read."""
        return [self._word(text) for text in self.node(reference)]

    def references(self, name: str) -> list[str]:
        """What a named node refers to; nothing where there is no such node."""
        return split_arguments(self.named.get(name, ""))

    def damaged(self, problem: str, found: object) -> TranslationError:
        return TranslationError(f"the kernel's metadata is not understood: {problem}", self.where, found=repr(found))

    def _word(self, text: str) -> Word:
        if number := _INTEGER.match(text):
            return int(number[1])
        if string := _STRING.match(text):
            return re.sub(r"\\([0-9A-Fa-f]{2})", lambda code: chr(int(code[1], 16)), string[1])
        return text


def read_kernel(module: Module) -> AirKernel:
    """What a module says about its kernel.

    Raises:
        TranslationError: no kernel or more than one, or metadata of another form.
    """
    nodes = _Nodes(module)
    kernels = nodes.references("air.kernel")
    if len(kernels) != 1:
        raise TranslationError("not a module of one kernel", where=module.where, expected="1", found=str(len(kernels)))
    kernel = nodes.node(kernels[0])
    pointer = _POINTER.match(kernel[0]) if kernel else None
    if pointer is None or len(kernel) < 3:
        raise nodes.damaged("air.kernel", kernel)
    name = pointer[1].strip('"')
    language = nodes.words(nodes.references("air.language_version")[0]) if "air.language_version" in nodes.named else []
    return AirKernel(
        name,
        tuple(_parameter(nodes, reference) for reference in nodes.node(kernel[2])),
        max_threads=_limit(nodes, kernel[3:]),
        compile_options=tuple(
            str(word).removeprefix("air.compile.")
            for one in nodes.references("air.compile_options")
            for word in nodes.words(one)
        ),
        compiler=" ".join(str(word) for one in nodes.references("llvm.ident") for word in nodes.words(one)),
        language=f"{language[0]} {'.'.join(map(str, language[1:3]))}" if len(language) >= 3 else "",
        intrinsics=tuple(sorted(d.name for d in module.declarations if d.name.startswith("air."))),
        line=module.function(name).first + 1,
    )


def _limit(nodes: _Nodes, references: Sequence[str]) -> int:
    for reference in references:
        words = nodes.words(reference)
        if words[:1] == ["air.max_work_group_size"] and isinstance(words[1], int):
            return words[1]
    return 0


def _parameter(nodes: _Nodes, reference: str) -> AirParameter:
    words = nodes.words(reference)
    if len(words) < 2 or not isinstance(words[0], int) or not isinstance(words[1], str):
        raise nodes.damaged("a parameter", words)
    position, kind = words[0], words[1]
    values, alone, location = _keyed(nodes, words[2:])
    name, type_name = str(values.get("air.arg_name", "")), str(values.get("air.arg_type_name", ""))
    if kind not in _BUFFERS:
        if not kind.startswith("air."):
            raise nodes.damaged("a parameter", words)
        return AirParameter(position, name, type_name, attribute=kind.removeprefix("air."))
    size = _number(nodes, values, "air.arg_type_size")
    layout = _layout(nodes, type_name, size, values[_STRUCT]) if _STRUCT in values else None
    return AirParameter(
        position,
        name,
        type_name,
        location=location,
        address_space=_number(nodes, values, "air.address_space"),
        writable="air.read" not in alone,
        buffer_size=_number(nodes, values, "air.buffer_size"),
        size=size,
        alignment=_number(nodes, values, "air.arg_type_align_size"),
        used="air.arg_unused" not in alone,
        layout=layout,
    )


def _keyed(nodes: _Nodes, words: Sequence[Word]) -> tuple[dict[str, Word], set[str], int]:
    """Values by word, the words that stand alone, and the location."""
    values: dict[str, Word] = {}
    alone: set[str] = set()
    location, at = -1, 0
    while at < len(words):
        word = words[at]
        if word == "air.location_index":
            if at + 2 >= len(words) or not isinstance(words[at + 1], int):
                raise nodes.damaged("a location", words)
            location, at = int(words[at + 1]), at + 3  # the third is the number of locations
        elif word in _VALUES:
            if at + 1 >= len(words):
                raise nodes.damaged(f"no value after {word}", words)
            values[str(word)], at = words[at + 1], at + 2
        else:
            alone.add(str(word))
            at += 1
    return values, alone, location


def _number(nodes: _Nodes, values: dict[str, Word], word: str) -> int:
    value = values.get(word, 0)
    if not isinstance(value, int):
        raise nodes.damaged(f"no number after {word}", value)
    return value


def _layout(nodes: _Nodes, name: str, size: int, reference: Word, depth: int = 0) -> StructLayout:
    if depth > 16:
        raise nodes.damaged("structs inside structs without end", reference)
    words, at = nodes.words(reference), 0
    fields = []
    while at < len(words):
        inner = None
        if words[at] == _STRUCT:
            inner, at = words[at + 1] if at + 1 < len(words) else None, at + 2
        group = words[at : at + _FIELD_VALUES]
        notes, at = _notes(words, at + _FIELD_VALUES)
        one = _field(nodes, group, inner, depth)
        # A note that refers to a node describes the buffer that the field points to; its type is what lies there.
        pointer = str(notes.get("air.indirect_argument", "")).startswith("!")
        fields.append(replace(one, type_name=f"{one.type_name} *", layout=None) if pointer else one)
    return StructLayout(name, size or max((one.end for one in fields), default=0), tuple(fields))


def _notes(words: Sequence[Word], at: int) -> tuple[dict[str, Word], int]:
    """Notes after a field, each a word with a value, and where the next field starts."""
    notes: dict[str, Word] = {}
    while at + 1 < len(words) and str(words[at]).startswith("air.") and words[at] != _STRUCT:
        notes[str(words[at])] = words[at + 1]
        at += 2
    return notes, at


def _field(nodes: _Nodes, group: Sequence[Word], inner: Word | None, depth: int) -> Field:
    if len(group) != _FIELD_VALUES or not all(isinstance(word, int) for word in group[:3]):
        raise nodes.damaged("a field of a struct", group)
    offset, size, count = (int(word) for word in group[:3])
    type_name, name = str(group[3]), str(group[4])
    layout = None if inner is None else _layout(nodes, type_name, size, inner, depth + 1)
    return Field(name, type_name, offset, size, count, layout)
