"""The metallib container: a list of functions, and for each the bitcode that Apple's compiler made of it.

Nothing public describes the format; the layout here was read off the libraries of the wheels, and holds for every
function of those of 2.11 and 2.13. All numbers are little-endian. A header of 88 bytes names four sections (function
list, public metadata, private metadata, bitcode); an entry of the function list is a sequence of tags with a 16-bit
length, ended by ``ENDT``. Each entry has the SHA-256 of its bitcode, which is checked whenever it is read.

The file may come from anywhere, so that every offset and length in it is compared with what is there before use.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from stackproof.engines.apple.errors import ContainerError, NoSuchKernelError

MAGIC = b"MTLB"
_HEADER = struct.Struct("<4sHHHBBHH9Q")
_LIST_COUNT = struct.Struct("<I")
_ENTRY_SIZE = struct.Struct("<I")
_TAG = struct.Struct("<4sH")
_END = b"ENDT"
_KINDS = ("vertex", "fragment", "kernel", "unqualified", "visible", "extern", "intersection")
_NEEDED = {b"NAME": None, b"TYPE": 1, b"HASH": 32, b"MDSZ": 8, b"OFFT": 24, b"VERS": 8}


@dataclass(frozen=True)
class Extent:
    """A section of the file: ``size`` bytes from ``offset``, both from the start of the container."""

    offset: int
    size: int

    @property
    def end(self) -> int:
        """One past its last byte."""
        return self.offset + self.size


@dataclass(frozen=True)
class MetallibHeader:
    """The fixed part at the start.

    Attributes:
        format_version: major and minor of the container.
        platform_version: major and minor of the operating system that it was made for.
        size: bytes of the whole container.
        functions, public, private, bitcode: its sections.
    """

    format_version: tuple[int, int]
    platform_version: tuple[int, int]
    size: int
    functions: Extent
    public: Extent
    private: Extent
    bitcode: Extent


@dataclass(frozen=True)
class KernelEntry:
    """One function of the list.

    Attributes:
        name: as the host asks for it.
        kind: ``kernel``, ``vertex`` and so on.
        sha256: of its bitcode, in hexadecimal.
        extent: of its bitcode, from the start of the container.
        air_version: major and minor of the intermediate representation.
        language_version: major and minor of Metal.
    """

    name: str
    kind: str
    sha256: str
    extent: Extent
    air_version: tuple[int, int]
    language_version: tuple[int, int]


@dataclass(frozen=True)
class Metallib:
    """A container whose list was read.

    Attributes:
        where: what an error calls it.
        data: the bytes; a memory map will do.
        header: the fixed part.
        entries: all functions, in the order of the list.
    """

    where: str
    data: memoryview
    header: MetallibHeader
    entries: tuple[KernelEntry, ...]

    @cached_property
    def by_name(self) -> dict[str, KernelEntry]:
        """The entries by name."""
        return {entry.name: entry for entry in self.entries}

    def entry(self, name: str) -> KernelEntry:
        """The function of that name.

        Raises:
            NoSuchKernelError: there is none.
        """
        if name not in self.by_name:
            raise NoSuchKernelError(
                "no such kernel",
                where=name,
                expected=f"one of the {len(self.entries)} of {self.where}",
                next_command="validate-stack apple-kernels list --name TEXT",
            )
        return self.by_name[name]

    def bitcode(self, entry: KernelEntry) -> bytes:
        """The bitcode of a function, compared with its digest.

        Raises:
            ContainerError: the digest is another one.
        """
        code = bytes(self.data[entry.extent.offset : entry.extent.end])
        found = hashlib.sha256(code).hexdigest()
        if found != entry.sha256:
            raise _damaged(self.where, f"the bitcode of {entry.name} was changed", f"SHA-256 {entry.sha256}", found)
        return code


def read_metallib(data: bytes | memoryview, where: str) -> Metallib:
    """Read the header and the function list.

    Args:
        data: the container from its first byte; more may follow it.
        where: what an error calls it.

    Raises:
        ContainerError: it is no metallib, is cut short, or contradicts itself.
    """
    view = memoryview(data)
    header = _read_header(view, where)
    entries = tuple(_read_list(view, header, where))
    seen: set[str] = set()
    for entry in entries:
        if entry.name in seen:
            raise _damaged(where, f"two functions are called {entry.name}", "unique names")
        seen.add(entry.name)
    return Metallib(where, view[: header.size], header, entries)


def _damaged(where: str, problem: str, expected: str = "", found: str = "") -> ContainerError:
    return ContainerError(
        f"not a usable metallib: {problem}",
        where=where,
        expected=expected,
        found=found,
        next_command="get the file again" if expected or found else "",
    )


def _read_header(data: memoryview, where: str) -> MetallibHeader:
    if len(data) < _HEADER.size:
        raise _damaged(where, "it is cut short", f"a header of {_HEADER.size} bytes", f"{len(data)} bytes")
    magic, _platform, major, minor, _type, _system, os_major, os_minor, *numbers = _HEADER.unpack_from(data)
    if magic != MAGIC:
        raise _damaged(where, "it does not start like one", MAGIC.decode(), repr(bytes(magic)))
    size, *places = numbers
    if not _HEADER.size <= size <= len(data):
        raise _damaged(where, "it is cut short", f"{size} bytes", f"{len(data)}")
    functions, public, private, bitcode = (Extent(*places[i : i + 2]) for i in range(0, 8, 2))
    sections = {"function list": functions, "public": public, "private": private, "bitcode": bitcode}
    for name, extent in sections.items():
        if extent.end > size:
            raise _damaged(where, f"its {name} section ends outside it", f"at most {size}", str(extent.end))
    return MetallibHeader((major, minor), (os_major, os_minor), size, functions, public, private, bitcode)


def _read_list(data: memoryview, header: MetallibHeader, where: str) -> Iterator[KernelEntry]:
    at, end = header.functions.offset, header.functions.end + _LIST_COUNT.size
    if end > header.size or header.functions.size < 0:
        raise _damaged(where, "its function list ends outside it", f"at most {header.size}", str(end))
    (count,) = _LIST_COUNT.unpack_from(data, at)
    at += _LIST_COUNT.size
    for number in range(count):
        if at + _ENTRY_SIZE.size > end:
            raise _damaged(where, "its function list is cut short", f"{count} functions", str(number))
        (size,) = _ENTRY_SIZE.unpack_from(data, at)
        if size < _ENTRY_SIZE.size or at + size > end:
            raise _damaged(where, f"function {number} of its list has no usable length", found=str(size))
        tags = _read_tags(data[at + _ENTRY_SIZE.size : at + size], number, where)
        yield _entry(tags, header, number, where)
        at += size


def _read_tags(data: memoryview, number: int, where: str) -> dict[bytes, bytes]:
    tags: dict[bytes, bytes] = {}
    at = 0
    while bytes(data[at : at + len(_END)]) != _END:
        if at + _TAG.size > len(data):
            raise _damaged(where, f"function {number} of its list is cut short", "a tag or ENDT", "nothing")
        name, size = _TAG.unpack_from(data, at)
        at += _TAG.size
        if at + size > len(data):
            raise _damaged(where, f"tag {name!r} of function {number} ends outside it", f"{len(data) - at}", str(size))
        tags[name] = bytes(data[at : at + size])
        at += size
    for name, length in _NEEDED.items():
        if name not in tags or (length is not None and len(tags[name]) != length):
            found = f"{len(tags[name])} bytes" if name in tags else "no such tag"
            raise _damaged(where, f"function {number} of its list", f"a tag {name.decode()} of {length} bytes", found)
    return tags


def _entry(tags: dict[bytes, bytes], header: MetallibHeader, number: int, where: str) -> KernelEntry:
    try:
        name = tags[b"NAME"].rstrip(b"\0").decode()
    except UnicodeDecodeError:
        raise _damaged(where, f"the name of function {number} is no text", found=repr(tags[b"NAME"][:40])) from None
    if not name or not name.isprintable():
        raise _damaged(where, f"function {number} has no usable name", found=repr(name[:40]))
    (size,) = struct.unpack("<Q", tags[b"MDSZ"])
    offset = struct.unpack("<3Q", tags[b"OFFT"])[2]
    if offset + size > header.bitcode.size:
        raise _damaged(
            where, f"the bitcode of {name} ends outside its section", f"{header.bitcode.size}", f"{offset + size}"
        )
    kind = tags[b"TYPE"][0]
    versions: Sequence[int] = struct.unpack("<4H", tags[b"VERS"])
    return KernelEntry(
        name,
        _KINDS[kind] if kind < len(_KINDS) else f"unknown kind {kind}",
        tags[b"HASH"].hex(),
        Extent(header.bitcode.offset + offset, size),
        (versions[0], versions[1]),
        (versions[2], versions[3]),
    )
