"""The vocabulary of the Metal host: run modes, kernel signatures, and what a run has to report."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path


class RunMode(enum.Flag):
    """How a kernel is compiled and watched.

    ``BOUNDS``, ``UNDEFINED``, ``RACE``, ``UNINITIALISED`` and ``DIVERGENCE`` share one instrumented build and combine
    with ``|``; ``PERMUTED`` goes with any of them or with ``PLAIN``. ``FAST_MATH`` is a build of its own, and so is
    ``WRAPS``: that unsigned arithmetic wraps around is then undefined behaviour, too.
    """

    PLAIN = 0
    BOUNDS = enum.auto()
    UNDEFINED = enum.auto()
    RACE = enum.auto()
    UNINITIALISED = enum.auto()
    PERMUTED = enum.auto()
    FAST_MATH = enum.auto()
    TRAFFIC = enum.auto()
    DIVERGENCE = enum.auto()
    WRAPS = enum.auto()

    @property
    def instrumented(self) -> bool:
        """Whether every memory access has to call back."""
        return bool(self & (ALL_DETECTORS | RunMode.TRAFFIC | RunMode.WRAPS))


ALL_DETECTORS = RunMode.BOUNDS | RunMode.UNDEFINED | RunMode.RACE | RunMode.UNINITIALISED | RunMode.DIVERGENCE


class ReportKind(enum.Enum):
    """What a detector found."""

    BARRIER_DIVERGENCE = "barrier-divergence"
    OUT_OF_BOUNDS = "out-of-bounds"
    READ_ONLY_WRITE = "read-only-write"
    RACE = "race"
    UNINITIALISED = "uninitialised"
    UNDEFINED = "undefined"
    INACTIVE_LANE = "inactive-lane"
    LIMIT = "limit"
    SIMDGROUP_DIVERGENCE = "divergent-simdgroup"
    UNWRITTEN = "unwritten"
    ORDER_DEPENDENT = "order-dependent"
    FAST_MATH_SENSITIVE = "fast-math-sensitive"


@dataclass(frozen=True)
class ThreadId:
    """A thread of a dispatch.

    Attributes:
        group: linear index of its threadgroup; -1 where it does not matter.
        index: its linear index in that threadgroup.
    """

    group: int
    index: int

    def __str__(self) -> str:
        return f"thread {self.index}" + (f" of threadgroup {self.group}" if self.group >= 0 else "")


@dataclass(frozen=True)
class Report:
    """One thing a detector found, once per pair of places.

    Attributes:
        kind: which detector speaks.
        kernel: host name of the kernel.
        message: one sentence.
        file: source file of the access; empty when unknown.
        line: 1-based line in ``file``, 0 when unknown.
        other_file: file of the second access of a race or divergence, empty where there is none.
        other_line: its line, 0 where there is none.
        thread: who made the access.
        other_thread: who made the second one.
        count: how often this place was seen.
    """

    kind: ReportKind
    kernel: str
    message: str
    file: str = ""
    line: int = 0
    other_file: str = ""
    other_line: int = 0
    thread: ThreadId | None = None
    other_thread: ThreadId | None = None
    count: int = 1

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}: " if self.file else ""
        return f"{place}{self.kind.value}: {self.kernel}: {self.message}"


class ParameterKind(enum.Enum):
    """Where a kernel parameter gets its value from."""

    CONSTANT = "constant"
    DEVICE = "device"
    THREADGROUP = "threadgroup"
    ATTRIBUTE = "attribute"
    OPAQUE = "opaque"


@dataclass(frozen=True)
class ElementType:
    """The type behind a pointer or reference parameter.

    Attributes:
        size: bytes of one element.
        alignment: its alignment in bytes.
        number: kind of the numbers it is made of: ``f`` float or half, ``b`` bfloat, ``i`` signed, ``u`` unsigned,
            ``?`` bool; empty for a struct or ``void``.
        lanes: how many numbers belong together as a vector, 1 for scalars.
        part: bytes of one number.
        whole: bytes from one vector to the next; larger than ``lanes * part`` for three-component vectors.
    """

    size: int
    alignment: int
    number: str
    lanes: int
    part: int
    whole: int


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel, in declaration order.

    Attributes:
        position: 0-based position among all parameters.
        name: as the source calls it; empty when it has none.
        declaration: the source text of the parameter without attributes.
        kind: where its value comes from.
        index: buffer or threadgroup index; -1 for an attribute.
        attribute: name of the thread attribute, empty otherwise.
        reference: declared ``T&`` rather than ``T*``.
        read_only: ``constant``, or a pointer to const.
        element: the type behind it; ``None`` for attributes.
    """

    position: int
    name: str
    declaration: str
    kind: ParameterKind
    index: int = -1
    attribute: str = ""
    reference: bool = False
    read_only: bool = False
    element: ElementType | None = None


@dataclass(frozen=True)
class Signature:
    """What a kernel takes.

    Attributes:
        kernel: its host name.
        file: where it is instantiated or defined.
        line: 1-based line there.
        parameters: all of them, in declaration order.
        max_threads: of a threadgroup, by the kernel's own word; 0 where it says nothing.
    """

    kernel: str
    file: str
    line: int
    parameters: tuple[Parameter, ...]
    max_threads: int = 0

    @property
    def buffers(self) -> tuple[Parameter, ...]:
        """The parameters that a caller passes, by buffer index."""
        wanted = (ParameterKind.CONSTANT, ParameterKind.DEVICE)
        return tuple(sorted((p for p in self.parameters if p.kind in wanted), key=lambda p: p.index))

    @property
    def threadgroup_memory(self) -> tuple[Parameter, ...]:
        """The ``[[threadgroup(n)]]`` parameters, by index."""
        found = (p for p in self.parameters if p.kind is ParameterKind.THREADGROUP)
        return tuple(sorted(found, key=lambda p: p.index))


@dataclass(frozen=True)
class Build:
    """A compiled library on disk.

    Attributes:
        path: the shared object.
        kernels: host name, file, line and parameters (without element types) of every kernel; the entry point of the
            n-th is ``__metal_entry_n``.
        sites: source places by the numbers that instrumented code passes, number 1 first; empty for plain builds.
        divergent: those of them whose source says that lanes may stay away from its simdgroup functions.
        max_threads: host name and threads of the kernels that say how many a threadgroup may have.
    """

    path: Path
    kernels: tuple[tuple[str, str, int, tuple[Parameter, ...]], ...]
    sites: tuple[tuple[str, int], ...]
    divergent: frozenset[tuple[str, int]] = frozenset()
    max_threads: tuple[tuple[str, int], ...] = ()
