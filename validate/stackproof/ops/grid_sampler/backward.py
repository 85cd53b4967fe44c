"""The proof of ``grid_sampler_2d_backward`` and of its 3D sibling: both gradients, in every mode."""

from __future__ import annotations

from collections.abc import Iterator

from stackproof.engines.kernels import Kernels
from stackproof.ops.grid_sampler import special_backward
from stackproof.ops.grid_sampler.checks import ExpectedGradients
from stackproof.ops.grid_sampler.host import HostBackward
from stackproof.ops.grid_sampler.modes import SAMPLER_2D, SAMPLER_3D, Mode, Sampler
from stackproof.ops.grid_sampler.opinfo import opinfo_samples
from stackproof.ops.grid_sampler.proof import SamplerProof
from stackproof.ops.grid_sampler.table import DTYPES, MASKS, Batch
from stackproof.ops.grid_sampler.tensors import KEEPING, LAYOUTS
from stackproof.ops.grid_sampler.values import random_tensors
from stackproof.ops.model import CaseResult


class BackwardProof(SamplerProof):
    """Implements :class:`stackproof.ops.model.OpProof`."""

    outputs = ("grad_input", "grad_grid")
    layouts = tuple(LAYOUTS)
    masks = MASKS
    special = special_backward.SPECIAL

    def __init__(self, sampler: Sampler) -> None:
        super().__init__(sampler.backward, sampler)

    def random(self, batch: Batch, mode: Mode, kernels: Kernels) -> Iterator[CaseResult]:
        """Every layout with every mask."""
        assert batch.shape is not None
        host = HostBackward(kernels)
        values = random_tensors(batch.shape, DTYPES[batch.dtype], mode)
        kept = ExpectedGradients.of(values, mode)
        for layout in batch.layouts:
            tensors = LAYOUTS[layout](values)
            expected = kept.arranged(tensors) if layout in KEEPING else ExpectedGradients.of(tensors, mode)
            for mask in batch.masks:
                yield expected.check(host, f"{batch.shape.name}, {layout}, mask {list(mask)}", mask=mask)

    def opinfo(self, batch: Batch, kernels: Kernels) -> Iterator[CaseResult]:
        """Both gradients of each sample."""
        host = HostBackward(kernels)
        for name, mode, tensors in opinfo_samples(self.sampler, DTYPES[batch.dtype]):
            yield ExpectedGradients.of(tensors, mode).check(host, name)


def backward_2d() -> BackwardProof:
    """The proof of ``grid_sampler_2d_backward``."""
    return BackwardProof(SAMPLER_2D)


def backward_3d() -> BackwardProof:
    """The proof of ``grid_sampler_3d_backward``."""
    return BackwardProof(SAMPLER_3D)
