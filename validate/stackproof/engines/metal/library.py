"""Kernels as Python callables, in the call shape of ``torch.mps.compile_shader``.

The same test text runs on an Apple GPU: ``library.kernel(*tensors, threads=..., group_size=...)``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from stackproof.engines.errors import CallError
from stackproof.engines.metal.arguments import PackedArguments, pack
from stackproof.engines.metal.build import Source, compile_source, compile_text
from stackproof.engines.metal.launches import MAX_THREADS_PER_GROUP, launch_problems
from stackproof.engines.metal.memory import GuardedMemory
from stackproof.engines.metal.model import Build, ParameterKind, Report, RunMode, Signature
from stackproof.engines.metal.native import NativeKernel, NativeLibrary, load
from stackproof.engines.metal.reports import describe

Extent = int | Sequence[int]
_STACK_BYTES = 64 * 1024
_INSTRUMENTED_STACK_BYTES = 256 * 1024


class MetalLibrary:
    """The kernels of one source, compiled for one mode.

    Kernels are attributes: ``library.NAME(...)``; names that are no identifiers through :meth:`kernel`.

    Attributes:
        mode: what is watched; may be changed between calls to another mode of the same build.
        seed: of the permuted schedules.
        launches: how often each kernel was launched, by host name.
        flush_denormals: whether single-precision results below the normal range become zero, as on the GPU.
    """

    def __init__(self, build: Build, mode: RunMode) -> None:
        self.mode = mode
        self.seed = 0
        self.flush_denormals = True
        self._build = build
        self._native = load(build.path, build)
        self._numbers = {name: number for number, (name, *_rest) in enumerate(build.kernels)}
        self._kernels: dict[str, MetalKernel] = {}
        self._reports: list[Report] = []
        self._undefined: list[Any] = []
        self.traffic: dict[str, int] = {}
        self.launches: Counter[str] = Counter()

    @property
    def kernel_names(self) -> list[str]:
        """Host names of all kernels, in source order."""
        return list(self._numbers)

    def kernel(self, name: str) -> MetalKernel:
        """The kernel with this host name.

        Raises:
            CallError: there is none.
        """
        if name not in self._numbers:
            raise CallError("no such kernel", where=name, expected=f"one of {len(self._numbers)} names")
        if name not in self._kernels:
            self._kernels[name] = MetalKernel(self, self._native, self._native.kernel(self._numbers[name]))
        return self._kernels[name]

    def __getattr__(self, name: str) -> MetalKernel:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self.kernel(name)
        except CallError as error:
            raise AttributeError(str(error)) from error

    def __dir__(self) -> Iterable[str]:
        return [*super().__dir__(), *self._numbers]

    def reports(self) -> list[Report]:
        """Everything the detectors found since the last :meth:`clear_reports`, once per pair of places."""
        return list(self._reports)

    def clear_reports(self) -> None:
        """Forget the reports so far."""
        self._reports.clear()

    def mark_undefined(self, *tensors: Any) -> None:
        """Treat the content of these tensors as never written, in the next calls that are given them.

        Reading an element before it is written is reported in ``RunMode.UNINITIALISED``, and so is an element that no
        thread wrote when the dispatch is over. The mark is dropped after one dispatch.
        """
        self._undefined += tensors

    def add_reports(self, reports: Iterable[Report]) -> None:
        """Add reports, dropping those already there for the same kernel and places."""
        known = {_place(report) for report in self._reports}
        for report in reports:
            if _place(report) not in known:
                known.add(_place(report))
                self._reports.append(report)

    def take_undefined(self) -> list[Any]:
        """The tensors marked since the last dispatch; they are forgotten."""
        marked, self._undefined = self._undefined, []
        return marked


class MetalKernel:
    """One kernel, ready to be called."""

    def __init__(self, library: MetalLibrary, native: NativeLibrary, kernel: NativeKernel) -> None:
        self._library = library
        self._native = native
        self._kernel = kernel

    @property
    def signature(self) -> Signature:
        """Its parameters."""
        return self._kernel.signature

    def __call__(
        self,
        *args: Any,
        threads: Extent | None = None,
        group_size: Extent | None = None,
        arg_casts: str | Sequence[str | None] | Mapping[int, str] | None = None,
        threadgroup_memory: Mapping[int, int] | None = None,
        resources: Sequence[Any] = (),
    ) -> None:
        """Run the kernel over a grid and wait.

        Args:
            args: by buffer index: CPU tensors (storage offset honoured) for pointers; numbers, lists of numbers,
                bytes-like structs or tensors for constants.
            threads: threads per grid, up to three dimensions; the size of the first tensor by default.
            group_size: threads per threadgroup; by default as many as fit, up to 1024.
            arg_casts: ``fp32``, ``fp16``, ``int32``, ... for Python numbers, as ``torch.mps`` takes it. Not needed
                here: the signature is known.
            threadgroup_memory: bytes of each ``[[threadgroup(n)]]`` parameter.
            resources: tensors that the kernel reaches through pointers inside other buffers.

        Raises:
            CallError: the arguments do not fit the signature, or a dimension is out of range.
        """
        packed = pack(self.signature, args, arg_casts, threadgroup_memory or {})
        grid, group = dispatch_size(self.signature, packed, threads, group_size)
        if 0 in grid:
            return
        self._library.launches[self.signature.kernel] += 1
        self._run(packed, grid, group, resources)

    def _run(
        self, packed: PackedArguments, grid: tuple[int, int, int], group: tuple[int, int, int], resources: Sequence[Any]
    ) -> None:
        library = self._library
        mode = library.mode
        undefined = library.take_undefined()
        options = packed.options()
        options.permute = int(bool(mode & RunMode.PERMUTED))
        options.seed = library.seed
        options.flush_denormals = int(library.flush_denormals)
        options.stack_bytes = _INSTRUMENTED_STACK_BYTES if mode.instrumented else _STACK_BYTES
        if not mode.instrumented:
            raw = self._native.run(self._kernel.entry, packed.addresses(), grid, group, options)
            library.add_reports(describe(raw, self.signature, library._build, ()))
            return
        with GuardedMemory(packed, resources, undefined) as memory:
            options.detectors = detector_bits(mode)
            memory.fill(options)
            raw = self._native.run(self._kernel.entry, memory.addresses(), grid, group, options)
            reports = describe(raw, self.signature, library._build, memory.names)
            if mode & RunMode.UNINITIALISED:
                reports += memory.unwritten(self.signature)
        library.add_reports(reports)
        library.traffic = {name: int(getattr(options.traffic, name)) for name, _type in options.traffic._fields_}


def dispatch_size(
    signature: Signature, packed: PackedArguments, threads: Extent | None, group_size: Extent | None
) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Threads of the grid and of a threadgroup in three dimensions, with what is not said filled in.

    Raises:
        CallError: a dimension is out of range, or the threadgroup too large.
    """
    grid = extent(threads if threads is not None else packed.default_threads, "threads")
    limit = signature.max_threads or MAX_THREADS_PER_GROUP
    group = extent(group_size if group_size is not None else default_group(grid, limit), "group_size")
    sizes = zip(packed.arguments, packed.threadgroup_sizes, strict=True)
    lengths = {one.parameter.index: size for one, size in sizes if one.parameter.kind is ParameterKind.THREADGROUP}
    for problem in launch_problems(signature, group, lengths):
        raise CallError(f"Metal would not run this launch: {problem}", where=signature.kernel)
    return grid, group


def detector_bits(mode: RunMode) -> int:
    """``enum detector`` of runtime/runtime.h."""
    order = (
        RunMode.BOUNDS,
        RunMode.RACE,
        RunMode.UNINITIALISED,
        RunMode.UNDEFINED,
        RunMode.TRAFFIC,
        RunMode.DIVERGENCE,
    )
    return sum(1 << bit for bit, one in enumerate(order) if mode & one)


def compile_library(
    sources: Path | str,
    include_dirs: Sequence[Path] = (),
    *,
    cache: Path,
    mode: RunMode = RunMode.PLAIN,
    metal_version: str = "3.1",
    defines: Sequence[str] = (),
    root: Path | None = None,
    constants: Mapping[int, bool | int | float] | None = None,
) -> MetalLibrary:
    """Compile a ``.metal`` file, or find it compiled.

    Args:
        sources: path of the file.
        include_dirs: where its own includes are found: the root of the tree, ``aten/src``, and so on.
        cache: folder for compiled libraries.
        mode: what to watch; ``RunMode.PLAIN`` is fastest and natively executed, faults of the kernel included.
        metal_version: version of the language, ``__METAL_VERSION__``.
        defines: ``NAME`` or ``NAME=VALUE``.
        root: folder that file names in reports are relative to; copies of one tree then share a cached build.
        constants: values of function constants by index; one that is left out is zero and counts as not defined.

    Raises:
        CompileError: the source does not compile; it lists the diagnostics with the source's own lines.
        ToolchainError: there is no compiler.
    """
    directories = tuple(Path(one).resolve() for one in include_dirs)
    top = root.resolve() if root else None
    values = tuple((index, _literal(value)) for index, value in sorted((constants or {}).items()))
    source = Source(Path(sources).resolve(), directories, metal_version, tuple(defines), top, values)
    return MetalLibrary(compile_source(source, mode, cache), mode)


def _literal(value: bool | int | float) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value!r}f" if isinstance(value, float) else str(value)


def compile_written(
    text: str, name: str, include_dirs: Sequence[Path], *, cache: Path, mode: RunMode = RunMode.PLAIN
) -> MetalLibrary:
    """Compile Metal that is in no file; see :func:`compile_library`."""
    directories = tuple(Path(one).resolve() for one in include_dirs)
    return MetalLibrary(compile_text(text, name, directories, mode, cache), mode)


def _place(report: Report) -> tuple[object, ...]:
    return (
        report.kind,
        report.kernel,
        report.file,
        report.line,
        report.other_file,
        report.other_line,
        report.message if not report.line else "",
    )


def extent(value: Extent, what: str) -> tuple[int, int, int]:
    """``value`` in three dimensions.

    Raises:
        CallError: it does not have one to three numbers below 2^32.
    """
    given = (value,) if isinstance(value, int) else tuple(int(v) for v in value)
    if not 1 <= len(given) <= 3 or any(v < 0 or v >= 1 << 32 for v in given):
        raise CallError(f"{what} is out of range", expected="one to three numbers below 2^32", found=str(value))
    x, y, z = (*given, 1, 1)[:3]
    return x, y, z


@lru_cache(maxsize=64)
def default_group(grid: tuple[int, int, int], limit: int = MAX_THREADS_PER_GROUP) -> tuple[int, int, int]:
    """The largest threadgroup that is no larger than the grid."""
    x = min(grid[0], limit) or 1
    y = min(grid[1], limit // x) or 1
    return x, y, min(grid[2], limit // (x * y)) or 1
