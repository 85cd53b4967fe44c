"""The executor's C interface: structures mirrored with ctypes, one loaded library per build."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from patchstack.cache import not_executable
from stackproof.engines.errors import ToolchainError
from stackproof.engines.metal.model import Build, ElementType, ParameterKind, Signature

_NUMBERS = {0: "", 1: "f", 2: "i", 3: "u", 4: "?", 5: "b"}
MAX_REPORTS = 256


class RawReport(ctypes.Structure):
    """``struct report`` of runtime/runtime.h."""

    _fields_ = (
        ("kind", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("site", ctypes.c_uint64),
        ("other_site", ctypes.c_uint64),
        ("thread", ctypes.c_uint64),
        ("other_thread", ctypes.c_uint64),
        ("group", ctypes.c_uint64),
        ("other_group", ctypes.c_uint64),
        ("offset", ctypes.c_int64),
        ("region", ctypes.c_uint32),
        ("writes", ctypes.c_uint32),
        ("atomic", ctypes.c_uint32),
        ("count", ctypes.c_uint32),
        ("text", ctypes.c_char * 160),
    )


class RawRegion(ctypes.Structure):
    """``struct region`` of runtime/runtime.h."""

    _fields_ = (
        ("begin", ctypes.c_uint64),
        ("end", ctypes.c_uint64),
        ("shadow", ctypes.c_void_p),
        ("granule", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("cells", ctypes.c_void_p),
    )


class RawTraffic(ctypes.Structure):
    """``struct traffic`` of runtime/runtime.h."""

    _fields_ = (
        ("loads", ctypes.c_uint64),
        ("stores", ctypes.c_uint64),
        ("atomics", ctypes.c_uint64),
        ("loaded_bytes", ctypes.c_uint64),
        ("stored_bytes", ctypes.c_uint64),
        ("load_sectors", ctypes.c_uint64),
        ("store_sectors", ctypes.c_uint64),
        ("atomic_sectors", ctypes.c_uint64),
    )


class RawOptions(ctypes.Structure):
    """``struct options`` of runtime/runtime.h."""

    _fields_ = (
        ("detectors", ctypes.c_uint32),
        ("permute", ctypes.c_uint32),
        ("seed", ctypes.c_uint64),
        ("regions", ctypes.POINTER(RawRegion)),
        ("region_count", ctypes.c_uint32),
        ("flush_denormals", ctypes.c_uint32),
        ("threadgroup_sizes", ctypes.POINTER(ctypes.c_uint64)),
        ("argument_count", ctypes.c_uint32),
        ("stack_bytes", ctypes.c_uint32),
        ("most_groups", ctypes.c_uint64),
        ("most_accesses", ctypes.c_uint64),
        ("traffic", RawTraffic),
    )


@dataclass(frozen=True)
class NativeKernel:
    """An entry point with its complete signature."""

    entry: int
    signature: Signature


class NativeLibrary:
    """A loaded build."""

    def __init__(self, build: Build) -> None:
        load_libm()
        self.build = build
        self._library = open_library(build.path)
        self._library.metal_run.restype = None
        self._library.metal_take_reports.restype = ctypes.c_uint32
        self._reports = (RawReport * MAX_REPORTS)()

    def kernel(self, number: int) -> NativeKernel:
        """The entry point and signature of the kernel with this number."""
        name, file, line, parameters = self.build.kernels[number]
        entry = ctypes.cast(getattr(self._library, f"__metal_entry_{number}"), ctypes.c_void_p).value
        assert entry is not None
        limit = dict(self.build.max_threads).get(name, 0)
        buffers = [p for p in parameters if p.kind is not ParameterKind.ATTRIBUTE]
        if all(p.element is not None for p in buffers):  # a front end that knows the layouts has said so
            return NativeKernel(entry, Signature(name, file, line, parameters, limit))
        table = (ctypes.c_uint32 * (6 * len(buffers) + 1))()
        getattr(self._library, f"__metal_describe_{number}")(table)
        elements = {p.position: _element(table[6 * i : 6 * i + 6]) for i, p in enumerate(buffers)}
        complete = tuple(replace(p, element=elements.get(p.position)) for p in parameters)
        return NativeKernel(entry, Signature(name, file, line, complete, limit))

    def run(
        self,
        entry: int,
        arguments: Sequence[int],
        grid: tuple[int, int, int],
        group: tuple[int, int, int],
        options: RawOptions,
    ) -> list[RawReport]:
        """Run one dispatch; returns what the detectors reported.

        Args:
            entry: address of the entry point.
            arguments: addresses, in the order of the buffer and threadgroup parameters.
            grid: threads per grid, at least 1 in each direction.
            group: threads per threadgroup, at least 1 in each direction.
            options: its ``traffic`` is filled in.
        """
        addresses = (ctypes.c_uint64 * (len(arguments) + 1))(*arguments)
        threads, size = (ctypes.c_uint32 * 3)(*grid), (ctypes.c_uint32 * 3)(*group)
        self._library.metal_run(ctypes.c_void_p(entry), addresses, threads, size, ctypes.byref(options))
        count = self._library.metal_take_reports(self._reports, MAX_REPORTS)
        return [RawReport.from_buffer_copy(self._reports[i]) for i in range(count)]


def open_library(path: Path, mode: int = ctypes.DEFAULT_MODE) -> ctypes.CDLL:
    """Load a shared library that was compiled here.

    Raises:
        ToolchainError: its file system is mounted noexec.
        OSError: it cannot be loaded for another reason.
    """
    try:
        return ctypes.CDLL(str(path), mode=mode)
    except OSError:
        if refusal := not_executable(path.parent):
            raise ToolchainError(refusal.problem, refusal.where, next_command=refusal.next_command) from None
        raise


@lru_cache(maxsize=256)
def load(path: Path, build: Build) -> NativeLibrary:
    """The loaded library of a build, once per process."""
    del path  # part of the cache key only: a build is found by where it lies
    return NativeLibrary(build)


@lru_cache(maxsize=1)
def load_libm() -> None:
    """Put libm into the global scope: kernels call it by name, and on Linux nothing else brings it there."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL("libm.so.6", mode=ctypes.RTLD_GLOBAL)


def _element(values: Sequence[int]) -> ElementType:
    size, alignment, number, lanes, part, whole = values
    return ElementType(size, alignment, _NUMBERS[number], lanes, part, whole)
