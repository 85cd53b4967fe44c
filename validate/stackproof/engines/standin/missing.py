"""Defines what the host files call and nothing has: functions of other host files of ATen, and of macOS.

Only a call of such a function fails, by its name; a library that lacks it would not be loaded at all.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

from patchstack.errors import PatchstackError
from stackproof.engines.standin.symbols import readable

LACKING = "stand-in device: there is no "
"""What a call of such a function says before the name."""

_SYMTAB, _DYNSYM = 2, 11
_UNDEFINED, _GLOBAL, _WEAK = 0, 1, 2
_OURS = re.compile(r"_ZN?K?(2at|3c10|5torch)")


def missing_symbols(objects: Iterable[Path], libraries: Iterable[Path]) -> list[str]:
    """The symbols of PyTorch's namespaces that are asked for and not defined.

    Raises:
        PatchstackError: one of the files is not a 64-bit ELF file.
    """
    wanted: set[str] = set()
    defined: set[str] = set()
    for path in objects:
        for name, is_defined, bind in elf_symbols(path.read_bytes(), _SYMTAB):
            if is_defined:
                defined.add(name)
            elif bind == _GLOBAL and _OURS.match(name):
                wanted.add(name)
    for path in libraries if wanted else ():
        defined |= {name for name, is_defined, _bind in elf_symbols(path.read_bytes(), _DYNSYM) if is_defined}
    return sorted(wanted - defined)


def throwers(missing: Iterable[str]) -> str:
    """C++ with a function for each symbol; it raises its name."""
    return "\n".join([*_HEAD, *(_function(number, name) for number, name in enumerate(missing)), ""])


_HEAD = (
    "#include <c10/util/Exception.h>",
    "#define LACKS(NUMBER, SYMBOL, NAME) \\",
    '  extern "C" __attribute__((visibility("default"))) void standin_lacks_##NUMBER() __asm__(SYMBOL); \\',
    "  void standin_lacks_##NUMBER() { \\",
    f'    TORCH_CHECK(false, "{LACKING}", NAME); \\',
    "  }",
)


def _function(number: int, symbol: str) -> str:
    return f'LACKS({number}, "{symbol}", "{name_of(symbol)}")'


def name_of(symbol: str) -> str:
    """The qualified name in a symbol."""
    return readable(f"_{symbol}")


def elf_symbols(data: bytes, kind: int) -> Iterator[tuple[str, bool, int]]:
    """Name, whether it is defined, and binding of every symbol that others may see."""
    if data[:5] != b"\x7fELF\x02":
        raise PatchstackError("not a 64-bit ELF file", expected="what the compiler makes")
    (at,) = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, at + number * size) for number in range(count)]
    for _name, one_kind, _flags, _address, offset, length, link, *_rest in sections:
        if one_kind == kind:
            yield from _table(data[offset : offset + length], data, sections[link][4])


def _table(table: bytes, data: bytes, strings: int) -> Iterator[tuple[str, bool, int]]:
    for name, info, _other, section, _value, _size in struct.iter_unpack("<IBBHQQ", table):
        if info >> 4 in (_GLOBAL, _WEAK) and name:
            start = strings + name
            yield data[start : data.index(b"\0", start)].decode(), section != _UNDEFINED, info >> 4
