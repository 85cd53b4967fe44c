"""Defines what the host files call and nothing has: functions of other host files of ATen, and of macOS.

Only a call of such a function fails, by its name; a library that lacks it would not be loaded at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from stackproof.engines.object_files import elf_symbols
from stackproof.engines.standin.symbols import readable

LACKING = "stand-in device: there is no "
"""What a call of such a function says before the name."""

_OURS = re.compile(r"_ZN?K?(2at|3c10|5torch)")


def missing_symbols(objects: Iterable[Path], libraries: Iterable[Path]) -> list[str]:
    """The symbols of PyTorch's namespaces that are asked for and not defined.

    Raises:
        PatchstackError: one of the files is not an ELF file.
    """
    made = [elf_symbols(path) for path in objects]
    wanted = {name for one in made for name in one.wanted if _OURS.match(name)}
    for defined in (one.defined for one in made):
        wanted -= defined
    for path in libraries if wanted else ():
        wanted -= elf_symbols(path).defined
    return sorted(wanted)


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
