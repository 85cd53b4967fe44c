"""The proof of ``grid_sampler_2d`` and ``grid_sampler_3d``: every mode, and the same as before the stack."""

from __future__ import annotations

from collections.abc import Iterator

from stackproof.engines.kernels import Kernels
from stackproof.ops.grid_sampler import special_forward
from stackproof.ops.grid_sampler.checks import ExpectedSamples
from stackproof.ops.grid_sampler.host import HostForward
from stackproof.ops.grid_sampler.modes import SAMPLER_2D, SAMPLER_3D, Mode, Sampler
from stackproof.ops.grid_sampler.opinfo import opinfo_samples
from stackproof.ops.grid_sampler.proof import ONE_ROUNDING, SamplerProof
from stackproof.ops.grid_sampler.table import DTYPES, Batch
from stackproof.ops.grid_sampler.tensors import EXPANDED_GRAD_OUTPUT, KEEPING, LAYOUTS
from stackproof.ops.grid_sampler.values import random_tensors
from stackproof.ops.model import CaseResult


class ForwardProof(SamplerProof):
    """Implements :class:`stackproof.ops.model.OpProof`."""

    outputs = ("output",)
    layouts = tuple(name for name in LAYOUTS if name != EXPANDED_GRAD_OUTPUT)
    special = special_forward.SPECIAL
    compares_with_base = True
    granted = ONE_ROUNDING  # the order of its additions is as without the stack, whatever the CPU's is

    def __init__(self, sampler: Sampler) -> None:
        super().__init__(sampler.forward, sampler)

    def random(self, batch: Batch, mode: Mode, kernels: Kernels) -> Iterator[CaseResult]:
        """Every layout."""
        assert batch.shape is not None
        host = HostForward(kernels)
        values = random_tensors(batch.shape, DTYPES[batch.dtype], mode)
        kept = ExpectedSamples.of(values, mode)
        for layout in batch.layouts:
            tensors = LAYOUTS[layout](values)
            expected = kept.arranged(tensors) if layout in KEEPING else ExpectedSamples.of(tensors, mode)
            yield expected.check(host, f"{batch.shape.name}, {layout}")

    def opinfo(self, batch: Batch, kernels: Kernels) -> Iterator[CaseResult]:
        """Each sample."""
        host = HostForward(kernels)
        for name, mode, tensors in opinfo_samples(self.sampler, DTYPES[batch.dtype]):
            yield ExpectedSamples.of(tensors, mode).check(host, name)


def forward_2d() -> ForwardProof:
    """The proof of ``grid_sampler_2d``."""
    return ForwardProof(SAMPLER_2D)


def forward_3d() -> ForwardProof:
    """The proof of ``grid_sampler_3d``."""
    return ForwardProof(SAMPLER_3D)
