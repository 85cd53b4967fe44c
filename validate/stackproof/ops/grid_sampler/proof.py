"""What the proofs of the forward and of the backward share: cutting the matrix into units, comparing with the CPU."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar

from stackproof.engines.kernels import Kernels
from stackproof.model import Finding
from stackproof.ops.grid_sampler.modes import Mode, Sampler
from stackproof.ops.grid_sampler.table import DTYPES, OPINFO, RANDOM, Batch, Mask, Matrix, Special
from stackproof.ops.model import CaseResult, WorkUnit

_KERNELS = "aten/src/ATen/native/mps/kernels"

# In units; a result that is exact until it is rounded to nearest is off by at most this much.
ONE_ROUNDING = 0.5

# Samples of PyTorch's OpInfo entries in one dtype, by number of dimensions.
_OPINFO_CASES = {2: 36, 3: 42}


class SamplerProof(ABC):
    """Implements :class:`stackproof.ops.model.OpProof` for one direction of one sampler.

    Attributes:
        op: aten name.
        matrix: all cases.
    """

    source = f"{_KERNELS}/GridSampler.metal"
    headers = (f"{_KERNELS}/GridSampler.h",)
    beside = (f"{_KERNELS}/GridSamplerLanes.metal", f"{_KERNELS}/GridSamplerLanes.h")
    outputs: ClassVar[tuple[str, ...]]
    layouts: ClassVar[tuple[str, ...]]
    masks: ClassVar[tuple[Mask, ...]] = ()
    special: ClassVar[dict[str, Special]]
    compares_with_base = False
    granted = 0.0  # how far off all modes together may be even where the CPU is closer, in units

    def __init__(self, op: str, sampler: Sampler) -> None:
        self.op = op
        self.sampler = sampler
        self.matrix = Matrix(sampler, self.layouts, self.masks, self.special, _OPINFO_CASES[sampler.dims])

    def units(self, *, full: bool) -> Sequence[WorkUnit]:
        batches = self.matrix.full() if full else self.matrix.small()
        comparing = {kind for kind, special in self.special.items() if special.compares}
        return [WorkUnit(self.op, one.label, one.cases, one, one.kind in comparing) for one in batches]

    def run(self, unit: WorkUnit, kernels: Kernels) -> Sequence[CaseResult]:
        batch: Batch = unit.key
        if batch.kind == OPINFO:
            return list(self.opinfo(batch, kernels))
        assert batch.mode is not None
        if batch.kind == RANDOM:
            return list(self.random(batch, batch.mode, kernels))
        return list(self.special[batch.kind].run(kernels, self.sampler, batch.mode, DTYPES[batch.dtype]))

    @abstractmethod
    def random(self, batch: Batch, mode: Mode, kernels: Kernels) -> Iterator[CaseResult]:
        """Random values of one shape in every layout."""

    @abstractmethod
    def opinfo(self, batch: Batch, kernels: Kernels) -> Iterator[CaseResult]:
        """PyTorch's own samples in one dtype."""

    def judge(self, results: Sequence[CaseResult]) -> Sequence[Finding]:
        """float32 is no less exact than the CPU's float32 on the same inputs: over all modes, and in each one.

        In a single mode the order of a few additions decides which of the two is ahead, and no order is promised on
        either side; an error below half a unit is as good as a result that was rounded once.
        """
        asked = [result for result in results if result.cpu_errors and not result.problems]
        modes = [str(mode) for mode in self.sampler.modes]
        by_mode = {mode: [result for result in asked if result.mode == mode] for mode in modes}
        findings: list[Finding] = []
        for output in self.outputs:
            if all(by_mode.values()):
                findings += self._worse_than_cpu("all modes", output, asked, granted=self.granted)
            for mode, ours in by_mode.items():
                findings += self._worse_than_cpu(mode, output, ours, granted=ONE_ROUNDING)
        return findings

    def _worse_than_cpu(
        self, mode: str, output: str, results: Sequence[CaseResult], *, granted: float
    ) -> Iterator[Finding]:
        pairs = [
            (result.errors[output], result.cpu_errors[output]) for result in results if output in result.cpu_errors
        ]
        own = max((own for own, _ in pairs), default=0.0)
        cpu = max((cpu for _, cpu in pairs), default=0.0)
        if own > max(cpu, granted):
            yield Finding(
                f"{mode}: float32 {output} is off by up to {own:.3g} units, the CPU's only by {cpu:.3g}",
                path=self.source,
                rule="worse-than-cpu",
                details={"mode": mode, "output": output, "error": own, "cpu_error": cpu},
            )
