"""Builds metallib containers, Mach-O libraries and macOS wheels from nothing, so that no byte of Apple's is needed."""

from __future__ import annotations

import hashlib
import struct
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

HEADER_BYTES = 88
MACHO_BYTES = 32


def tag(name: bytes, content: bytes) -> bytes:
    """One tag of the function list."""
    return name + struct.pack("<H", len(content)) + content


def entry(name: str, code: bytes, offset: int, *, digest: bytes | None = None, without: bytes = b"") -> bytes:
    """One entry of the function list.

    Args:
        name: of the function.
        code: its bitcode.
        offset: of the bitcode in its section.
        digest: written instead of the right one.
        without: a tag to leave out.
    """
    tags = {
        b"NAME": name.encode() + b"\0",
        b"TYPE": b"\x02",
        b"HASH": digest or hashlib.sha256(code).digest(),
        b"MDSZ": struct.pack("<Q", len(code)),
        b"OFFT": struct.pack("<3Q", 0, 0, offset),
        b"VERS": struct.pack("<4H", 2, 6, 3, 1),
    }
    body = b"".join(tag(key, content) for key, content in tags.items() if key != without) + b"ENDT"
    return struct.pack("<I", len(body) + 4) + body


def container(functions: Mapping[str, bytes], entries: Sequence[bytes] | None = None) -> bytes:
    """A metallib with these functions, or with the given list entries over their bitcode."""
    code, made = b"", []
    for name, one in functions.items():
        made.append(entry(name, one, len(code)))
        code += one
    listed = b"".join(entries if entries is not None else made)
    count = struct.pack("<I", len(entries if entries is not None else made))
    after = HEADER_BYTES + 4 + len(listed)
    numbers = (after + len(code), HEADER_BYTES, len(listed), after, 0, after, 0, after, len(code))
    return struct.pack("<4sHHHBBHH9Q", b"MTLB", 0x8001, 2, 7, 0, 0x81, 14, 0, *numbers) + count + listed + code


def macho(sections: Mapping[str, bytes]) -> bytes:
    """A 64-bit arm64 library with one segment of these sections."""
    commands = 72 + 80 * len(sections)
    at, headers, contents = MACHO_BYTES + commands, b"", b""
    for name, content in sections.items():
        headers += struct.pack("<16s16sQQ8I", name.encode(), b"__TEXT", at, len(content), at, 0, 0, 0, 0, 0, 0, 0)
        contents += content
        at += len(content)
    segment = struct.pack("<II16s4Q4I", 0x19, commands, b"__TEXT", 0, at, 0, at, 5, 5, len(sections), 0)
    head = struct.pack("<8I", 0xFEEDFACF, 0x0100000C, 0, 6, 1, commands, 0, 0)
    return head + segment + headers + contents


def wheel(path: Path, library: bytes, member: str = "torch/lib/libtorch_cpu.dylib") -> Path:
    """A wheel that holds the library."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, library)
    return path
