"""Mach-O symbol tables, as far as one question needs them: does the macOS release export what an object asks for?"""

from __future__ import annotations

import json
import re
import struct
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from patchstack.errors import PatchstackError
from stackproof.engines.metal.toolchain import digest

_MAGIC_64 = 0xFEEDFACF
_LC_SYMTAB = 2
_N_STAB, _N_TYPE, _N_EXT, _N_UNDF = 0xE0, 0x0E, 0x01, 0x00
_LIBRARIES = ("torch/lib/libtorch_cpu.dylib", "torch/lib/libc10.dylib", "torch/lib/libtorch.dylib")

# What is looked up: names of PyTorch's own namespaces. The rest belongs to the system or to header-only libraries.
_OURS = re.compile(r"^__ZN?K?[A-Z]*\d*N?K?(2at|3c10|5torch|6caffe2)|^__Z[A-Z]*N?K?(2at|3c10|5torch|6caffe2)")


def undefined_symbols(data: bytes) -> tuple[str, ...]:
    """Names that a Mach-O object wants from elsewhere, sorted.

    Raises:
        PatchstackError: not a 64-bit Mach-O file.
    """
    return tuple(sorted({name for name, kind, _value in _symbols(data) if kind & _N_TYPE == _N_UNDF}))


def exported_symbols(data: bytes) -> frozenset[str]:
    """Names that a Mach-O library defines for others.

    Raises:
        PatchstackError: not a 64-bit Mach-O file.
    """
    return frozenset(name for name, kind, _value in _symbols(data) if kind & _N_TYPE != _N_UNDF)


def _symbols(data: bytes) -> Iterator[tuple[str, int, int]]:
    """Name, type byte and value of every external symbol."""
    header = struct.unpack_from("<8I", data) if len(data) >= 32 else (0,)
    if header[0] != _MAGIC_64:
        raise PatchstackError("not a 64-bit Mach-O file", expected="what Apple's linker makes")
    position = 32
    for _ in range(header[4]):
        command, size = struct.unpack_from("<2I", data, position)
        if command == _LC_SYMTAB:
            yield from _table(data, *struct.unpack_from("<4I", data, position + 8))
        position += size


def _table(data: bytes, offset: int, count: int, strings: int, strings_size: int) -> Iterator[tuple[str, int, int]]:
    names = data[strings : strings + strings_size]
    for at, kind, _section, _description, value in struct.iter_unpack("<IBBHQ", data[offset : offset + 16 * count]):
        if kind & _N_EXT and not kind & _N_STAB:
            yield names[at : names.index(b"\0", at)].decode(errors="replace"), kind, value


def release_exports(wheel: Path, cache: Path) -> frozenset[str]:
    """What the libraries of a macOS wheel export; only names are kept in the cache.

    Raises:
        PatchstackError: the wheel has none of the libraries.
    """
    place = cache / "exports" / f"{digest(wheel.name, str(wheel.stat().st_size))}.json"
    if place.exists():
        return frozenset(json.loads(place.read_text()))
    found: set[str] = set()
    with zipfile.ZipFile(wheel) as archive:
        for name in set(_LIBRARIES) & set(archive.namelist()):
            found |= exported_symbols(archive.read(name))
    if not found:
        raise PatchstackError("this wheel has no macOS libraries", where=wheel.name, expected=_LIBRARIES[0])
    place.parent.mkdir(parents=True, exist_ok=True)
    partial = place.with_suffix(".partial")
    partial.write_text(json.dumps(sorted(found)))
    partial.replace(place)
    return frozenset(found)


def missing_symbols(wanted: Iterable[str], exports: frozenset[str]) -> tuple[str, ...]:
    """The names of PyTorch's namespaces among ``wanted`` that are not exported."""
    return tuple(name for name in wanted if _OURS.match(name) and name not in exports)


_NESTED = re.compile(r"N?K?(\d+)")


def readable(name: str) -> str:
    """The qualified name in a mangled one, without its parameters: ``at::native::foo``."""
    position = len("__ZN") if name.startswith("__ZN") else len("__Z")
    parts = []
    while match := _NESTED.match(name, position):
        begin = match.end()
        position = begin + int(match[1])
        parts.append(name[begin:position])
    return "::".join(parts) or name
