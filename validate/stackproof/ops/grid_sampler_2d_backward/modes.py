"""The modes of the 2D grid sampler, as the op's integer arguments number them."""

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


ALL_MODES: tuple[Mode, ...] = tuple(
    Mode(interpolation, padding, align_corners)
    for interpolation, padding, align_corners in itertools.product(Interpolation, Padding, (False, True))
)
