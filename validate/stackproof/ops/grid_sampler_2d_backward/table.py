"""The one table that the proof's cases are generated from.

A batch is one mode, one dtype and one shape; its cases are every layout with every mask. What does not fit into
"random values of this shape" is a special batch, named here and made in :mod:`.special`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from stackproof.ops.grid_sampler_2d_backward.modes import ALL_MODES, Mode
from stackproof.ops.layouts import LAYOUTS

Mask = tuple[bool, bool]


@dataclass(frozen=True)
class Shape:
    """Sizes of one call, and where its samples lie.

    Attributes:
        name: what is special about it.
        input: N, C, H, W.
        output: Ho, Wo.
        reach: the grid is uniform in [-reach, reach]; 1 is the edge of the input.
        on_lattice: grid values are multiples of 1/8, so that samples fall exactly on pixels, edges and ties.
        layouts: the layouts worth trying; all unless said otherwise.
    """

    name: str
    input: tuple[int, int, int, int]
    output: tuple[int, int]
    reach: float = 1.6
    on_lattice: bool = False
    layouts: tuple[str, ...] = tuple(LAYOUTS)


_PLAIN = ("contiguous",)

SHAPES: tuple[Shape, ...] = (
    Shape("odd sizes", (1, 3, 5, 7), (4, 3)),
    Shape("two samples", (2, 2, 3, 9), (5, 5)),
    Shape("three samples", (3, 4, 6, 4), (3, 5)),
    Shape("one row", (2, 3, 1, 5), (3, 2)),
    Shape("one column", (1, 2, 4, 1), (1, 4)),
    Shape("one pixel", (2, 1, 1, 1), (2, 2)),
    Shape("far outside", (1, 2, 5, 6), (6, 6), reach=9.0),
    Shape("on the lattice", (1, 2, 5, 4), (9, 9), reach=3.0, on_lattice=True),
    Shape("many samples per pixel", (1, 2, 3, 3), (16, 17)),
    Shape("odd lanes", (1, 33, 4, 5), (3, 11)),
    Shape("1100 channels", (1, 1100, 3, 4), (2, 3)),
    Shape("empty batch", (0, 2, 3, 3), (2, 2), layouts=_PLAIN),
    Shape("no channels", (2, 0, 3, 3), (2, 2), layouts=_PLAIN),
    Shape("empty output", (2, 2, 3, 3), (0, 2), layouts=_PLAIN),
)
_SMALL = ("two samples", "on the lattice")

MASKS: tuple[Mask, ...] = ((True, True), (False, True), (True, False), (False, False))

DTYPES: dict[str, torch.dtype] = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}

RANDOM = "random values"
# Special batches: kind -> the number of cases that a batch of it has. All but OpInfo's come once per mode and dtype.
SPECIAL = {
    "non-finite coordinates": 3,
    "collisions": 1,
    "int64 kernels": 2,
    "several launches": 2,
    "strides beyond 2**31": 4,
}
OPINFO = "OpInfo samples"
_OPINFO_CASES = 108  # two OpInfo entries, 18 modes each, three dtypes
# Address space far larger than memory tells the detectors nothing that small tensors do not.
_SPECIAL_SMALL = ("non-finite coordinates", "int64 kernels", "several launches")


@dataclass(frozen=True)
class Batch:
    """The cases of one work unit.

    Attributes:
        kind: :data:`RANDOM`, :data:`OPINFO` or a key of :data:`SPECIAL`.
        mode: how to sample; ``None`` where the batch has all modes.
        dtype: name of the dtype; empty where the batch has all.
        shape: sizes; ``None`` where the kind knows them.
        layouts: of the cases; each comes with every mask of ``masks``.
        masks: see above.
    """

    kind: str
    mode: Mode | None = None
    dtype: str = ""
    shape: Shape | None = None
    layouts: tuple[str, ...] = ()
    masks: tuple[Mask, ...] = ()

    @property
    def label(self) -> str:
        parts = (self.kind, str(self.mode) if self.mode else "", self.dtype, self.shape.name if self.shape else "")
        return "; ".join(part for part in parts if part)

    @property
    def cases(self) -> int:
        if self.kind == RANDOM:
            return len(self.layouts) * len(self.masks)
        return SPECIAL.get(self.kind, _OPINFO_CASES)


def full_batches() -> Iterator[Batch]:
    """The whole matrix."""
    for mode in ALL_MODES:
        for dtype in DTYPES:
            for shape in SHAPES:
                layouts = tuple(name for name in shape.layouts if dtype != "float32" or name != "odd offset")
                yield Batch(RANDOM, mode, dtype, shape, layouts, MASKS)
            for kind in SPECIAL:
                yield Batch(kind, mode, dtype)
    yield Batch(OPINFO)


def small_batches() -> Iterator[Batch]:
    """A few cases for every kernel and every mode, for run modes that are slow."""
    for mode in ALL_MODES:
        for dtype in DTYPES:
            for shape in SHAPES:
                if shape.name in _SMALL:
                    yield Batch(RANDOM, mode, dtype, shape, ("sliced", "expanded grad_output"), MASKS[:2])
            for kind in _SPECIAL_SMALL:
                yield Batch(kind, mode, dtype)
