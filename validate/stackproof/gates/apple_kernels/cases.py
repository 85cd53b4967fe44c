"""The work of the gate ``apple-kernels``, in child processes: what a wild access does to a process is a result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import torch

from stackproof.engines.apple.build import AirSource, compile_kernels
from stackproof.engines.apple.fidelity import Fidelity, compare_operators
from stackproof.engines.apple.operators import OPERATORS, Operator
from stackproof.engines.apple.reductions import compare_reductions
from stackproof.engines.apple.release import release_library
from stackproof.engines.apple.struct_check import StructComparison, compare_structs
from stackproof.engines.apple.structs import KernelStruct
from stackproof.engines.kernels import Kernels
from stackproof.engines.metal import MetalLibrary, RunMode, compile_library
from stackproof.engines.metal.struct_layout import StructLayout
from stackproof.ops.grid_sampler.apple.peer import PeerRow, compare_backward, upstream_kernels
from stackproof.ops.grid_sampler.apple.sampler import SamplerResult, judge, random_inputs, reference, run_sampler
from stackproof.ops.grid_sampler.families.upstream import DTYPES, SamplerKernel
from stackproof.ops.grid_sampler.modes import Sampler
from stackproof.ops.sources import OpSource

_OPERATORS_A_TASK = 8


@dataclass(frozen=True)
class Release:
    """What all tasks share; picklable.

    Attributes:
        name: of the release, ``2.13`` for example.
        section: of its library.
        cache: the project's cache folder.
        mode: how the grid samplers are watched.
        root: folder that holds the release's headers at their paths in the tree.
        include_dirs: where their includes are found.
        stack: the grid samplers of the stack that is judged, where it has any.
    """

    name: str
    section: str
    cache: Path
    mode: RunMode = RunMode.PLAIN
    root: Path = Path()
    include_dirs: tuple[Path, ...] = ()
    stack: OpSource | None = None


@dataclass(frozen=True)
class SamplerTask:
    """A grid sampler, called in every mode that it has."""

    kernel: SamplerKernel

    @property
    def label(self) -> str:
        return self.kernel.name


@dataclass(frozen=True)
class OperatorTask:
    """Some operators, each in every type."""

    first: int

    @property
    def label(self) -> str:
        return f"operators from {self.operators[0].name}"

    @property
    def operators(self) -> tuple[Operator, ...]:
        """What is compared."""
        return OPERATORS[self.first : self.first + _OPERATORS_A_TASK]


@dataclass(frozen=True)
class ReductionTask:
    """All reductions of a simdgroup."""

    label: str = "reductions"


@dataclass(frozen=True)
class StructTask:
    """The structs of one header.

    Attributes:
        path: in the tree.
        text: of the header.
        stack: the source that it belongs to, if it is not the release's own.
    """

    path: str
    text: bytes = field(repr=False)
    stack: OpSource | None = None

    @property
    def label(self) -> str:
        return f"structs of {self.path}{' of the stack' if self.stack else ''}"


@dataclass(frozen=True)
class PeerTask:
    """The stack's backward and upstream's, for a number of dimensions and a dtype."""

    dims: int
    dtype: str

    @property
    def label(self) -> str:
        return f"peer of {Sampler(self.dims).backward}, {self.dtype}"


Task = SamplerTask | OperatorTask | ReductionTask | StructTask | PeerTask


@dataclass(frozen=True)
class Answer:
    """What came of a task.

    Attributes:
        samplers: of a sampler task, one for each mode.
        operators: of an operator task, one for each operator and type.
        structs: of a struct task, one for each struct.
        peers: of a peer task, one for each interpolation and kind of inputs.
        reports: of the detectors, as sentences.
        failure: what was raised, empty otherwise.
    """

    samplers: tuple[SamplerResult, ...] = ()
    operators: tuple[Fidelity, ...] = ()
    structs: tuple[StructComparison, ...] = ()
    peers: tuple[PeerRow, ...] = ()
    reports: tuple[str, ...] = ()
    failure: str = ""


@dataclass(frozen=True)
class Work:
    """Does tasks for a release; the callable that the pool runs.

    Attributes:
        release: whose kernels and headers.
        structs: of the release; a confined process could not read them.
    """

    release: Release
    structs: tuple[KernelStruct, ...] = ()

    def __call__(self, task: Task) -> Answer:
        """Do one task; an exception becomes an answer, so that the others still run."""
        torch.set_num_threads(1)
        try:
            if isinstance(task, SamplerTask):
                return run_modes(self.release, task.kernel)
            if isinstance(task, PeerTask):
                return run_peer(self.release, task)
            library = release_library(self.release.name, self.release.section, cache=self.release.cache, offline=True)
            if isinstance(task, OperatorTask):
                dirs = self.release.include_dirs
                return Answer(operators=tuple(compare_operators(task.operators, library, dirs, self.release.cache)))
            if isinstance(task, ReductionTask):
                found = compare_reductions(library, self.release.include_dirs, self.release.cache)
                return Answer(operators=tuple(found))
            place = task.stack or self.release
            compared = compare_structs(
                {task.path: task.text}, place.root, place.include_dirs, self.structs, self.release.cache
            )
            return Answer(structs=tuple(compared))
        except Exception as error:
            return Answer(failure=f"{type(error).__name__}: {error}")


def sampler_kernels(release: Release) -> tuple[SamplerKernel, ...]:
    """The grid samplers of a release, in the order of its library."""
    entries = release_library(release.name, release.section, cache=release.cache, offline=True).entries
    return tuple(kernel for entry in entries if (kernel := SamplerKernel.of(entry.name)))


@lru_cache(maxsize=4)
def prepared(release: Release) -> tuple[MetalLibrary, dict[str, StructLayout]]:
    """All grid samplers of the release, compiled into one library, and the layouts of their parameters."""
    library = release_library(release.name, release.section, cache=release.cache, offline=True)
    sources = [AirSource.of(library, kernel.name) for kernel in sampler_kernels(release)]
    layouts = {one.name: one.kernel().struct("params") for one in sources}
    return compile_kernels(sources, release.mode, release.cache), layouts


def run_modes(release: Release, kernel: SamplerKernel) -> Answer:
    """Run a grid sampler in every mode beside float64."""
    library, layouts = prepared(release)
    library.clear_reports()
    results: list[SamplerResult] = []
    for mode in kernel.modes():
        inputs = random_inputs(kernel.axes, kernel.dtype, mode, f"{kernel.name} {mode}")
        found = run_sampler(library, kernel, layouts[kernel.name], mode, inputs)
        results.append(
            judge(kernel.name, mode, found, reference(mode, inputs, backward=kernel.backward), library.traffic)
        )
    return Answer(samplers=tuple(results), reports=tuple(map(str, library.reports())))


def run_peer(release: Release, task: PeerTask) -> Answer:
    """Compare the stack's backward with upstream's."""
    source = release.stack
    assert source
    own = compile_library(
        source.root / source.source, source.include_dirs, cache=release.cache / "metal-run", mode=release.mode
    )
    library = release_library(release.name, release.section, cache=release.cache, offline=True)
    upstream, layouts = prepared(release)
    kernels = upstream_kernels(library, task.dims, task.dtype)
    ours = Kernels(own, source.headers, own.mark_undefined)
    return Answer(peers=tuple(compare_backward(ours, own, upstream, kernels, layouts)))


def tasks_of(
    kernels: Sequence[SamplerKernel], headers: Sequence[tuple[str, bytes]], peer_dims: Sequence[int]
) -> list[Task]:
    """Everything that the gate does, the long tasks first."""
    operators = [OperatorTask(at) for at in range(0, len(OPERATORS), _OPERATORS_A_TASK)]
    return [
        *(PeerTask(dims, dtype) for dims in peer_dims for dtype in DTYPES),
        *operators,
        ReductionTask(),
        *(StructTask(*one) for one in headers),
        *(SamplerTask(kernel) for kernel in kernels),
    ]
