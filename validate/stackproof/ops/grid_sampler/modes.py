"""The modes of the grid samplers, as the ops' integer arguments number them."""

from __future__ import annotations

import enum
import itertools
from dataclasses import dataclass


class Interpolation(enum.IntEnum):
    """Codes of ``interpolation_mode``."""

    BILINEAR = 0
    NEAREST = 1
    BICUBIC = 2


class Padding(enum.IntEnum):
    """Codes of ``padding_mode``."""

    ZEROS = 0
    BORDER = 1
    REFLECTION = 2


@dataclass(frozen=True, order=True)
class Mode:
    """One way of sampling: what ``grid_sample`` takes besides tensors."""

    interpolation: Interpolation
    padding: Padding
    align_corners: bool

    def __str__(self) -> str:
        corners = "align_corners" if self.align_corners else "no align_corners"
        return f"{self.interpolation.name.lower()}, {self.padding.name.lower()}, {corners}"


@dataclass(frozen=True)
class Sampler:
    """The grid sampler over a number of spatial dimensions.

    Attributes:
        dims: 2 or 3.
    """

    dims: int

    @property
    def forward(self) -> str:
        """Aten name of the op that samples."""
        return f"grid_sampler_{self.dims}d"

    @property
    def backward(self) -> str:
        """Aten name of the op that computes its gradients."""
        return f"{self.forward}_backward"

    @property
    def interpolations(self) -> tuple[Interpolation, ...]:
        """Those that PyTorch has: bicubic exists in two dimensions only."""
        return tuple(mode for mode in Interpolation if self.dims == 2 or mode is not Interpolation.BICUBIC)

    @property
    def modes(self) -> tuple[Mode, ...]:
        """Every way of sampling."""
        return tuple(itertools.starmap(Mode, itertools.product(self.interpolations, Padding, (False, True))))


SAMPLER_2D, SAMPLER_3D = Sampler(2), Sampler(3)
