"""The stand-in device in this process: loads it, runs what is dispatched with the host-compiled kernels, keeps a log.

One process has one device for good: a device cannot be unloaded, and a second one would register the same ops.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from patchstack.errors import PatchstackError
from stackproof.engines.metal.build import TEXT, Source, compile_source, keep_text
from stackproof.engines.metal.launches import MAX_THREADS_PER_GROUP
from stackproof.engines.metal.library import detector_bits
from stackproof.engines.metal.model import ALL_DETECTORS, ParameterKind, Report, RunMode, Signature
from stackproof.engines.metal.native import NativeKernel, NativeLibrary, RawOptions, RawRegion, load, open_library
from stackproof.engines.metal.reports import describe
from stackproof.engines.standin.build import DeviceBuild, KernelSource
from stackproof.engines.standin.calls import CallLog
from stackproof.engines.standin.dispatch import Problem, check_dispatch
from stackproof.engines.standin.interface import CALL, COMPILE, FIND, NOTE, RUN, CallEvent, Dispatch, SlotKind
from stackproof.engines.standin.trace import Trace
from stackproof.model import Finding

_STACK_BYTES = {False: 64 * 1024, True: 256 * 1024}
_MOST_ACCESSES = 2_000_000
_DEFINED, _WRITABLE = 3, 1
_MOST_GRANULE = 4  # bytes whose last access is remembered together
NAN_POISON, NUMBER_POISON = 0xFF, 0x3F
"""Name of a source that a host file brings as text."""


@dataclass(frozen=True)
class _Kernel:
    """A compiled kernel and where it came from."""

    source: KernelSource
    native: NativeLibrary
    entry: NativeKernel

    @property
    def signature(self) -> Signature:
        return self.entry.signature


class StandinDevice:
    """The device of this process.

    Attributes:
        watched: run kernels with all detectors; slow.
        wraps_in: look for unsigned arithmetic that wraps around in so many threadgroups, 0 for all; each thread runs
            for a while only.
        findings: everything noticed so far.
        launches: host names of the kernels launched so far.
        log: counts launches and calls.
        before_run: called with each dispatch before it is run, for tests.
        trace: told of what is done; ``None`` where nobody asks.
    """

    trace: Trace | None = None

    def __init__(self, build: DeviceBuild) -> None:
        """Load the device.

        Raises:
            CompileError: a kernel source does not compile.
            OSError: the library cannot be loaded.
        """
        self.watched = False
        self.wraps_in: int | None = None
        self._fast_math = self._permuted = False
        self.findings: list[Finding] = []
        self._part = ""
        self.launches: list[str] = []
        self.log = CallLog({kernel for kernel, _path in build.brought})
        self.before_run: Callable[[Dispatch], None] = lambda dispatch: None
        self._build = build
        self._libraries: dict[tuple[KernelSource, RunMode], NativeLibrary] = {}
        self._kernels: dict[tuple[str, RunMode], _Kernel] = {}
        self._owner = {
            name: (source, number)
            for source in build.kernels
            for number, (name, *_rest) in enumerate(self._library(source, RunMode.PLAIN).build.kernels)
        }
        self._texts: list[KernelSource] = []
        self._interface = open_library(build.library, ctypes.RTLD_GLOBAL)
        self._callbacks = (RUN(self._run), FIND(self._find), NOTE(self._note), CALL(self._call), COMPILE(self._compile))
        self._interface.standin_connect(*self._callbacks)

    @property
    def kernel_names(self) -> frozenset[str]:
        """Host names of all kernels that it has."""
        return frozenset(self._owner)

    def begin(self, part: str) -> None:
        """A part of a scenario begins; of one that takes the process down, it is told and left out."""
        self._part = part
        if self.trace:
            self.trace.begin(part)

    def poison_with(self, byte: int) -> None:
        """Fill fresh memory with this byte from now on."""
        self._interface.standin_set_poison(ctypes.c_uint8(byte))

    @contextmanager
    def detectors(self, *, on: bool = True) -> Iterator[None]:
        """Watch kernels inside the block, or do not."""
        before, self.watched = self.watched, on
        try:
            yield
        finally:
            self.watched = before

    @contextmanager
    def permuted(self) -> Iterator[None]:
        """Run threads and threadgroups in another order inside the block."""
        self._permuted = True
        try:
            yield
        finally:
            self._permuted = False

    @contextmanager
    def fast_math(self) -> Iterator[None]:
        """Run kernels that were compiled with fast math inside the block."""
        self._fast_math = True
        try:
            yield
        finally:
            self._fast_math = False

    def take_findings(self) -> list[Finding]:
        """The findings since the last call, each kind at each place once."""
        taken, self.findings = self.findings, []
        first: dict[tuple[str, str, int, str], Finding] = {}
        for one in taken:
            first.setdefault((one.rule, one.path, one.line, one.message), one)
        return list(first.values())

    @property
    def _mode(self) -> RunMode:
        if self.wraps_in is not None:
            return RunMode.WRAPS
        plain = RunMode.FAST_MATH if self._fast_math else RunMode.PLAIN
        return ALL_DETECTORS if self.watched else plain

    def _library(self, source: KernelSource, mode: RunMode) -> NativeLibrary:
        key = (source, mode)
        if key not in self._libraries:
            whole = Source(source.root / source.path, source.include_dirs, root=source.root)
            build = compile_source(whole, mode, self._build.cache)
            self._libraries[key] = load(build.path, build)
        return self._libraries[key]

    def _kernel(self, name: str) -> _Kernel:
        key = (name, self._mode)
        if key not in self._kernels:
            source, number = self._owner[name]
            native = self._library(source, self._mode)
            self._kernels[key] = _Kernel(source, native, native.kernel(number))
        return self._kernels[key]

    def _find(self, name: bytes) -> int:
        """How many threads a threadgroup of this kernel may have; 0 where there is no such kernel."""
        owner = self._owner.get(name.decode())
        if owner is None:
            return 0
        limits = dict(self._library(owner[0], RunMode.PLAIN).build.max_threads)
        return limits.get(name.decode().rpartition(":")[2], MAX_THREADS_PER_GROUP)

    def _compile(self, text: bytes, message: int, room: int) -> int:
        """A shader source that a host file brings as text; from then on its kernels are called NUMBER:NAME."""
        number = len(self._texts) + 1
        try:
            source = KernelSource(keep_text(text.decode(errors="replace"), self._build.cache), TEXT)
            for at, (name, *_rest) in enumerate(self._library(source, RunMode.PLAIN).build.kernels):
                self._owner[f"{number}:{name}"] = (source, at)
        except Exception as error:  # the caller is C++
            said = str(error).encode()[: room - 1] + b"\0"
            ctypes.memmove(message, said, len(said))
            return 0
        self._texts.append(source)
        return number

    def _note(self, rule: bytes, message: bytes) -> None:
        self.findings.append(Finding(message.decode(errors="replace"), rule=rule.decode()))

    def _call(self, op: bytes, event: int) -> None:
        self.log.told(op.decode(), CallEvent(event))

    def _run(self, raw: Any, message: int, room: int) -> int:
        """Called by the encoder; an exception must not pass through it."""
        try:
            refusal = self.run(Dispatch.of(raw.contents))
        except PatchstackError as error:
            refusal = str(error)
        except Exception as error:  # the caller is C++: whatever it is, it becomes the refusal
            refusal = f"{type(error).__name__}: {error}"
        if not refusal:
            return 0
        text = refusal.encode()[: room - 1] + b"\0"
        ctypes.memmove(message, text, len(text))
        return 1

    def run(self, dispatch: Dispatch) -> str:
        """Check and run one dispatch; returns why it was refused, empty if it was not."""
        kernel = self._kernel(dispatch.kernel)
        signature = kernel.signature
        self.launches.append(dispatch.kernel)
        if self.trace:
            self.trace.launch(dispatch.kernel)
        self.log.launched(dispatch.kernel)
        self.before_run(dispatch)
        problems = check_dispatch(signature, dispatch)
        self.findings += [_about(problem, dispatch.kernel, kernel.source.path, signature.line) for problem in problems]
        if 0 in dispatch.grid:
            return ""  # told, and nothing is run: on macOS only the validation layer objects
        refused = [problem.message for problem in problems if problem.refused]
        if refused:
            return f"{dispatch.kernel}: {refused[0]}"
        self._execute(kernel, dispatch)
        return ""

    def _execute(self, kernel: _Kernel, dispatch: Dispatch) -> None:
        parameters = [p for p in kernel.signature.parameters if p.kind is not ParameterKind.ATTRIBUTE]
        sizes, addresses = [], []
        for parameter in parameters:
            is_local = parameter.kind is ParameterKind.THREADGROUP
            sizes.append(dispatch.threadgroup_memory[parameter.index] if is_local else 0)
            addresses.append(0 if is_local else dispatch.slots[parameter.index].address)
        options = RawOptions()
        instrumented = self._mode.instrumented
        options.stack_bytes = _STACK_BYTES[instrumented]
        options.flush_denormals = 1
        options.argument_count = len(sizes)
        options.threadgroup_sizes = (ctypes.c_uint64 * (len(sizes) + 1))(*sizes)
        options.permute = int(self._permuted)
        names = _watch(kernel.signature, dispatch, options) if instrumented else []
        if self.wraps_in is not None:
            options.detectors = detector_bits(RunMode.UNDEFINED)
            options.permute, options.most_groups, options.most_accesses = 1, self.wraps_in, _MOST_ACCESSES
        raw = kernel.native.run(kernel.entry.entry, addresses, dispatch.grid, dispatch.group, options)
        if not instrumented:
            _trust_writes(kernel.signature, dispatch)
        reports = describe(raw, kernel.signature, kernel.native.build, names)
        found = [_finding(report, kernel.source) for report in reports]
        self.findings += [replace(one, details={**one.details, "in": self._part}) for one in found]


def _about(problem: Problem, kernel: str, path: str, line: int) -> Finding:
    """The finding about a dispatch, with whether it ran all the same."""
    return Finding(f"{kernel}: {problem.message}", path, line, problem.rule, details={"ran": not problem.refused})


def _watch(signature: Signature, dispatch: Dispatch, options: RawOptions) -> list[str]:
    """Describe the memory that the kernel may touch to the detectors; returns the names of the regions."""
    regions: dict[int, tuple[RawRegion, str]] = {}
    for parameter in signature.buffers:
        slot = dispatch.slots[parameter.index]
        if slot.kind not in (SlotKind.BUFFER, SlotKind.BYTES):
            continue
        writable = parameter.kind is ParameterKind.DEVICE and not parameter.read_only
        end = slot.address + slot.available
        region, names = regions.setdefault(
            slot.buffer, (RawRegion(slot.buffer, end, slot.shadow or None, _MOST_GRANULE, 0, None), "")
        )
        # No two elements share one, or neighbouring threads would seem to write to the same place.
        if parameter.element is not None:
            region.granule = min(region.granule, max(parameter.element.size, 1))
        region.flags |= _WRITABLE if writable else 0
        name = parameter.name or f"argument {parameter.index}"
        regions[slot.buffer] = (region, f"{names} and {name}" if names else name)
    for used in dispatch.resources:
        region, names = regions.setdefault(
            used.buffer, (RawRegion(used.buffer, used.buffer + used.bytes, used.shadow or None, 1, 0, None), "")
        )
        region.flags |= _WRITABLE if used.writable else 0
        regions[used.buffer] = (region, names or "a buffer of an argument buffer")
    table = (RawRegion * (len(regions) + 1))(*(region for region, _name in regions.values()))
    options.detectors = detector_bits(ALL_DETECTORS)
    options.regions = table
    options.region_count = len(regions)
    return [name for _region, name in regions.values()]


def _trust_writes(signature: Signature, dispatch: Dispatch) -> None:
    """Without detectors nobody knows which bytes were written: take all of a written buffer."""
    for parameter in signature.buffers:
        slot = dispatch.slots[parameter.index]
        if slot.shadow and parameter.kind is ParameterKind.DEVICE and not parameter.read_only:
            ctypes.memset(slot.shadow, _DEFINED, slot.offset + slot.available)
    for used in dispatch.resources:
        if used.shadow and used.writable:
            ctypes.memset(used.shadow, _DEFINED, used.bytes)


def _finding(report: Report, source: KernelSource) -> Finding:
    path = Path(report.file)
    file = str(path.relative_to(source.root)) if path.is_relative_to(source.root) else report.file
    return Finding(f"{report.kernel}: {report.message}", file or source.path, report.line, report.kind.value)
