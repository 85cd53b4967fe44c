"""Builds the library that makes a stack run on the stand-in device: device, host files and registrations in one.

The device and the host files are compiled against the headers of the installed torch, since that is what they are
linked with; only the headers about MPS come from the stack's tree, whatever its release. That the host files compile
against their own tree's headers is what host-check shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import torch

from patchstack.cache import replacing
from patchstack.tree.git import Tree
from stackproof.engines.errors import CompileError, ToolchainError
from stackproof.engines.metal.brought import kernels_brought
from stackproof.engines.metal.sources import INCLUDE_FOLDERS, collect_sources, write_sources
from stackproof.engines.metal.toolchain import digest
from stackproof.engines.standin.clang import (
    LANGUAGE,
    STANDIN,
    STUBS,
    HostClang,
    find_clang,
    folder_digest,
    require_headers,
    stubs_digest,
)
from stackproof.engines.standin.headers import MpsHeaders, mps_headers, write_files
from stackproof.engines.standin.missing import missing_symbols, name_of, throwers
from stackproof.engines.standin.precompiled import beginning_with, precompile
from stackproof.engines.standin.registration import Registration, prepare_registration
from stackproof.engines.standin.stack import HostStack
from stackproof.engines.standin.tree_helpers import tree_helpers

_TORCH = Path(torch.__file__).parent
# Not optimised: what is executed once per call is compiled far more often than it runs.
_CODE = ("-O0", "-fPIC", "-g0", "-Wno-everything")
_TORCH_LIBRARIES = ("libtorch_cpu.so", "libc10.so")
_C = ("-x", "c", "-std=gnu17", *_CODE, "-Werror=implicit-function-declaration")


@dataclass(frozen=True)
class KernelSource:
    """A ``.metal`` file on disk with all that it includes.

    Attributes:
        root: folder that stands for the top of the tree.
        path: of the file, relative to ``root``.
    """

    root: Path
    path: str

    @property
    def include_dirs(self) -> tuple[Path, ...]:
        return tuple(self.root / folder for folder in INCLUDE_FOLDERS)


@dataclass(frozen=True)
class DeviceBuild:
    """Everything that a process needs to have the stack's ``mps`` device; picklable.

    Attributes:
        library: shared library that registers the device and the ops when it is loaded.
        kernels: the Metal sources whose kernels it asks for.
        ops: overload names that run the stack's own functions.
        left_out: ops that could not be registered, one sentence each.
        brought: kernels whose code the tree did not have before the stack, with their file.
        cache: where compiled kernels are kept.
    """

    library: Path
    kernels: tuple[KernelSource, ...]
    ops: tuple[str, ...]
    left_out: tuple[str, ...]
    brought: frozenset[tuple[str, str]]
    cache: Path


@dataclass(frozen=True)
class _Unit:
    """One file to compile.

    Attributes:
        source: the file.
        shown: its name in diagnostics.
        flags: all flags but the output.
        key: names the object in the cache.
    """

    source: Path
    shown: str
    flags: tuple[str, ...]
    key: str


def build_device(stack: HostStack, cache: Path, *, jobs: int = 2) -> DeviceBuild:
    """Compile and link, or find it in the cache.

    Args:
        stack: whose host files and kernels are to run.
        cache: folder for objects and libraries.
        jobs: compilers at once.

    Raises:
        ToolchainError: no compiler.
        CompileError: a host file does not compile against the installed torch's headers.
        TreeError: torchgen fails.
    """
    clang = find_clang()
    require_headers(clang)
    registration = prepare_registration(stack.ops, cache)
    headers = mps_headers(stack.tree, cache, stack.files)
    units = [*_device_units(clang, headers), *_stack_units(stack, registration, headers, clang, cache)]
    objects = _compile_all(units, headers, clang, cache / "objects", jobs)
    missing = missing_symbols(objects, [_TORCH / "lib" / name for name in _TORCH_LIBRARIES])
    helpers = tree_helpers(stack.tree, map(name_of, missing), [file.path for file in stack.files])
    if helpers.text:
        objects += _helper_objects(helpers.text, headers, registration, clang, cache)
        missing = missing_symbols(objects, [_TORCH / "lib" / name for name in _TORCH_LIBRARIES])
    library = cache / "devices" / f"{digest(str(_TORCH), *(one.name for one in objects))}.so"
    if not library.exists():
        with replacing(library) as partial:
            lacking = _lacking(missing, clang, partial)
            linked = map(str, [*objects, *lacking, *(_TORCH / "lib" / name for name in _TORCH_LIBRARIES)])
            clang.link(partial, [*linked, "-rpath", str(_TORCH / "lib")])
    sources = dict.fromkeys([*stack.kernel_sources, *helpers.kernel_sources])
    kernels = tuple(_materialise(stack.tree, path, cache) for path in sources)
    ops = tuple(op.overload for op in registration.ops)
    brought = frozenset(kernels_brought(stack.base, stack.tree, stack.kernel_sources, cache).items())
    return DeviceBuild(library, kernels, ops, registration.left_out, brought, cache)


def _helper_objects(
    text: str, headers: MpsHeaders, registration: Registration, clang: HostClang, cache: Path
) -> list[Path]:
    """Helpers of the tree, compiled; nothing where they ask for what only their own file has."""
    name = "tree_helpers.mm"
    source = write_files({name: text.encode()}, cache) / name
    base = (clang.version, torch.__version__, stubs_digest(), headers.key, *LANGUAGE, *_CODE, text)
    unit = _Unit(source, name, (*_torch_flags(registration.folder, *headers.folders), *headers.switches), digest(*base))
    try:
        return _compile_all([unit], headers, clang, cache / "objects", 1)
    except CompileError:
        return []


def _lacking(missing: Sequence[str], clang: HostClang, library: Path) -> list[Path]:
    """An object with what nothing defines, where there is such a thing."""
    if not missing:
        return []
    source, output = library.with_suffix(".lacking.cpp"), library.with_suffix(".lacking.o")
    source.write_text(throwers(missing))
    done = clang.plain(["-x", "c++", "-std=c++20", *_torch_flags(), "-c", str(source), "-o", str(output)])
    if not done.succeeded:
        raise ToolchainError("what the stand-in device lacks cannot be compiled", found=done.tail)
    return [output]


def _materialise(tree: Tree, path: str, cache: Path) -> KernelSource:
    return KernelSource(write_sources(collect_sources(tree, path), cache), path)


def _torch_flags(*first: Path) -> tuple[str, ...]:
    include = _TORCH / "include"
    folders = (include, include / "torch/csrc/api/include")
    return (
        *_CODE,
        *(f"-I{folder}" for folder in first),
        "-isystem", str(STUBS),
        *(flag for folder in folders for flag in ("-isystem", str(folder))),
    )  # fmt: skip


def _device_units(clang: HostClang, headers: MpsHeaders) -> list[_Unit]:
    base = (clang.version, torch.__version__, stubs_digest(), folder_digest(STANDIN), *LANGUAGE, *_CODE)
    flags = (*_torch_flags(STANDIN, *headers.folders_of_most), *headers.switches)
    units = []
    for source in sorted(STANDIN.glob("*.c")):
        units.append(_Unit(source, source.name, _C, digest(*base, source.name, *_C)))
    for source in sorted(STANDIN.glob("*.mm")):
        units.append(_Unit(source, source.name, flags, digest(*base, headers.key_of_most, source.name)))
    return units


def _stack_units(
    stack: HostStack, registration: Registration, headers: MpsHeaders, clang: HostClang, cache: Path
) -> list[_Unit]:
    flags = _torch_flags(registration.folder, *headers.folders)
    prefix = (STANDIN / "prefix.h").read_bytes()
    # Not the flags: where torch, this package and the cache lie changes nothing in an object.
    base = (
        clang.version, torch.__version__, stubs_digest(), prefix, registration.folder.name, headers.key,
        *LANGUAGE, *_CODE,
    )  # fmt: skip
    # On macOS, int64_t is `long long`; here it is `long`.
    written = {file.path: file.text.replace("std::vector<long long>", "std::vector<int64_t>") for file in stack.files}
    texts = write_files({path: text.encode() for path, text in written.items()}, cache)
    units = [_Unit(texts / file.path, file.path, flags, digest(*base, file.path, file.text)) for file in stack.files]
    for source in registration.sources:
        units.append(_Unit(source, source.name, flags, digest(*base, source.name, source.read_bytes())))
    return units


def _compile_all(units: Sequence[_Unit], headers: MpsHeaders, clang: HostClang, folder: Path, jobs: int) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    if all((folder / f"{unit.key}.o").exists() for unit in units):
        return [folder / f"{unit.key}.o" for unit in units]
    prefix = precompiled_prefix(clang, folder, headers=headers)
    with ThreadPoolExecutor(max_workers=max(jobs, 1)) as pool:
        return list(pool.map(lambda unit: _compile(unit, prefix, clang, folder), units))


def precompiled_prefix(
    clang: HostClang, folder: Path, source: Path = STANDIN / "prefix.h", headers: MpsHeaders | None = None
) -> Path:
    """Compile the headers that every unit begins with, or find them compiled.

    Args:
        clang: that will use them.
        folder: where they are kept.
        source: header that includes them.
        headers: those about MPS; the installed torch's where there are none.

    Raises:
        CompileError: one of ``headers`` does not compile.
        ToolchainError: the installed torch's do not.
    """
    flags = _torch_flags(*(headers.folders_of_most if headers else ()))
    key = digest(clang.version, torch.__version__, stubs_digest(), str(source), source.read_bytes(), *LANGUAGE, *flags)
    output = folder / f"{key}.pch"
    failed = precompile(clang.header_for_this_machine, clang.for_this_machine, flags, source, output)
    if failed:
        for one in failed.errors:
            if headers and Path(one.file).is_relative_to(headers.most):
                where = f"{Path(one.file).relative_to(headers.most)}:{one.line}"
                raise CompileError(one.message, where=where, diagnostics=failed.diagnostics)
        raise ToolchainError("the headers of the installed torch cannot be compiled", found=failed.tail)
    return output


def _compile(unit: _Unit, prefix: Path, clang: HostClang, folder: Path) -> Path:
    output = folder / f"{unit.key}.o"
    if output.exists():
        return output
    with replacing(output) as partial:
        files = ["-c", str(unit.source), "-o", str(partial)]
        if unit.source.suffix == ".c":
            done = clang.plain([*unit.flags, *files])
        else:
            done = clang.for_this_machine([*unit.flags, *beginning_with(prefix), *files])
        if not done.succeeded:
            first = done.errors[0] if done.errors else None
            message = first.message if first else f"the compiler failed: {done.tail}"
            where = f"{unit.shown}:{first.line}" if first and first.file == str(unit.source) else unit.shown
            raise CompileError(message, where=where, diagnostics=done.diagnostics)
    return output
