"""The tables that the proofs' cases are generated from: one for each number of spatial dimensions.

A batch is one mode, one dtype and one shape; its cases are every layout with every mask. What does not fit into
"random values of this shape" is a special batch, named by the proof and made by a function of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch

from stackproof.engines.kernels import Kernels
from stackproof.ops.grid_sampler.modes import Interpolation, Mode, Sampler
from stackproof.ops.grid_sampler.tensors import EXPANDED_GRAD_OUTPUT, EXPANDED_INPUT, LAYOUTS, ODD_OFFSET
from stackproof.ops.model import CaseResult

Mask = tuple[bool, bool]


@dataclass(frozen=True)
class Shape:
    """Sizes of one call, and where its samples lie.

    Attributes:
        name: what is special about it.
        input: (N, C, *S).
        output: O.
        reach: the grid is uniform in [-reach, reach]; 1 is the edge of the input.
        on_lattice: grid values are multiples of 1/8, so that samples fall exactly on pixels, edges and ties.
        layouts: the layouts worth trying; all unless said otherwise.
    """

    name: str
    input: tuple[int, ...]
    output: tuple[int, ...]
    reach: float = 1.6
    on_lattice: bool = False
    layouts: tuple[str, ...] = tuple(LAYOUTS)


_PLAIN = ("contiguous",)
# Where what the kernels do depends on the number of channels, for the two layouts that they tell apart.
_CHANNELS = ("contiguous", "channels_last")

_SHAPES_2D = (
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
    Shape("14 channels", (1, 14, 4, 3), (5, 7), layouts=_CHANNELS),
    Shape("17 channels", (2, 17, 5, 3), (9, 8), layouts=_CHANNELS),
    Shape("70 channels", (1, 70, 4, 5), (5, 11), layouts=_CHANNELS),
    Shape("1100 channels", (1, 1100, 3, 4), (2, 3)),
    Shape("empty batch", (0, 2, 3, 3), (2, 2), layouts=_PLAIN),
    Shape("no channels", (2, 0, 3, 3), (2, 2), layouts=_PLAIN),
    Shape("empty output", (2, 2, 3, 3), (0, 2), layouts=_PLAIN),
)
_SHAPES_3D = (
    Shape("odd sizes", (1, 3, 4, 5, 7), (2, 4, 3)),
    Shape("two samples", (2, 2, 3, 4, 9), (3, 2, 5)),
    Shape("three samples", (3, 4, 5, 6, 4), (2, 3, 5)),
    Shape("one slice", (2, 3, 1, 4, 5), (2, 3, 2)),
    Shape("one row", (2, 3, 4, 1, 5), (1, 3, 2)),
    Shape("one column", (1, 2, 3, 4, 1), (3, 1, 4)),
    Shape("one pixel", (2, 1, 1, 1, 1), (2, 2, 1)),
    Shape("far outside", (1, 2, 4, 5, 6), (3, 4, 4), reach=9.0),
    Shape("on the lattice", (1, 2, 5, 4, 3), (4, 9, 9), reach=3.0, on_lattice=True),
    Shape("many samples per pixel", (1, 2, 2, 3, 3), (7, 6, 7)),
    Shape("odd lanes", (1, 33, 3, 2, 5), (2, 2, 11)),
    Shape("14 channels", (1, 14, 2, 4, 3), (2, 4, 5), layouts=_CHANNELS),
    Shape("17 channels", (2, 17, 3, 4, 3), (3, 5, 5), layouts=_CHANNELS),
    Shape("70 channels", (1, 70, 3, 2, 4), (2, 4, 5), layouts=_CHANNELS),
    Shape("1100 channels", (1, 1100, 2, 3, 4), (1, 2, 3)),
    Shape("empty batch", (0, 2, 3, 3, 3), (2, 2, 2), layouts=_PLAIN),
    Shape("no channels", (2, 0, 3, 3, 3), (2, 2, 2), layouts=_PLAIN),
    Shape("empty output", (2, 2, 3, 3, 3), (2, 0, 2), layouts=_PLAIN),
)
SHAPES: Mapping[int, tuple[Shape, ...]] = {2: _SHAPES_2D, 3: _SHAPES_3D}
_SMALL = ("two samples", "on the lattice")

MASKS: tuple[Mask, ...] = ((True, True), (False, True), (True, False), (False, False))

DTYPES: dict[str, torch.dtype] = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}

RANDOM, OPINFO = "random values", "OpInfo samples"


@dataclass(frozen=True)
class Special:
    """A kind of cases that are not "random values of some shape"; they come once per mode and dtype.

    Attributes:
        cases: how many there are each time.
        run: runs them.
        watched: whether they tell the slow run modes something.
        interpolations: those that they are for.
        compares: they need the kernels of the commit below the stack.
    """

    cases: int
    run: Callable[[Kernels, Sampler, Mode, torch.dtype], Iterator[CaseResult]]
    watched: bool = True
    interpolations: tuple[Interpolation, ...] = tuple(Interpolation)
    compares: bool = False


@dataclass(frozen=True)
class Batch:
    """The cases of one work unit.

    Attributes:
        kind: :data:`RANDOM`, :data:`OPINFO` or a special kind of the matrix.
        cases: how many cases it has.
        dtype: name of the dtype.
        mode: how to sample; ``None`` where the batch has all modes.
        shape: sizes; ``None`` where the kind knows them.
        layouts: of the cases; each comes with every mask of ``masks``.
        masks: of the op's outputs; empty where it has no mask.
    """

    kind: str
    cases: int
    dtype: str
    mode: Mode | None = None
    shape: Shape | None = None
    layouts: tuple[str, ...] = ()
    masks: tuple[Mask, ...] = ()

    @property
    def label(self) -> str:
        parts = (self.kind, str(self.mode) if self.mode else "", self.dtype, self.shape.name if self.shape else "")
        return "; ".join(part for part in parts if part)


@dataclass(frozen=True)
class Matrix:
    """All cases of one op.

    Attributes:
        sampler: the op's number of dimensions.
        layouts: those that make a difference to the op.
        masks: of the op's outputs; empty where it has no mask.
        special: by kind of batch.
        opinfo_cases: how many samples PyTorch's OpInfo has, in each dtype.
    """

    sampler: Sampler
    layouts: tuple[str, ...]
    masks: tuple[Mask, ...]
    special: Mapping[str, Special]
    opinfo_cases: int

    @property
    def shapes(self) -> tuple[Shape, ...]:
        return SHAPES[self.sampler.dims]

    def full(self) -> Iterator[Batch]:
        """The whole matrix."""
        for dtype in DTYPES:
            # First, because these batches take longest.
            yield Batch(OPINFO, self.opinfo_cases, dtype)
        for mode in self.sampler.modes:
            for dtype in DTYPES:
                for shape in self.shapes:
                    yield self._random(mode, dtype, shape, self._worthwhile(shape, dtype), self.masks)
                yield from self._special(mode, dtype)

    def small(self) -> Iterator[Batch]:
        """A few cases for every kernel and every mode, for run modes that are slow."""
        layouts = tuple(name for name in ("sliced", EXPANDED_GRAD_OUTPUT) if name in self.layouts)
        for mode in self.sampler.modes:
            for dtype in DTYPES:
                for shape in self.shapes:
                    if shape.name in _SMALL:
                        yield self._random(mode, dtype, shape, layouts, self.masks[:2])
                    elif shape.layouts == _CHANNELS:
                        yield self._random(mode, dtype, shape, _CHANNELS, self.masks[:1])
                yield from self._special(mode, dtype, only_watched=True)

    def _special(self, mode: Mode, dtype: str, *, only_watched: bool = False) -> Iterator[Batch]:
        for kind, special in self.special.items():
            if mode.interpolation in special.interpolations and (special.watched or not only_watched):
                yield Batch(kind, special.cases, dtype, mode)

    def _worthwhile(self, shape: Shape, dtype: str) -> tuple[str, ...]:
        left_out = {ODD_OFFSET} if dtype == "float32" else set()
        if shape.input[0] < 2:
            left_out.add(EXPANDED_INPUT)
        return tuple(name for name in shape.layouts if name in self.layouts and name not in left_out)

    @staticmethod
    def _random(mode: Mode, dtype: str, shape: Shape, layouts: tuple[str, ...], masks: tuple[Mask, ...]) -> Batch:
        return Batch(RANDOM, len(layouts) * max(len(masks), 1), dtype, mode, shape, layouts, masks)
