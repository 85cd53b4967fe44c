"""What a worker process does: compile a source for a run mode once, and run units with it."""

from __future__ import annotations

import contextlib
import resource
import sys
import time
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from multiprocessing import current_process
from pathlib import Path
from typing import Any

import torch

from patchstack.errors import PatchstackError
from stackproof.engines.kernels import Kernels
from stackproof.engines.metal import (
    ALL_DETECTORS,
    CompileError,
    MetalKernel,
    MetalLibrary,
    Report,
    ReportKind,
    RunMode,
)
from stackproof.gates.metal_run.spec import RUN_MODES
from stackproof.launches import Launches
from stackproof.model import Finding
from stackproof.ops import CaseResult, LeftToTreeError, WorkUnit, proof_for
from stackproof.ops.sources import OpSource, library_of

# The detectors share one instrumented build and one run.
MODES: dict[str, RunMode] = dict(
    zip(RUN_MODES, (RunMode.PLAIN, ALL_DETECTORS, RunMode.PERMUTED, RunMode.FAST_MATH), strict=True)
)


@dataclass(frozen=True)
class Task:
    """Compile for a run mode (``unit`` is ``None``), or run a unit in it.

    Attributes:
        op: aten name.
        run_mode: one of :data:`stackproof.gates.metal_run.spec.RUN_MODES`.
        unit: what to run.
        lists: only tell which kernels the unit would launch.
        alone: in a comparison, the kernels take the place of those below the stack as well.
    """

    op: str
    run_mode: str
    unit: WorkUnit | None = None
    lists: bool = False
    alone: bool = False

    @property
    def label(self) -> str:
        return f"{self.op}, {self.run_mode}: {self.unit.label if self.unit else 'compile'}"


@dataclass(frozen=True)
class Done:
    """What came of a task.

    Attributes:
        results: one for each case.
        findings: what the detectors reported, and what went wrong outside any case.
        seconds: wall time in the worker.
        process: name of the worker.
        peak_bytes: largest resident size of the worker so far.
        kernels: host names of the kernels that a unit would launch, where that was asked.
        counts: launches by kernel.
    """

    results: tuple[CaseResult, ...] = ()
    findings: tuple[Finding, ...] = ()
    seconds: float = 0.0
    process: str = ""
    peak_bytes: int = 0
    kernels: tuple[str, ...] = ()
    counts: Launches = field(default_factory=Launches)


CALL_FAILED = "call-failed"
"""Rule of the finding about a unit that raised: none of its cases was judged."""


@dataclass(frozen=True)
class Setup:
    """What all tasks of a gate run share; also the callable that the pool runs.

    Attributes:
        sources: by op.
        cache: where compiled libraries are kept.
    """

    sources: Mapping[str, OpSource]
    cache: Path

    def __call__(self, task: Task) -> Done:
        """Do one task; an exception becomes a finding."""
        started = time.monotonic()
        torch.set_num_threads(1)
        results: tuple[CaseResult, ...] = ()
        counts = Launches()
        try:
            if task.lists:
                return Done(kernels=self._listed(task))
            results, findings = self._run(task, counts)
        except PatchstackError as error:
            findings = (Finding(f"{task.label}: {error}", path=self.sources[task.op].path, rule=CALL_FAILED),)
        except Exception as error:  # whatever a kernel call raises is a finding, the other units still run
            details = {"traceback": traceback.format_exc()}
            message = f"{task.label}: {type(error).__name__}: {error}"
            findings = (Finding(message, path=self.sources[task.op].path, rule=CALL_FAILED, details=details),)
        return Done(results, findings, time.monotonic() - started, current_process().name, peak_bytes(), counts=counts)

    def _run(self, task: Task, counts: Launches) -> tuple[tuple[CaseResult, ...], tuple[Finding, ...]]:
        source = self.sources[task.op]
        library = library_of(source, self.cache, MODES[task.run_mode])
        if isinstance(library, CompileError):
            # Said once, by the task that compiles; its units have nothing to add.
            return (), _diagnosed(library, source) if task.unit is None else ()
        if task.unit is None:
            return (), ()
        proof = proof_for(task.op)
        assert proof is not None
        library.clear_reports()
        library.launches.clear()
        kernels = Kernels(library, source.headers, library.mark_undefined)
        if task.unit.compares:
            kernels = replace(kernels, before=kernels if task.alone else _before(source, self.cache))
        results: list[CaseResult] = []
        try:
            results += proof.run(task.unit, kernels)
        except LeftToTreeError as error:
            results.append(CaseResult("", "", task.unit.label, skipped=str(error)))
        counts.kernels.update({(task.op, kernel): number for kernel, number in library.launches.items()})
        return tuple(results), _reported(library, source, task)

    def _listed(self, task: Task) -> tuple[str, ...]:
        """The kernels that a unit asks for; what it makes of tensors that nothing was written to does not matter."""
        source = self.sources[task.op]
        library, proof = library_of(source, self.cache, MODES[task.run_mode]), proof_for(task.op)
        if isinstance(library, CompileError) or proof is None or task.unit is None:
            return ()
        listing = _Listing(library)
        with contextlib.suppress(Exception):
            proof.run(task.unit, Kernels(listing, source.headers))
        return tuple(listing.launched)


class _Listing:
    """A library whose kernels only tell that they were called."""

    def __init__(self, library: MetalLibrary) -> None:
        self._library = library
        self.launched: dict[str, None] = {}

    def __getattr__(self, name: str) -> Any:
        kernel = getattr(self._library, name)
        return _Listed(kernel, self.launched) if isinstance(kernel, MetalKernel) else kernel

    def __dir__(self) -> Iterable[str]:
        return dir(self._library)


class _Listed:
    """One kernel of such a library."""

    def __init__(self, kernel: MetalKernel, launched: dict[str, None]) -> None:
        self.signature = kernel.signature
        self._launched = launched

    def __call__(self, *args: Any, **named: Any) -> None:
        self._launched[self.signature.kernel] = None


def _before(source: OpSource, cache_folder: Path) -> Kernels | None:
    """The kernels below the stack; that they compile was for their own commit to show."""
    if source.before is None:
        return None
    library = library_of(source.before, cache_folder, RunMode.PLAIN)
    return None if isinstance(library, CompileError) else Kernels(library, source.before.headers)


def _reported(library: MetalLibrary, source: OpSource, task: Task) -> tuple[Finding, ...]:
    reports: list[Report] = library.reports()
    return tuple(
        Finding(
            f"{report.kernel}: {report.message}",
            path=_in_tree(report.file, source.root),
            line=report.line,
            rule=report.kind.value,
            fails=not is_theirs(report, source.root),
            details={"run_mode": task.run_mode, "unit": task.unit.label if task.unit else ""},
        )
        for report in reports
    )


def is_theirs(report: Report, root: Path) -> bool:
    """Whether lanes part in PyTorch's own headers, as in its reductions: no stack can say there that it is meant."""
    is_divergence = report.kind is ReportKind.SIMDGROUP_DIVERGENCE
    return is_divergence and _in_tree(report.file, root).startswith("c10/metal/")


def _diagnosed(error: CompileError, source: OpSource) -> tuple[Finding, ...]:
    errors = [diagnostic for diagnostic in error.diagnostics if diagnostic.severity == "error"]
    if not errors:
        return (Finding(str(error), path=source.path, rule="compile"),)
    return tuple(
        Finding(diagnostic.message, path=_in_tree(diagnostic.file, source.root), line=diagnostic.line, rule="compile")
        for diagnostic in errors
    )


def _in_tree(file: str, root: Path) -> str:
    path = Path(file)
    return str(path.relative_to(root)) if path.is_relative_to(root) else file


def peak_bytes() -> int:
    """Largest resident size of this process so far, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
