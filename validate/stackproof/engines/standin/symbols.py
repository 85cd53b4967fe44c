"""Whether the macOS release exports what an object asks for."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterable
from pathlib import Path

from patchstack.cache import write_whole
from patchstack.errors import PatchstackError
from stackproof.engines.metal.toolchain import digest
from stackproof.engines.object_files import macho_symbols

_LIBRARIES = ("torch/lib/libtorch_cpu.dylib", "torch/lib/libc10.dylib", "torch/lib/libtorch.dylib")

# What is looked up: names of PyTorch's own namespaces. The rest belongs to the system or to header-only libraries.
_OURS = re.compile(r"^__ZN?K?[A-Z]*\d*N?K?(2at|3c10|5torch|6caffe2)|^__Z[A-Z]*N?K?(2at|3c10|5torch|6caffe2)")


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
            found |= macho_symbols(archive.read(name)).defined
    if not found:
        raise PatchstackError("this wheel has no macOS libraries", where=wheel.name, expected=_LIBRARIES[0])
    write_whole(place, json.dumps(sorted(found)))
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
