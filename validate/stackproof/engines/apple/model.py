"""What Apple's compiler says about a kernel: its parameters, their buffers, and the layout of their structs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stackproof.engines.apple.errors import TranslationError
from stackproof.engines.metal.model import ElementType
from stackproof.engines.metal.struct_layout import Field as FlatField
from stackproof.engines.metal.struct_layout import StructLayout as FlatLayout

_CODES = {
    "bool": "?",
    "char": "b",
    "uchar": "B",
    "short": "h",
    "ushort": "H",
    "int": "i",
    "uint": "I",
    "long": "q",
    "ulong": "Q",
    "half": "e",
    "float": "f",
}
_BY_SIZE = {1: "b", 2: "h", 4: "i", 8: "Q"}
_NUMBERS = {
    "bool": ("?", 1),
    "char": ("i", 1),
    "uchar": ("u", 1),
    "short": ("i", 2),
    "ushort": ("u", 2),
    "int": ("i", 4),
    "uint": ("u", 4),
    "long": ("i", 8),
    "ulong": ("u", 8),
    "half": ("f", 2),
    "bfloat": ("b", 2),
    "float": ("f", 4),
}


@dataclass(frozen=True)
class Field:
    """One field of a struct.

    Attributes:
        name: as the header calls it.
        type_name: as the metadata calls it: ``int``, ``metal::array``, an enumeration or a struct.
        offset: bytes from the start of the struct that holds it.
        size: bytes of one element.
        count: elements of an array; 0 where it is none.
        layout: the fields of its type, if that is a struct.
    """

    name: str
    type_name: str
    offset: int
    size: int
    count: int = 0
    layout: StructLayout | None = None

    @property
    def end(self) -> int:
        """One past its last byte."""
        return self.offset + self.size * max(self.count, 1)


@dataclass(frozen=True)
class LeafField:
    """A field of a struct or of a struct inside it, made of numbers.

    Attributes:
        path: names from the outermost struct inwards, joined by dots; the elements of an array carry its own name.
        type_name: of one number.
        offset: bytes from the start of the outermost struct.
        size: bytes of one number.
        count: how many there are, 1 for a single one.
    """

    path: str
    type_name: str
    offset: int
    size: int
    count: int

    @property
    def code(self) -> str:
        """Of the :mod:`struct` module; what is no known number is an enumeration or a pointer of its size."""
        return _CODES.get(self.type_name) or _BY_SIZE.get(self.size, "i")


@dataclass(frozen=True)
class StructLayout:
    """A struct as Apple's compiler laid it out.

    Attributes:
        name: of the struct.
        size: bytes.
        fields: in order.
    """

    name: str
    size: int
    fields: tuple[Field, ...]

    def leaves(self, base: int = 0, prefix: str = "") -> Iterator[LeafField]:
        """All numbers in it, those of inner structs included, by offset."""
        for one in self.fields:
            path, start = prefix + one.name, base + one.offset
            if one.layout is None:
                yield LeafField(path, one.type_name, start, one.size, max(one.count, 1))
            elif is_array(one.layout):
                inner = one.layout.fields[0]
                yield LeafField(path, inner.type_name, start, inner.size, max(inner.count, 1))
            else:
                for i in range(max(one.count, 1)):
                    where = f"{path}[{i}]." if one.count else f"{path}."
                    yield from one.layout.leaves(start + i * one.size, where)

    def flat(self, alignment: int = 1) -> FlatLayout:
        """The same without nesting, to compare with a header's text and to fill from Python."""
        fields = tuple(FlatField(leaf.path, leaf.offset, leaf.code, leaf.count) for leaf in self.leaves())
        return FlatLayout(self.name, self.size, alignment, fields)


def is_array(layout: StructLayout) -> bool:
    """Whether it is ``metal::array`` or the like: a struct of nothing but ``__elems``."""
    return [one.name for one in layout.fields] == ["__elems"] and layout.fields[0].layout is None


@dataclass(frozen=True)
class AirParameter:
    """One parameter of a kernel as the metadata describes it, in declaration order.

    Attributes:
        position: 0-based.
        name: as the source calls it.
        type_name: of what it points to, or of the value.
        attribute: ``thread_position_in_grid`` and so on; empty for buffers and threadgroup memory.
        location: buffer or threadgroup index, -1 for an attribute.
        address_space: 1 device, 2 constant, 3 threadgroup; 0 for an attribute.
        writable: the kernel declares that it may write.
        buffer_size: bytes behind a reference parameter, 0 for a pointer, which may be of any length.
        size: bytes of one element.
        alignment: of one element.
        used: the compiler kept it.
        layout: of the struct behind it; ``None`` where there is none.
    """

    position: int
    name: str
    type_name: str
    attribute: str = ""
    location: int = -1
    address_space: int = 0
    writable: bool = False
    buffer_size: int = 0
    size: int = 0
    alignment: int = 1
    used: bool = True
    layout: StructLayout | None = None

    @property
    def element(self) -> ElementType:
        """The type behind it, as the executor's argument packing wants it."""
        number, lanes, part = number_type(self.type_name, self.layout)
        whole = lanes * part
        if lanes == 3 and not self.type_name.startswith("packed_"):
            whole = 4 * part
        return ElementType(
            max(self.size, 1), max(self.alignment, 1), number, lanes, part or max(self.size, 1), whole or 1
        )


def number_type(name: str, layout: StructLayout | None) -> tuple[str, int, int]:
    """Kind of number, lanes and bytes of one number; an empty kind for what is not made of numbers."""
    if layout is not None:
        return number_type(layout.fields[0].type_name, None) if is_array(layout) else ("", 1, 0)
    scalar = name.removeprefix("packed_")
    lanes = int(scalar[-1]) if scalar[-1:] in ("2", "3", "4") else 1
    number, part = _NUMBERS.get(scalar[:-1] if lanes > 1 else scalar, ("", 0))
    return number, lanes, part


@dataclass(frozen=True)
class AirKernel:
    """A kernel with what its module says about it.

    Attributes:
        name: as the host asks for it.
        parameters: in declaration order.
        max_threads: limit on the threads of a threadgroup that the source states, 0 without one.
        compile_options: such as ``fast_math_disable``.
        compiler: of the module.
        language: ``Metal 3.1`` and so on.
        intrinsics: names of the ``air.*`` functions it calls, sorted.
        line: of its definition in the disassembly, 1-based.
    """

    name: str
    parameters: tuple[AirParameter, ...]
    max_threads: int = 0
    compile_options: tuple[str, ...] = ()
    compiler: str = ""
    language: str = ""
    intrinsics: tuple[str, ...] = ()
    line: int = 0

    def struct(self, parameter: str) -> FlatLayout:
        """The layout of the struct behind a parameter, flattened.

        Raises:
            TranslationError: no such parameter, or it is not a struct.
        """
        for one in self.parameters:
            if one.name == parameter and one.layout is not None:
                return one.layout.flat(one.alignment)
        structs = ", ".join(p.name for p in self.parameters if p.layout is not None)
        raise TranslationError("no struct parameter of that name", where=self.name, expected=structs, found=parameter)
