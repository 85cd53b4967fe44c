"""Where a Mach-O library keeps its metallibs: PyTorch links each into a section of ``__TEXT``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stackproof.engines.apple.container import MAGIC
from stackproof.engines.apple.errors import ContainerError
from stackproof.engines.object_files import macho_binaries


@dataclass(frozen=True)
class LibrarySection:
    """A section that holds a metallib.

    Attributes:
        name: of the section, ``metal_basic`` for example.
        offset: bytes from the start of the file.
        size: bytes.
    """

    name: str
    offset: int
    size: int


def metallib_sections(library: Path) -> tuple[LibrarySection, ...]:
    """The sections of a Mach-O library that hold a metallib, in file order.

    Raises:
        ContainerError: not a Mach-O library, or cut short.
        MissingPackageError: LIEF is not installed.
    """
    found = []
    length = library.stat().st_size
    with library.open("rb") as file:
        for name, offset, size in _sections(library):
            file.seek(offset)
            if size < len(MAGIC) or file.read(len(MAGIC)) != MAGIC:
                continue
            if offset + size > length:
                raise ContainerError(
                    f"section {name} ends outside the file",
                    where=str(library),
                    expected=f"{offset + size} bytes",
                    found=str(length),
                    next_command="get the file again",
                )
            found.append(LibrarySection(name, offset, size))
    return tuple(sorted(found, key=lambda section: section.offset))


def _sections(library: Path) -> list[tuple[str, int, int]]:
    binaries = macho_binaries(library)
    if not binaries:
        raise ContainerError("not a readable Mach-O library", where=str(library), expected="what Apple's linker makes")
    return [
        (str(section.name), int(binary.fat_offset + section.offset), int(section.size))
        for binary in binaries
        for section in binary.sections
        if section.offset
    ]
