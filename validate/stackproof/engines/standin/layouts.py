"""Whether the structs that host and kernel share have one layout on both sides.

Host and kernel include the same header, but not the same compiler reads it: macros, address spaces and vector types can
make two structs of one text. Both compilers print the layout they use; only structs that a kernel takes are compared.

What is compared is what the compilers did, so it is read from them; the text of a header, which
:mod:`stackproof.engines.metal.struct_layout` lays out by C's rules, does not tell that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

DUMP_FLAGS = ("-Xclang", "-fdump-record-layouts")
_ROOT = re.compile(r"^ *0 \| (?:struct|class|union) (.+?)$")
_FIELD = re.compile(r"^ *(\d+) \|   (\S.*)$")
_SIZE = re.compile(r"\[sizeof=(\d+),")


@dataclass(frozen=True)
class Field:
    """A direct member.

    Attributes:
        name: its name.
        offset: bytes from the start of the struct.
    """

    name: str
    offset: int


@dataclass(frozen=True)
class Layout:
    """A struct as one compiler lays it out.

    Attributes:
        name: with template arguments, as the compiler prints it.
        size: bytes.
        fields: direct members in order of offset.
    """

    name: str
    size: int
    fields: tuple[Field, ...]


def parse_layouts(dump: str) -> dict[str, Layout]:
    """Every struct of clang's ``-fdump-record-layouts`` output, by name."""
    found: dict[str, Layout] = {}
    for block in dump.split("*** Dumping AST Record Layout")[1:]:
        lines = block.strip("\n").splitlines()
        root = _ROOT.match(lines[0]) if lines else None
        size = _SIZE.search(block)
        if root and size:
            fields = tuple(
                Field(match[2].split()[-1], int(match[1])) for line in lines[1:] if (match := _FIELD.match(line))
            )
            # The same 64 bits, whatever the platform's int64_t is called.
            name = root[1].replace("long long", "long")
            found[name] = Layout(name, int(size[1]), fields)
    return found


def compare_layouts(host: dict[str, Layout], kernel: dict[str, Layout], names: Iterable[str]) -> list[str]:
    """One sentence for each struct that differs.

    Args:
        host: as the host's compiler has them.
        kernel: as the kernels' compiler has them.
        names: names of the structs to compare, without template arguments.
    """
    wanted = set(names)
    shared = [name for name in kernel if name in host and name.partition("<")[0] in wanted]
    return [text for name in shared if (text := _difference(host[name], kernel[name]))]


def _difference(host: Layout, kernel: Layout) -> str:
    ours = {field.name: field.offset for field in host.fields}
    theirs = {field.name: field.offset for field in kernel.fields}
    if set(ours) != set(theirs):
        only = sorted(set(ours) ^ set(theirs))
        return f"{host.name} has other fields on the host than in the kernel: {', '.join(only)}"
    moved = [f"{name} at {ours[name]} and {theirs[name]}" for name in ours if ours[name] != theirs[name]]
    if moved:
        return f"{host.name} is laid out differently on the host and in the kernel: {', '.join(moved)} bytes"
    if host.size != kernel.size:
        return f"{host.name} has {host.size} bytes on the host and {kernel.size} in the kernel"
    return ""
