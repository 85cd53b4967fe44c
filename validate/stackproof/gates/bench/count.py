"""The work of the gate on the host, in child processes: one row of one commit at a time."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch

from patchstack.errors import PatchstackError
from stackproof.engines.metal import MetalLibrary, RunMode
from stackproof.gates.bench.traffic import CountedLibrary, Step, Traffic, count, total
from stackproof.ops.grid_sampler.bench.passes import Kernels, scheme_of
from stackproof.ops.grid_sampler.bench.rows import Row
from stackproof.ops.grid_sampler.bench.stand_ins import stand_in_case
from stackproof.ops.sources import OpSource, library_of


@dataclass(frozen=True)
class CountTask:
    """One row of one commit; ``side`` is ``base`` or ``head``."""

    side: str
    row: Row

    @property
    def label(self) -> str:
        return f"{self.row.op}, {self.side}: {self.row.label}"


@dataclass(frozen=True)
class Counted:
    """What came of a task.

    Attributes:
        scheme: how the kernels divide the work; empty where the commit has no kernels for the op.
        steps: the launches, and PyTorch's own functions between them, in order.
        failure: what was raised, empty otherwise.
        details: more about the failure.
    """

    scheme: str = ""
    steps: tuple[Step, ...] = ()
    failure: str = ""
    details: str = ""

    @property
    def total(self) -> Traffic:
        """Of the whole pass."""
        return total(self.steps)


@dataclass(frozen=True)
class CountWork:
    """Does tasks; the callable that the pool runs.

    Attributes:
        sources: by side.
        cache: where compiled libraries are kept; shared with the gate "metal-run", whose detectors use the same build.
    """

    sources: Mapping[str, OpSource]
    cache: Path

    def __call__(self, task: CountTask) -> Counted:
        """Count one row; an exception becomes an answer, so that the others still run."""
        torch.set_num_threads(1)
        source = self.sources[task.side]
        try:
            library = library_of(source, self.cache, RunMode.TRAFFIC)
            if not isinstance(library, MetalLibrary):
                return Counted(failure=str(library))
            return _counted(library, source, task.row)
        except PatchstackError as error:
            return Counted(failure=str(error))
        except Exception as error:  # whatever a kernel call raises
            return Counted(failure=f"{type(error).__name__}: {error}", details=traceback.format_exc())


def _counted(library: MetalLibrary, source: OpSource, row: Row) -> Counted:
    scheme = scheme_of(library, row)
    if scheme is None:
        return Counted()
    counted = _watched(library)
    kernels = Kernels(counted, source.headers)
    return Counted(scheme.name, count(counted, scheme.prepare(kernels, row, stand_in_case(row))))


@cache
def _watched(library: MetalLibrary) -> CountedLibrary:
    return CountedLibrary(library)
