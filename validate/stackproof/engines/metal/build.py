"""Compiles a Metal source into a shared library with one entry point per kernel, cached by content.

The key of the cache is the preprocessed source (that is: all included text), the headers and the runtime of this
package, the flags and the compiler's version; where files lie is no part of it, see
:mod:`stackproof.engines.metal.places`. A build is two files, written
atomically, so that any number of processes can share a cache.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patchstack.cache import alone, made_folder, replacing, write_whole
from stackproof.engines.metal.dialect import dialect_edits
from stackproof.engines.metal.kernels import Kernel, KernelDeclaration, find_kernels
from stackproof.engines.metal.model import Build, Parameter, ParameterKind, ReportKind, RunMode
from stackproof.engines.metal.places import Places
from stackproof.engines.metal.sites import number_sites, said_to_be_meant
from stackproof.engines.metal.tokens import TokenStream
from stackproof.engines.metal.toolchain import (
    INCLUDE,
    RUNTIME,
    Toolchain,
    digest,
    failure,
    find_toolchain,
    headers_digest,
)
from stackproof.engines.pool.building import builder

LANGUAGE = ("-x", "cl", "-cl-std=CLC++2021", "-cl-no-stdinc", "-nostdinc", "-cl-single-precision-constant")
_QUIET = ("-Wno-everything",)
_CODE = (
    "-fPIC",
    "-fno-strict-aliasing",
    "-fno-math-errno",
    "-ffp-contract=on",
    # Every operation on half rounds, as it does on the GPU.
    "-Xclang",
    "-ffloat16-excess-precision=none",
)
# Of the description beside a library; another one for another form.
_FORMAT = "2"
TEXT = "shader_source.metal"
"""What a source is called that is in no file of a tree."""
_PREDEFINED = (
    "__METAL__=1",
    "__METAL_MACOS__=1",
    "__METAL_MAYBE_FAST_MATH__=0",
    "__METAL_FAST_MATH__=1",
    "__METAL_PRECISE_MATH__=0",
)
# Headers that cost time and that few sources need, by the names that ask for them.
_ON_DEMAND = (
    ("MetalPerformancePrimitives/MetalPerformancePrimitives.h", re.compile(r"\bmpp::")),
    ("metal_texture", re.compile(r"\b(?:texture|depth)(?:1d|2d|3d|cube|_buffer)|\bsampler\b")),
    ("metal_visible_function_table", re.compile(r"\bvisible_function_table\b")),
    ("metal_uniform", re.compile(r"\b(?:uniform *<|make_uniform\b)")),
    ("metal_logging", re.compile(r"\bos_log(?:_default)?\b")),
    ("metal_internals", re.compile(r"\b__metal_(?!host)[a-z0-9_]+ *\(")),
    ("simd/simd.h", re.compile(r"\bsimd *::|\b(?:simd|vector|matrix)_[a-z]+[234]")),
)
_UNDEFINED = (
    "alignment",
    "array-bounds",
    "bool",
    "enum",
    "float-cast-overflow",
    "integer-divide-by-zero",
    "null",
    "pointer-overflow",
    "signed-integer-overflow",
)
# Since this version a check of accesses to local variables reports; before, it ends the process.
_LOCAL_BOUNDS_REPORTS = 20


@dataclass(frozen=True)
class Source:
    """A Metal source with what its meaning depends on.

    Attributes:
        path: the ``.metal`` file, or a header.
        include_dirs: searched for ``#include`` in this order, after the headers of this package.
        metal_version: ``3.1`` and so on; ``__METAL_VERSION__`` follows from it.
        defines: ``NAME`` or ``NAME=VALUE``.
        root: folder that file names in diagnostics and reports are relative to. Naming it also lets copies of one
            tree in different places share a cached build. Absolute names without it.
        constants: index and literal of each function constant that the host sets.
    """

    path: Path
    include_dirs: tuple[Path, ...] = ()
    metal_version: str = "3.1"
    defines: tuple[str, ...] = ()
    root: Path | None = None
    constants: tuple[tuple[int, str], ...] = ()

    @property
    def version_macro(self) -> int:
        """The value of ``__METAL_VERSION__``: 310 for ``3.1``."""
        major, _, minor = self.metal_version.partition(".")
        return int(major) * 100 + int(minor or 0) * 10

    @property
    def places(self) -> Places:
        """The folders that its files are found in."""
        return Places.of([*self.include_dirs, self.path.parent, INCLUDE.parent])

    @property
    def macros(self) -> tuple[str, ...]:
        """The predefined macros of the Metal compiler, and the source's own."""
        version = f"__METAL_VERSION__={self.version_macro}"
        return tuple(f"-D{d}" for d in (*_PREDEFINED, version, *self.defines))


@dataclass(frozen=True)
class Rewritten:
    """A source ready for Clang.

    Attributes:
        text: C++ for OpenCL, with the line markers of the original files.
        kernels: its kernels; the entry point of the n-th is ``__metal_entry_n``.
        declarations: every ``kernel`` of the source, templates included.
        tokens: of the preprocessed text.
    """

    text: str
    kernels: tuple[Kernel, ...]
    declarations: tuple[KernelDeclaration, ...]
    tokens: TokenStream


def preprocess(source: Source, toolchain: Toolchain) -> str:
    """The source with includes and macros expanded, Metal's own keywords and library left as they are.

    Raises:
        CompileError: a missing include or another error of the preprocessor.
    """
    directories = ["-isystem", str(INCLUDE)]
    directories += [flag for one in source.include_dirs for flag in ("-I", str(one))]
    arguments = [*LANGUAGE, "-E", "-D__METAL_HOST_MACROS_ONLY__", *source.macros, *directories, str(source.path)]
    done = toolchain.run(arguments)
    if done.returncode:
        raise failure(str(source.path), done.stderr)
    # How often to unroll may be an expression of macros, which the second pass does not know.
    text = re.sub(r"^[ \t]*#[ \t]*pragma unroll\b[^\n]*$", "", done.stdout, flags=re.MULTILINE)
    if source.root is None:
        return text
    return re.sub(rf'^(# \d+ "){re.escape(str(source.root))}/', r"\1", text, flags=re.MULTILINE)


def rewrite(preprocessed: str, *, entry_points: bool = True, constants: Sequence[tuple[int, str]] = ()) -> Rewritten:
    """Turn preprocessed Metal into C++ for OpenCL, with an entry point per kernel unless it is only to be checked.

    Raises:
        RewriteError: see :func:`stackproof.engines.metal.kernels.find_kernels`.
    """
    tokens = TokenStream(preprocessed)
    found = find_kernels(tokens, entry_points=entry_points)
    # The types need no include in Metal; everything else does.
    prelude = "metal_stdlib" if f"{INCLUDE}/metal_" in preprocessed else "metal_types"
    more = [name for name, asked in _ON_DEMAND if f"{INCLUDE}/{name}" in preprocessed or asked.search(preprocessed)]
    headers = "".join(f"#include <{name}>\n" for name in (prelude, *more, "__metal_end"))
    text = headers + tokens.apply([*dialect_edits(tokens, dict(constants)), *found.edits])
    return Rewritten(text, found.kernels, found.declarations, tokens)


def compiler_flags(mode: RunMode, toolchain: Toolchain) -> tuple[str, ...]:
    """Code generation flags of a mode."""
    flags: tuple[str, ...] = _CODE
    if mode & RunMode.FAST_MATH:
        flags = (*flags, "-ffast-math")
    if not mode.instrumented:
        return (*flags, "-O2")
    wraps = ["unsigned-integer-overflow"] if mode & RunMode.WRAPS else []
    checks = ",".join([*_UNDEFINED, *wraps, *(["local-bounds"] if toolchain.major >= _LOCAL_BOUNDS_REPORTS else [])])
    return (
        *flags,
        "-O1",
        # Line tables only, with file names as the line markers have them.
        "-g1",
        "-fdebug-compilation-dir=/",
        "-D__METAL_HOST_INSTRUMENTED__",
        "-ftrivial-auto-var-init=pattern",
        "-fsanitize=thread",
        f"-fsanitize={checks},return,unreachable",
        f"-fsanitize-recover={checks}",
        "-fno-sanitize-trap=all",
        *(
            flag
            for option in (
                "-tsan-instrument-atomics=0",
                "-tsan-instrument-func-entry-exit=0",
                "-tsan-instrument-read-before-write=1",
            )
            for flag in ("-mllvm", option)
        ),
    )


@builder
def compile_source(source: Source, mode: RunMode, cache: Path) -> Build:
    """Compile ``source`` for ``mode``, or find it in ``cache``.

    Raises:
        CompileError: it does not compile.
        RewriteError: a kernel's entry point cannot be derived.
        ToolchainError: no compiler, or the linker fails.
    """
    toolchain = find_toolchain()
    text = preprocess(source, toolchain)
    kind = mode & (RunMode.FAST_MATH | RunMode.WRAPS) | (RunMode.BOUNDS if mode.instrumented else RunMode.PLAIN)
    flags = [*LANGUAGE, *source.macros, *toolchain.target_flags, *compiler_flags(kind, toolchain)]
    values = [f"{index}={value}" for index, value in source.constants]
    key = digest(_FORMAT, headers_digest(INCLUDE), source.places.shared_text(text), toolchain.version, *flags, *values)
    folder = cache / "metal" / key
    described = folder / "build.json"
    if not described.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with alone(folder / "lock"):
            if not described.exists():
                _build(text, source, flags, kind, toolchain, folder, cache)
    return _load(folder, json.loads(described.read_text()), source)


@builder
def keep_text(text: str, cache: Path) -> Path:
    """The folder of ``cache`` that holds a text as ``TEXT``: a source that a host file makes while it runs."""

    def make(folder: Path) -> None:
        (folder / TEXT).write_text(text, encoding="utf-8")

    return made_folder(cache / "texts" / digest(text), make)


@builder
def compile_text(text: str, name: str, include_dirs: tuple[Path, ...], mode: RunMode, cache: Path) -> Build:
    """Compile a text that is in no file, as if it were in one of this name.

    Raises:
        CompileError: as :func:`compile_source`.
    """
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / name
        place.write_text(text)
        return compile_source(Source(place.resolve(), include_dirs), mode, cache)


def _build(
    text: str, source: Source, flags: Sequence[str], kind: RunMode, toolchain: Toolchain, folder: Path, cache: Path
) -> None:
    rewritten, places = rewrite(text, constants=source.constants), source.places
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        unit = Path(scratch) / "source.cl"
        unit.write_text(rewritten.text)
        objects, sites = _compile(unit, flags, kind, toolchain)
        runtime = executor_objects(toolchain, cache, instrumented=kind.instrumented)
        toolchain.link(folder / "library.so", [objects, *runtime])
    content = {
        "kernels": [_kernel_json(kernel, places) for kernel in rewritten.kernels],
        "sites": [[places.shared(file), line] for file, line in sites],
    }
    write_whole(folder / "build.json", json.dumps(content))


def _compile(
    unit: Path, flags: Sequence[str], mode: RunMode, toolchain: Toolchain
) -> tuple[Path, Sequence[tuple[str, int]]]:
    output = unit.with_suffix(".o")
    include = ("-isystem", str(INCLUDE))
    if not mode.instrumented:
        done = toolchain.run([*flags, *include, *_QUIET, "-c", str(unit), "-o", str(output)])
        if done.returncode:
            raise failure(unit.name, done.stderr)
        return output, ()
    ir = unit.with_suffix(".ll")
    done = toolchain.run([*flags, *include, *_QUIET, "-S", "-emit-llvm", str(unit), "-o", str(ir)])
    if done.returncode:
        raise failure(unit.name, done.stderr)
    numbered = number_sites(ir.read_text(), INCLUDE)
    ir.write_text(numbered.text)
    # The IR is optimised already; doing it again costs three times the rest and gains little beside the callbacks.
    arguments = ["-x", "ir", "-O0", "-fPIC", *toolchain.target_flags, *_QUIET, "-c", str(ir), "-o", str(output)]
    done = toolchain.run(arguments)
    if done.returncode:
        raise failure(ir.name, done.stderr)
    return output, numbered.sites


def compile_runtime(
    sources: Sequence[Path], flags: Sequence[str], toolchain: Toolchain, cache: Path, *, instrumented: bool
) -> list[Path]:
    """Objects of the executor, or of what a front end adds to it, compiled once per cache.

    Args:
        sources: C files of one folder, which may include the executor's headers and those beside them.
        flags: beyond those that freestanding C needs.
        toolchain: the compiler.
        cache: folder for compiled things.
        instrumented: whether callers pass the number of their place, see ``runtime/executor.c``.
    """
    defines = ("-DINSTRUMENTED",) if instrumented else ()
    freestanding = ("-x", "c", "-std=c11", "-O2", "-fPIC", "-ffreestanding", "-nostdinc", "-fno-stack-protector")
    arguments = [*freestanding, *flags, *defines]
    beside = sorted({path for source in sources for path in source.parent.iterdir() if path.is_file()})
    texts = [item for path in beside for item in (path.name, path.read_bytes())]
    folder = cache / "metal" / f"runtime-{digest(headers_digest(), toolchain.version, *arguments, *texts)}"
    folder.mkdir(parents=True, exist_ok=True)
    objects = [(source, folder / f"{source.stem}.o") for source in sorted(sources)]
    for source, output in objects:
        if output.exists():
            continue
        with alone(folder / "lock"), replacing(output) as partial:
            done = toolchain.run([*arguments, "-I", str(RUNTIME), "-c", str(source), "-o", str(partial)])
            if done.returncode:
                raise failure(source.name, done.stderr)
    return [output for _, output in objects]


def executor_objects(toolchain: Toolchain, cache: Path, *, instrumented: bool) -> list[Path]:
    """The executor's own objects."""
    return compile_runtime(list(RUNTIME.glob("*.c")), (), toolchain, cache, instrumented=instrumented)


def _kernel_json(kernel: Kernel, places: Places) -> dict[str, Any]:
    return {
        "name": kernel.host_name,
        "file": places.shared(kernel.declaration.file),
        "line": kernel.declaration.line,
        "max_threads": kernel.max_threads,
        "parameters": [
            [p.name, p.declaration, p.kind.value, p.index, p.attribute, p.reference, p.read_only]
            for p in kernel.parameters
        ],
    }


def _load(folder: Path, content: Mapping[str, Any], source: Source) -> Build:
    places = source.places
    kernels = tuple(
        (
            kernel["name"],
            places.here(kernel["file"]),
            kernel["line"],
            tuple(map(_parameter, enumerate(kernel["parameters"]))),
        )
        for kernel in content["kernels"]
    )
    sites = tuple((places.here(file), line) for file, line in content["sites"])
    meant = said_to_be_meant(ReportKind.SIMDGROUP_DIVERGENCE.value, sites, source.root)
    limits = tuple((one["name"], one["max_threads"]) for one in content["kernels"] if one["max_threads"])
    return Build(folder / "library.so", kernels, sites, meant, limits)


def _parameter(stored: tuple[int, Sequence[Any]]) -> Parameter:
    position, (name, text, kind, index, attribute, reference, read_only) = stored
    return Parameter(position, name, text, ParameterKind(kind), index, attribute, reference, read_only)
