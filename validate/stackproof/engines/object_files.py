"""Mach-O and ELF files through LIEF: the one reader of what compilers and linkers make."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patchstack.errors import PatchstackError
from stackproof.packages import missing_package

_N_STAB, _N_TYPE, _N_EXT = 0xE0, 0x0E, 0x01  # of a Mach-O symbol's type byte; no bit of _N_TYPE is set: undefined


@dataclass(frozen=True)
class Symbols:
    """The symbols that a file shares with others.

    Attributes:
        wanted: names that it must get from elsewhere.
        defined: names that it defines for others.
    """

    wanted: frozenset[str]
    defined: frozenset[str]


def macho_binaries(file: Path | bytes) -> tuple[Any, ...]:
    """The binaries of a Mach-O file, one for each architecture; none where it is no such file.

    Raises:
        MissingPackageError: LIEF is not installed.
    """
    lief = _lief()
    source = file if isinstance(file, bytes) else os.fspath(file)
    fat = lief.MachO.parse(source, lief.MachO.ParserConfig.quick)
    return () if fat is None else tuple(fat.at(number) for number in range(fat.size))


def macho_symbols(file: Path | bytes) -> Symbols:
    """The external symbols of a Mach-O file.

    Raises:
        PatchstackError: not a Mach-O file.
        MissingPackageError: LIEF is not installed.
    """
    binaries = macho_binaries(file)
    if not binaries:
        raise PatchstackError("not a Mach-O file", expected="what Apple's linker makes")
    kinds = [(str(one.name), int(one.raw_type)) for binary in binaries for one in binary.symbols]
    return _symbols((name, bool(kind & _N_TYPE), True) for name, kind in kinds if kind & _N_EXT and not kind & _N_STAB)


def elf_symbols(file: Path) -> Symbols:
    """The global and weak symbols of an ELF file: those that a library exports, or those of an object.

    A weak symbol that nothing defines is not wanted.

    Raises:
        PatchstackError: not an ELF file.
        MissingPackageError: LIEF is not installed.
    """
    lief = _lief()
    config = lief.ELF.ParserConfig()
    for part in ("relocations", "symbol_versions", "notes", "overlay"):
        setattr(config, f"parse_{part}", False)
    binary = lief.ELF.parse(os.fspath(file), config)
    if binary is None:
        raise PatchstackError("not an ELF file", where=str(file), expected="what the compiler makes")
    seen, kinds = (lief.ELF.Symbol.BINDING.GLOBAL, lief.ELF.Symbol.BINDING.WEAK), lief.ELF.Header.FILE_TYPE
    found = binary.symtab_symbols if binary.header.file_type == kinds.REL else binary.dynamic_symbols
    return _symbols((str(one.name), one.shndx != 0, one.binding == seen[0]) for one in found if one.binding in seen)


def _symbols(found: Iterable[tuple[str, bool, bool]]) -> Symbols:
    """From name, whether it is defined, and whether it must be, of each."""
    symbols = [one for one in found if one[0]]
    return Symbols(
        frozenset(name for name, defined, needed in symbols if needed and not defined),
        frozenset(name for name, defined, _ in symbols if defined),
    )


def _lief() -> Any:
    try:
        import lief
    except ImportError:
        raise missing_package("lief", "to read what compilers and linkers make") from None
    # It tells what it dislikes on standard output; what matters is whether it could be read.
    lief.logging.disable()
    return lief
