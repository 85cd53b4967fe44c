"""The proof of ``grid_sampler_2d_backward``: its matrix, and what its results have to show together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch

from stackproof.model import Finding
from stackproof.ops.grid_sampler_2d_backward import special
from stackproof.ops.grid_sampler_2d_backward.checks import Expected
from stackproof.ops.grid_sampler_2d_backward.host import HostFunction
from stackproof.ops.grid_sampler_2d_backward.modes import ALL_MODES, Mode
from stackproof.ops.grid_sampler_2d_backward.opinfo import opinfo_samples
from stackproof.ops.grid_sampler_2d_backward.table import DTYPES, OPINFO, RANDOM, Batch, full_batches, small_batches
from stackproof.ops.grid_sampler_2d_backward.values import random_tensors
from stackproof.ops.layouts import LAYOUTS
from stackproof.ops.model import CaseResult, Kernels, WorkUnit

_KERNELS = "aten/src/ATen/native/mps/kernels"

# In units; a result that is exact until it is rounded to nearest is off by at most this much.
_ONE_ROUNDING = 0.5

Special = Callable[[Kernels, Mode, torch.dtype], Iterator[CaseResult]]

_SPECIAL: dict[str, Special] = {
    "non-finite coordinates": special.non_finite_coordinates,
    "collisions": special.collisions,
    "int64 kernels": special.int64_kernels,
    "several launches": special.several_launches,
    "strides beyond 2**31": special.strides_beyond_int32,
}


class GridSampler2dBackwardProof:
    """Implements :class:`stackproof.ops.model.OpProof`."""

    op = "grid_sampler_2d_backward"
    source = f"{_KERNELS}/GridSampler.metal"
    headers = (f"{_KERNELS}/GridSampler.h",)

    def units(self, *, full: bool) -> Sequence[WorkUnit]:
        batches = full_batches() if full else small_batches()
        return [WorkUnit(self.op, batch.label, batch.cases, batch) for batch in batches]

    def run(self, unit: WorkUnit, kernels: Kernels) -> Sequence[CaseResult]:
        batch: Batch = unit.key
        if batch.kind == OPINFO:
            return list(_opinfo(kernels))
        assert batch.mode is not None
        if batch.kind == RANDOM:
            return list(_random(batch, batch.mode, kernels))
        return list(_SPECIAL[batch.kind](kernels, batch.mode, DTYPES[batch.dtype]))

    def judge(self, results: Sequence[CaseResult]) -> Sequence[Finding]:
        """float32 is no less exact than the CPU's float32 on the same inputs: over all modes, and in each one.

        In a single mode the order of a few additions decides which of the two is ahead, and no order is promised on
        either side; an error below half a unit is as good as a result that was rounded once.
        """
        asked = [result for result in results if result.cpu_errors and not result.problems]
        by_mode = {mode: [result for result in asked if result.mode == mode] for mode in map(str, ALL_MODES)}
        findings: list[Finding] = []
        for output in ("grad_input", "grad_grid"):
            if all(by_mode.values()):
                findings += _worse_than_cpu("all modes", output, asked, granted=0.0)
            for mode, ours in by_mode.items():
                findings += _worse_than_cpu(mode, output, ours, granted=_ONE_ROUNDING)
        return findings


def _worse_than_cpu(mode: str, output: str, results: Sequence[CaseResult], *, granted: float) -> Iterator[Finding]:
    pairs = [(result.errors[output], result.cpu_errors[output]) for result in results if output in result.cpu_errors]
    own = max((own for own, _ in pairs), default=0.0)
    cpu = max((cpu for _, cpu in pairs), default=0.0)
    if own > max(cpu, granted):
        yield Finding(
            f"{mode}: float32 {output} is off by up to {own:.3g} units, the CPU's only by {cpu:.3g}",
            path=GridSampler2dBackwardProof.source,
            rule="worse-than-cpu",
            details={"mode": mode, "output": output, "error": own, "cpu_error": cpu},
        )


def _random(batch: Batch, mode: Mode, kernels: Kernels) -> Iterator[CaseResult]:
    assert batch.shape is not None
    host = HostFunction(kernels)
    values = random_tensors(batch.shape, DTYPES[batch.dtype], mode)
    for layout in batch.layouts:
        tensors = LAYOUTS[layout](values)
        expected = Expected.of(tensors, mode)
        for mask in batch.masks:
            yield expected.check(host, f"{batch.shape.name}, {layout}, mask {list(mask)}", mask=mask)


def _opinfo(kernels: Kernels) -> Iterator[CaseResult]:
    host = HostFunction(kernels)
    for dtype in DTYPES.values():
        for name, mode, tensors in opinfo_samples(dtype):
            yield Expected.of(tensors, mode).check(host, name)
