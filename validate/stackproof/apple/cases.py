"""Runs cases of Apple-compiled kernels in child processes: what a wild access does to a process is a result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import torch

from stackproof.apple.build import AirSource, compile_kernels
from stackproof.apple.release import release_library
from stackproof.apple.sampler import SamplerKernel, SamplerResult, judge, random_inputs, reference, run_sampler
from stackproof.metal import MetalLibrary, RunMode
from stackproof.metal_run.pool import Died, run_tasks
from stackproof.ops.struct_layout import StructLayout


@dataclass(frozen=True)
class SamplerSet:
    """The grid samplers of a release.

    Attributes:
        release: such as ``2.13``.
        section: of its library.
        cache: the project's cache folder.
        mode: how they are watched.
    """

    release: str
    section: str
    cache: Path
    mode: RunMode = RunMode.PLAIN


@dataclass(frozen=True)
class SamplerTask:
    """A kernel, called in every mode that it has."""

    of: SamplerSet
    kernel: SamplerKernel


@dataclass(frozen=True)
class SamplerAnswer:
    """What came of a task.

    Attributes:
        results: one for each mode.
        reports: of the detectors, as sentences.
        failure: what was raised, empty otherwise.
    """

    results: tuple[SamplerResult, ...]
    reports: tuple[str, ...] = ()
    failure: str = ""


def sampler_kernels(of: SamplerSet) -> tuple[SamplerKernel, ...]:
    """The grid samplers of a release, in the order of its library."""
    entries = release_library(of.release, of.section, cache=of.cache).entries
    return tuple(kernel for entry in entries if (kernel := SamplerKernel.of(entry.name)))


def run_samplers(
    of: SamplerSet, kernels: Sequence[SamplerKernel], *, jobs: int
) -> Iterator[tuple[SamplerKernel, SamplerAnswer | Died]]:
    """Run kernels in every mode, each in a child process; in the order of completion."""
    prepared(of)
    for task, answer in run_tasks([SamplerTask(of, kernel) for kernel in kernels], work, jobs=jobs):
        yield task.kernel, answer


@lru_cache(maxsize=4)
def prepared(of: SamplerSet) -> tuple[MetalLibrary, dict[str, StructLayout]]:
    """All grid samplers of the set, compiled into one library, and the layouts of their parameters."""
    metallib = release_library(of.release, of.section, cache=of.cache)
    sources = [AirSource.of(metallib, kernel.name) for kernel in sampler_kernels(of)]
    layouts = {one.name: one.kernel().struct("params") for one in sources}
    return compile_kernels(sources, of.mode, of.cache), layouts


def work(task: SamplerTask) -> SamplerAnswer:
    """Do one task, in a child process."""
    torch.set_num_threads(1)
    kernel, results = task.kernel, []
    try:
        library, layouts = prepared(task.of)
        library.clear_reports()
        for mode in kernel.modes():
            inputs = random_inputs(kernel, mode)
            found = run_sampler(library, kernel, layouts[kernel.name], mode, inputs)
            results.append(judge(kernel, mode, found, reference(kernel, mode, inputs)))
    except Exception as error:  # the other kernels still run
        return SamplerAnswer(tuple(results), failure=f"{type(error).__name__}: {error}")
    return SamplerAnswer(tuple(results), tuple(map(str, library.reports())))
