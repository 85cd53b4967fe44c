"""Which family a library has: the first one whose kernels are there."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeVar

from stackproof.ops.grid_sampler.families.index32 import Index32Forward
from stackproof.ops.grid_sampler.families.model import BackwardFamily, ForwardFamily
from stackproof.ops.grid_sampler.families.series import SeriesBackward, SeriesForward
from stackproof.ops.grid_sampler.families.upstream import UpstreamBackward, UpstreamForward
from stackproof.ops.grid_sampler.modes import Sampler

F = TypeVar("F", BackwardFamily, ForwardFamily)

# A tree may still hold kernels that its host functions no longer launch: the newest family comes first.
BACKWARD: Sequence[BackwardFamily] = (SeriesBackward(), UpstreamBackward())
FORWARD: Sequence[ForwardFamily] = (SeriesForward(), UpstreamForward(), Index32Forward())


def family_of(families: Sequence[F], names: Collection[str], sampler: Sampler) -> F:
    """The family of a sampler.

    Args:
        families: of one direction, in the order of preference.
        names: of the library's kernels.
        sampler: which.

    Raises:
        LookupError: the library has no kernels of any family for this sampler.
    """
    for family in families:
        if family.is_among(names, sampler):
            return family
    raise LookupError(f"no kernels of {sampler.forward} or its backward that a proof knows how to launch")
