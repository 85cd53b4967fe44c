"""Compiles Apple-made kernels into a library for the executor: the same thing that the Metal front end makes.

What is cached is keyed by the kernels' own digests, the source of the translation and of the runtime, and the versions
of LLVM and of the compiler. The kernels' bitcode is not copied into the cache.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from patchstack.cache import write_whole
from stackproof.engines.apple.container import Metallib
from stackproof.engines.apple.errors import AppleKernelError
from stackproof.engines.apple.ir import canonical, disassemble, llvm, read_module
from stackproof.engines.apple.lowering import lower
from stackproof.engines.apple.metadata import read_kernel
from stackproof.engines.apple.model import AirKernel, AirParameter
from stackproof.engines.apple.target import host_target
from stackproof.engines.metal.build import compile_runtime, executor_objects
from stackproof.engines.metal.library import MetalLibrary
from stackproof.engines.metal.model import Build, Parameter, ParameterKind, RunMode, Signature
from stackproof.engines.metal.toolchain import digest, find_toolchain, headers_digest
from stackproof.engines.pool.building import builder

_HERE = Path(__file__).resolve().parent
_SPACES = {1: ParameterKind.DEVICE, 2: ParameterKind.CONSTANT, 3: ParameterKind.THREADGROUP}


@dataclass(frozen=True)
class AirSource:
    """A module to compile.

    Attributes:
        name: of its kernel.
        sha256: digest of what the text was made from, part of the cache's key.
        text: the disassembly.
    """

    name: str
    sha256: str
    text: str

    @staticmethod
    def of(library: Metallib, name: str) -> AirSource:
        """A kernel of a metallib."""
        entry = library.entry(name)
        return AirSource(name, entry.sha256, disassemble(library.bitcode(entry), name))

    @staticmethod
    def of_text(name: str, text: str) -> AirSource:
        """A module written by hand, in LLVM's own spelling from here on."""
        text = canonical(text, name)
        return AirSource(name, digest(text), text)

    def kernel(self) -> AirKernel:
        """What its metadata says."""
        return read_kernel(read_module(self.text, self.name))


def compile_kernels(sources: Sequence[AirSource], mode: RunMode, cache: Path) -> MetalLibrary:
    """Kernels as Python callables, watched as ``mode`` says; compiled, or found in ``cache``.

    The place of a report is a line of the kernel's disassembly, called ``NAME.ll``.

    Raises:
        UnmappedIntrinsicError: a kernel calls a function of Apple's that nothing here defines.
        AppleKernelError: a module cannot be translated or compiled.
        ToolchainError: there is no compiler for the runtime.
    """
    if mode & RunMode.FAST_MATH:
        raise AppleKernelError("fast math is decided when the kernel's source is compiled", expected="another mode")
    folder, sites = _linked(sources, cache, watched=mode.instrumented)
    kernels = tuple(_described(one.kernel()) for one in sources)
    return MetalLibrary(Build(folder / "library.so", kernels, sites), mode)


@builder
def _linked(sources: Sequence[AirSource], cache: Path, *, watched: bool) -> tuple[Path, tuple[tuple[str, int], ...]]:
    """The folder of the library, and the places that it numbers."""
    key = digest(translation_digest(), str(watched), *(item for one in sources for item in (one.name, one.sha256)))
    folder = cache / "apple" / "kernels" / key
    described = folder / "build.json"
    if not described.exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(described, json.dumps(link_kernels(sources, folder / "library.so", cache, watched=watched)))
    places = tuple((f"{name}.ll", line) for name, line in json.loads(described.read_text()))
    return folder, places


def library_kernels(library: Metallib, names: Sequence[str], mode: RunMode, cache: Path) -> MetalLibrary:
    """Kernels of a metallib, by name; see :func:`compile_kernels`."""
    return compile_kernels([AirSource.of(library, name) for name in names], mode, cache)


def link_kernels(sources: Sequence[AirSource], output: Path, cache: Path, *, watched: bool) -> list[tuple[str, int]]:
    """Translate, compile and link kernels; returns kernel and disassembly line of each numbered place.

    Raises:
        AppleKernelError: see :func:`compile_kernels`.
    """
    toolchain, target = find_toolchain(), host_target()
    beside = list((_HERE / "runtime").glob("*.c"))
    own = compile_runtime(beside, toolchain.target_flags, toolchain, cache, instrumented=True)
    # Always the variant that is told places by number: a return address would name the definition that all calls share.
    executor = executor_objects(toolchain, cache, instrumented=True)
    sites: list[tuple[str, int]] = []
    with tempfile.TemporaryDirectory(dir=output.parent) as scratch:
        objects = []
        for number, one in enumerate(sources):
            lowered = lower(one.text, one.name, target, number=number, first_site=len(sites) + 1, watched=watched)
            objects.append(Path(scratch) / f"{number}.o")
            objects[-1].write_bytes(target.compile(lowered.text, one.name))
            sites += [(one.name, line) for line in lowered.sites]
        toolchain.link(output, [*objects, *own, *executor])
    return sites


@lru_cache(maxsize=1)
def translation_digest() -> str:
    """Content hash of everything but the kernels that decides what a build is."""
    files = sorted([*_HERE.glob("*.py"), *(_HERE / "runtime").iterdir()])
    texts = [item for path in files for item in (path.name, path.read_bytes())]
    versions = find_toolchain().version, repr(llvm().llvm_version_info), repr(host_target())
    return digest(headers_digest(), *versions, *texts)


def signature_of(kernel: AirKernel) -> Signature:
    """What a caller of the kernel has to know."""
    return Signature(*_described(kernel))


def _described(kernel: AirKernel) -> tuple[str, str, int, tuple[Parameter, ...]]:
    return kernel.name, f"{kernel.name}.ll", kernel.line, tuple(_parameter(one) for one in kernel.parameters)


def _parameter(one: AirParameter) -> Parameter:
    if one.attribute:
        return Parameter(one.position, one.name, one.type_name, ParameterKind.ATTRIBUTE, attribute=one.attribute)
    kind = _SPACES[one.address_space]
    return Parameter(
        one.position,
        one.name,
        one.type_name,
        kind,
        index=one.location,
        reference=bool(one.buffer_size),
        read_only=not one.writable and kind is not ParameterKind.THREADGROUP,
        element=one.element,
    )
