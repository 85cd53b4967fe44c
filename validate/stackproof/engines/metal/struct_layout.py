"""Lays out a C struct from the text of the header that declares it.

The host function passes its parameters to a kernel as one struct by value. A proof that fills that struct from Python
must not carry its own idea of the offsets: a field added, dropped, widened or moved in the header has to change what
is packed, or stop the run. So the header is parsed each time.

The compilers print layouts too (:mod:`stackproof.engines.standin.layouts`), and cannot take this module's place: values
are packed where no compiler is (a machine with a GPU, the plan of a launch), with template arguments that
the caller chooses. That both agree is shown: apple-kernels compares this reader, the Metal front end and Apple's
compiler, field by field.

Understood: plain and templated structs of arithmetic types, enums, fixed arrays (``T x[N]`` and any ``array<T, N>``)
and other structs of the same text. Methods are skipped; anything else is refused.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from patchstack.errors import PatchstackError

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

Argument = int | str
Scalar = int | float | bool
Value = Scalar | Sequence[Scalar]

# struct-module codes of fixed-size types, as both sides of a Metal call define them.
_CODES = {
    "bool": "?",
    "char": "b",
    "int8_t": "b",
    "uint8_t": "B",
    "uchar": "B",
    "int16_t": "h",
    "short": "h",
    "uint16_t": "H",
    "ushort": "H",
    "int32_t": "i",
    "int": "i",
    "uint32_t": "I",
    "uint": "I",
    "int64_t": "q",
    "long": "q",
    "uint64_t": "Q",
    "ulong": "Q",
    "half": "e",
    "float": "f",
}


@dataclass(frozen=True)
class Field:
    """One scalar or array of scalars in a struct.

    Attributes:
        path: field names from the outer struct inwards, joined by dots.
        offset: bytes from the start of the outer struct.
        code: character of the :mod:`struct` module for one element.
        count: elements.
    """

    path: str
    offset: int
    code: str
    count: int


@dataclass(frozen=True)
class StructLayout:
    """Where everything in a struct is.

    Attributes:
        name: name of the struct, with its template arguments.
        size: bytes, padding at the end included.
        alignment: bytes.
        fields: in the order of declaration, nested structs flattened.
    """

    name: str
    size: int
    alignment: int
    fields: tuple[Field, ...]

    @property
    def names(self) -> frozenset[str]:
        """The paths of all fields."""
        return frozenset(field.path for field in self.fields)

    def pack(self, values: Mapping[str, Value]) -> bytes:
        """The struct's bytes with ``values`` by field path; padding is zero.

        Raises:
            PatchstackError: a field without a value, a value without a field, or a wrong number of elements.
        """
        if self.names != set(values):
            raise PatchstackError(
                "the struct does not have the fields that the caller fills",
                where=self.name,
                expected=", ".join(sorted(values)),
                found=", ".join(sorted(self.names)),
            )
        packed = bytearray(self.size)
        for field in self.fields:
            value = values[field.path]
            elements = value if isinstance(value, Sequence) else [value]
            if len(elements) != field.count:
                raise PatchstackError(
                    f"wrong number of elements for {field.path}",
                    where=self.name,
                    expected=str(field.count),
                    found=str(len(elements)),
                )
            struct.pack_into(f"<{field.count}{field.code}", packed, field.offset, *elements)
        return bytes(packed)


class StructTable:
    """The structs and enums that one or more header texts declare."""

    def __init__(self, *headers: bytes) -> None:
        self._structs: dict[str, tuple[Node, tuple[str, ...]]] = {}
        self._enums: dict[str, str] = {}
        parser = _parser()
        for header in headers:
            for node in _all_nodes(parser.parse(header).root_node):
                self._note(node)

    def _note(self, node: Node) -> None:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is None or body is None:
            return
        if node.type == "enum_specifier":
            base = node.child_by_field_name("base")
            self._enums.setdefault(_text(name), _text(base) if base else "int")
        elif node.type == "struct_specifier":
            self._structs.setdefault(_text(name), (node, _template_parameters(node)))

    def names(self) -> list[str]:
        """Every struct with a body, in the order of declaration."""
        return list(self._structs)

    def layout(self, name: str, *arguments: Argument) -> StructLayout:
        """The layout of a struct, by C's rules.

        Args:
            name: the struct.
            arguments: all its template arguments in order: integers, or names of types.

        Raises:
            PatchstackError: no such struct, or something in it that this module does not understand.
        """
        if name not in self._structs:
            raise PatchstackError("no such struct in the header", where=name, found=", ".join(self._structs) or "none")
        node, parameters = self._structs[name]
        if len(arguments) != len(parameters):
            raise PatchstackError(
                "wrong number of template arguments", where=name, expected=str(parameters), found=str(arguments)
            )
        bound = dict(zip(parameters, arguments, strict=True))
        shown = f"{name}<{', '.join(map(str, arguments))}>" if arguments else name
        fields: list[Field] = []
        at, alignment = 0, 1
        for field_name, type_, counts in _declared_fields(node, shown):
            inner, count = self._type(type_, bound, shown)
            for extent in counts:
                count *= _integer(extent, bound, shown)
            if len(inner.fields) > 1 and count != 1:
                raise PatchstackError("an array of structs is not understood", where=f"{shown}::{field_name}")
            at = -(-at // inner.alignment) * inner.alignment
            alignment = max(alignment, inner.alignment)
            for part in inner.fields:
                path = f"{field_name}.{part.path}" if part.path else field_name
                fields.append(Field(path, at + part.offset, part.code, part.count * count))
            at += inner.size * count
        return StructLayout(shown, -(-at // alignment) * alignment, alignment, tuple(fields))

    def _type(self, node: Node, bound: Mapping[str, Argument], where: str) -> tuple[StructLayout, int]:
        """Layout of one element of a type, and how many elements an ``array`` of it has."""
        while node.type in ("qualified_identifier", "type_descriptor"):
            inner = node.child_by_field_name("name" if node.type == "qualified_identifier" else "type")
            assert inner is not None
            node = inner
        if node.type == "template_type":
            name, arguments = _template_use(node)
            if name == "array":
                layout, count = self._type(arguments[0], bound, where)
                return layout, count * _integer(arguments[1], bound, where)
            return self.layout(name, *(self._argument(argument, bound) for argument in arguments)), 1
        name = str(bound.get(_text(node), _text(node)))
        name = self._enums.get(name, name).removeprefix("::").removeprefix("std::")
        if name in _CODES:
            size = struct.calcsize(_CODES[name])
            return StructLayout(name, size, size, (Field("", 0, _CODES[name], 1),)), 1
        if name in self._structs:
            return self.layout(name), 1
        raise PatchstackError("a type that is not understood", where=where, found=name)

    @staticmethod
    def _argument(node: Node, bound: Mapping[str, Argument]) -> Argument:
        text = _text(node)
        return bound[text] if text in bound else int(text) if text.isdigit() else text


def _parser() -> Parser:
    # Imported on use: laid out structs travel to machines that have no parser.
    import tree_sitter_cpp
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_cpp.language()))


def _text(node: Node) -> str:
    assert node.text is not None
    return node.text.decode()


def _all_nodes(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children:
        yield from _all_nodes(child)


def _template_parameters(struct_node: Node) -> tuple[str, ...]:
    parent = struct_node.parent
    if parent is None or parent.type != "template_declaration":
        return ()
    parameters = parent.child_by_field_name("parameters")
    assert parameters is not None
    names = []
    for parameter in parameters.named_children:
        named = parameter.child_by_field_name("name") or parameter.child_by_field_name("declarator")
        # `typename T` has its name as the only child
        named = named or next((child for child in parameter.named_children if child.type == "type_identifier"), None)
        if named is None:
            raise PatchstackError("an unnamed template parameter is not understood", where=_text(parameter))
        names.append(_text(named))
    return tuple(names)


def _template_use(node: Node) -> tuple[str, list[Node]]:
    name, arguments = node.child_by_field_name("name"), node.child_by_field_name("arguments")
    assert name is not None
    assert arguments is not None
    return _text(name), arguments.named_children


def _declared_fields(node: Node, where: str) -> Iterator[tuple[str, Node, list[Node]]]:
    """Name, type and array extents of every data member; methods are skipped."""
    body = node.child_by_field_name("body")
    assert body is not None
    for member in body.named_children:
        if member.type.startswith("preproc_"):
            if any(inner.type == "field_declaration" and _is_data(inner) for inner in _all_nodes(member)):
                raise PatchstackError("a data member under #if is not understood", where=where)
        elif member.type == "field_declaration" and _is_data(member):
            type_ = member.child_by_field_name("type")
            assert type_ is not None
            for declarator in member.children_by_field_name("declarator"):
                yield _declarator(declarator, type_)


def _is_data(member: Node) -> bool:
    declarators = member.children_by_field_name("declarator")
    static = any(child.type == "storage_class_specifier" for child in member.children)
    return not static and any(_innermost(declarator).type == "field_identifier" for declarator in declarators)


def _innermost(declarator: Node) -> Node:
    while declarator.type == "array_declarator":
        inner = declarator.child_by_field_name("declarator")
        assert inner is not None
        declarator = inner
    return declarator


def _declarator(declarator: Node, type_: Node) -> tuple[str, Node, list[Node]]:
    extents = []
    while declarator.type == "array_declarator":
        extent, inner = declarator.child_by_field_name("size"), declarator.child_by_field_name("declarator")
        assert extent is not None
        assert inner is not None
        extents.append(extent)
        declarator = inner
    return _text(declarator), type_, extents


def _integer(node: Node, bound: Mapping[str, Argument], where: str) -> int:
    text = _text(node)
    value = bound.get(text, text)
    if isinstance(value, int):
        return value
    if value.isdigit():
        return int(value)
    raise PatchstackError("an array length that is not understood", where=where, found=text)
