"""The metallibs of a PyTorch release, taken out of its macOS wheel once and kept in the cache.

What is kept is Apple's compiler's output on this machine only: no byte of it belongs into a repository.
"""

from __future__ import annotations

import mmap
import os
import shutil
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from patchstack.cache import cache_dir, made_folder
from patchstack.reference import Progress, reference_wheel
from patchstack.reference.progress import quiet
from stackproof.engines.apple.container import MAGIC, Metallib, read_metallib
from stackproof.engines.apple.errors import ContainerError
from stackproof.engines.apple.macho import LibrarySection, metallib_sections
from stackproof.engines.metal.toolchain import digest

DEFAULT_RELEASE = "2.13"
DEFAULT_SECTION = "metal_basic"
LIBRARY = "torch/lib/libtorch_cpu.dylib"
_SUFFIX = ".metallib"


def release_library(
    release: str = DEFAULT_RELEASE,
    section: str = DEFAULT_SECTION,
    *,
    cache: Path | None = None,
    progress: Progress = quiet,
    offline: bool = False,
) -> Metallib:
    """The kernels of a release.

    Args:
        release: name of a reference tree that comes from a wheel, ``2.13`` for example.
        section: ``metal_basic`` is compiled for macOS 14; ``metal_40``, from 2.13 on, for macOS 26.
        cache: the project's cache folder, :func:`patchstack.cache.cache_dir` by default.
        progress: told about a download or an extraction.
        offline: do not download.

    Raises:
        UsageError: there is no such release.
        TreeError: the wheel is not to be had.
        ContainerError: the wheel, its library or the metallib is damaged, or has no such section.
    """
    top = cache or cache_dir()
    wheel = reference_wheel(release, cache=top, progress=progress, offline=offline)
    return open_metallib(wheel_metallib(wheel, section, top / "apple", progress=progress))


def open_metallib(path: Path) -> Metallib:
    """Read a metallib file without loading it: it is mapped into memory.

    Raises:
        ContainerError: it is none, or damaged.
    """
    return read_metallib(memoryview(_mapped(path)), path.name)


def _mapped(path: Path) -> mmap.mmap:
    try:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise ContainerError("the file cannot be read", where=str(path), found=str(error)) from None


def _no_section(where: str, there: Sequence[str]) -> ContainerError:
    return ContainerError("no such section", where=where, expected=f"one of {', '.join(there) or 'none'}")


def open_file(path: Path, section: str) -> Metallib:
    """A metallib from a file of any of the three kinds: a wheel, a macOS library, or the metallib itself.

    Raises:
        ContainerError: it is none of them, or damaged, or has no such section.
    """
    try:
        with path.open("rb") as file:
            start = file.read(len(MAGIC))
    except OSError as error:
        raise ContainerError("the file cannot be read", where=str(path), found=error.strerror or str(error)) from None
    if start == MAGIC:
        return open_metallib(path)
    if zipfile.is_zipfile(path):
        return open_metallib(wheel_metallib(path, section, cache_dir() / "apple"))
    sections = metallib_sections(path)
    for one in sections:
        if one.name == section:
            data = memoryview(_mapped(path))
            return read_metallib(data[one.offset : one.offset + one.size], f"{path.name}: {section}")
    raise _no_section(f"{path.name}: {section}", [one.name for one in sections])


def wheel_metallib(wheel: Path, section: str, folder: Path, *, progress: Progress = quiet) -> Path:
    """The file that a section of the wheel's library was copied to; every section is copied the first time.

    Raises:
        ContainerError: the wheel or its library is damaged, or has no such section.
    """
    status = wheel.stat()
    place = folder / digest(wheel.name, str(status.st_size), str(status.st_mtime_ns))

    def make(unfinished: Path) -> None:
        progress(f"taking the Metal libraries out of {wheel.name}")
        with tempfile.TemporaryDirectory(dir=unfinished.parent, prefix="extract-") as scratch:
            library = Path(scratch) / "library.dylib"
            _unpack(wheel, library)
            with library.open("rb") as source:
                for one in metallib_sections(library):
                    _copy(source.fileno(), one, unfinished / f"{one.name}{_SUFFIX}")

    made_folder(place, make)
    there = sorted(path.name.removesuffix(_SUFFIX) for path in place.glob(f"*{_SUFFIX}"))
    if section not in there:
        raise _no_section(f"{wheel.name}: {section}", there)
    return place / f"{section}{_SUFFIX}"


def _unpack(wheel: Path, library: Path) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(LIBRARY) as packed, library.open("wb") as out:
            shutil.copyfileobj(packed, out, 1 << 20)
    except KeyError:
        raise ContainerError("not a macOS wheel of torch", where=wheel.name, expected=LIBRARY) from None
    except (zipfile.BadZipFile, EOFError, OSError) as error:
        raise ContainerError(
            "the wheel cannot be read", where=str(wheel), found=str(error), next_command="get it again"
        ) from None


def _copy(source: int, section: LibrarySection, to: Path) -> None:
    with to.open("wb") as out:
        at, end = section.offset, section.offset + section.size
        while at < end:
            block = os.pread(source, min(1 << 20, end - at), at)
            if not block:
                raise ContainerError("the library got shorter while it was read", where=to.name)
            out.write(block)
            at += len(block)
