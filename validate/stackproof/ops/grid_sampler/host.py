"""What the host functions ``grid_sampler_*_mps`` do around their kernels, said once more in Python.

The kernels are proved through this mirror, so it has to follow the tree's ``GridSampler.mm``: kernel names, index
width, launches, buffers, the float accumulation of 16-bit gradients. Which kernels a tree has decides which of its
forms is mirrored (:mod:`stackproof.ops.grid_sampler.families`). That the real host functions do the same is what the
host gates show.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import torch
from torch import Tensor

from stackproof.engines.kernels import Kernels
from stackproof.ops.grid_sampler.families.lanes import fits_lanes, has_lanes, run_lanes
from stackproof.ops.grid_sampler.families.model import (
    POSITIONS_PER_LAUNCH,
    BackwardCall,
    BackwardFamily,
    ForwardCall,
    Outputs,
)
from stackproof.ops.grid_sampler.families.registry import BACKWARD, FORWARD, family_of
from stackproof.ops.grid_sampler.modes import Mode, Sampler
from stackproof.ops.grid_sampler.tensors import SamplerTensors
from stackproof.ops.model import LeftToTreeError


class _HostFunction:
    """What both directions have in common.

    Attributes:
        always_wide: take the 64-bit kernels even where 32 bits are enough, to try them on small tensors.
        positions_per_launch: at most so many threads in a launch.
    """

    def __init__(
        self, kernels: Kernels, *, always_wide: bool = False, positions_per_launch: int = POSITIONS_PER_LAUNCH
    ) -> None:
        self.always_wide = always_wide
        self.positions_per_launch = positions_per_launch
        self._kernels = kernels

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(dir(self._kernels.library))


class HostBackward(_HostFunction):
    """The backward's host function over one library of kernels.

    Attributes:
        zeros: makes the float buffer for ``grad_input``; for sizes that exist as address space only. Calls that the
            hook of the fast backward takes make their own.
    """

    def __init__(
        self,
        kernels: Kernels,
        *,
        always_wide: bool = False,
        positions_per_launch: int = POSITIONS_PER_LAUNCH,
        zeros: Callable[[Sequence[int]], Tensor] | None = None,
    ) -> None:
        super().__init__(kernels, always_wide=always_wide, positions_per_launch=positions_per_launch)
        self.zeros = zeros

    def splits_launches(self, tensors: SamplerTensors, mode: Mode) -> bool:
        """Whether a grid with more positions than a launch takes gets several."""
        return self._is_hooked(tensors, mode, True) or self._family(Sampler(tensors.dims)).splits_launches

    def _family(self, sampler: Sampler) -> BackwardFamily:
        """The tree's own kernels.

        Raises:
            LeftToTreeError: they are not known, and the hook left a call to them.
            LookupError: they are not known, and there is no hook.
        """
        try:
            return family_of(BACKWARD, self._names, sampler)
        except LookupError as error:
            if has_lanes(self._names, sampler):
                raise LeftToTreeError("what the hook leaves to kernels of the tree is host-run's to show") from error
            raise

    def _is_hooked(self, tensors: SamplerTensors, mode: Mode, compute_grad_input: bool) -> bool:
        has = has_lanes(self._names, Sampler(tensors.dims)) and not self.always_wide
        return has and fits_lanes(tensors, mode, compute_grad_input=compute_grad_input)

    def run(self, tensors: SamplerTensors, mode: Mode, *, mask: tuple[bool, bool]) -> Outputs:
        """Both gradients, as the host function computes them; ``grad_grid`` always, whatever the mask.

        Args:
            tensors: all of one dtype, on the CPU.
            mode: how to sample.
            mask: ``output_mask`` of the op.

        Raises:
            LookupError: the library has no kernels for this sampler that are known here; see :meth:`_family`.
        """
        grad_grid = torch.full(tensors.grid.shape, torch.nan, dtype=tensors.grid.dtype)  # what is not written shows
        if 0 in (tensors.grad_output.numel(), tensors.input.numel()):
            return Outputs(torch.zeros_like(tensors.input) if mask[0] else None, grad_grid.zero_())
        call = BackwardCall(
            self._kernels,
            tensors,
            mode,
            self.always_wide,
            self.positions_per_launch,
            grad_grid,
            mask[0],
            self.zeros,
        )
        if self._is_hooked(tensors, mode, mask[0]):
            return run_lanes(call)
        return self._family(Sampler(tensors.dims)).run(call)


class HostForward(_HostFunction):
    """The forward's host function over one library of kernels.

    Attributes:
        used_wide: the last run took the kernel with 64-bit offsets.
    """

    used_wide = False

    def splits_launches(self, tensors: SamplerTensors, mode: Mode) -> bool:
        """Whether a grid with more positions than a launch takes gets several."""
        return family_of(FORWARD, self._names, Sampler(tensors.dims)).splits_launches

    def run(self, tensors: SamplerTensors, mode: Mode, output: Tensor | None = None) -> Tensor:
        """The samples, as the host function computes them.

        Args:
            tensors: all of one dtype, on the CPU; ``grad_output`` is not looked at but for its shape.
            mode: how to sample.
            output: where to write, (N, C, *O); new and contiguous memory unless said otherwise.

        Raises:
            LookupError: the library has no kernel for this sampler, or none for this mode.
        """
        if output is None:
            output = torch.full(tensors.grad_output.shape, torch.nan, dtype=tensors.input.dtype)
        if 0 in (output.numel(), tensors.input.numel()):
            return output.zero_()
        family = family_of(FORWARD, self._names, Sampler(tensors.dims))
        self.used_wide = family.run(
            ForwardCall(self._kernels, tensors, mode, self.always_wide, self.positions_per_launch, output)
        )
        return output
