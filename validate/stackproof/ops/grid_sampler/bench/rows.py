"""The inputs that are measured: those of PyTorch's pull request 179756, and those that it leaves out.

Its table has four shapes, two interpolations, two dtypes and two layouts of ``input``; ``grad_output`` is contiguous
there, as the forward pass returns it, and sampling positions are random. Smooth grids, as warps and flows make them,
``grad_output`` in channels last, few channels, the many small levels of deformable attention, and all samples on one
pixel are what a kernel made for that table alone could lose on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import torch
from torch import Tensor

PR_SHAPES = ((1, 32, 64, 64), (1, 16, 256, 256), (8, 64, 128, 128), (16, 128, 256, 256))
# (N, C, H, W) and output size: one level of deformable attention, heads in the batch.
ATTENTION_SHAPES = (
    ((16, 32, 64, 64), (1024, 4)),
    ((64, 32, 16, 16), (900, 4)),
    ((16, 64, 32, 32), (1024, 4)),
    ((8, 256, 32, 32), (1024, 4)),
)
FEW_CHANNELS_SHAPES = ((8, 1, 512, 512), (8, 3, 512, 512), (4, 4, 512, 512), (4, 8, 512, 512), (4, 12, 512, 512))
SHAPES_3D = ((1, 32, 16, 32, 32), (1, 16, 32, 64, 64), (4, 64, 16, 64, 64), (4, 128, 32, 96, 96))
TABLE_CHANNELS = (1, 2, 4, 5, 8, 12, 13, 16, 24, 32, 33, 48, 64, 96, 128, 256, 512)
LAYOUTS = ("contiguous", "input channels_last", "both channels_last")
PR_GROUP = "PR 179756"

_INTERPOLATIONS = ("bilinear", "nearest", "bicubic")
_DTYPES = (torch.float32, torch.float16)
_SMOOTH = ("bilinear", "bicubic")

Noise = Callable[..., Tensor]


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        group: what it belongs to: ``PR 179756``, ``grad_output channels_last``, ...
        shape: (N, C, H, W) or (N, C, D, H, W) of the input.
        output: (Ho, Wo) or (Do, Ho, Wo).
        interpolation: name.
        dtype: of all tensors.
        layout: one of ``LAYOUTS``.
        grid: ``random`` (normal), ``uniform`` in the image, ``affine``, ``shear``, ``rotation``, ``zoom in``, ``zoom
            out``, ``identity``, ``flow``, ``one pixel`` or ``attention``.
    """

    group: str
    shape: tuple[int, ...]
    output: tuple[int, ...]
    interpolation: str
    dtype: torch.dtype
    layout: str
    grid: str

    @property
    def label(self) -> str:
        """For tables."""
        return f"{self.interpolation} {self.dtype_name} {self.shape} {self.layout}, {self.grid}"

    @property
    def dtype_name(self) -> str:
        """Without the module."""
        return str(self.dtype).removeprefix("torch.")

    @property
    def dimensions(self) -> int:
        """2 or 3."""
        return len(self.output)

    @property
    def op(self) -> str:
        """Aten name of what is measured."""
        return f"grid_sampler_{self.dimensions}d_backward"

    @property
    def modes(self) -> tuple[int, int, bool]:
        """The op's arguments after the tensors: as in the pull request, zeros padding and ``align_corners``."""
        return _INTERPOLATIONS.index(self.interpolation), 0, True

    def tensors(self, device: str) -> tuple[Tensor, Tensor, Tensor]:
        """``grad_output`` (N, C, *output), ``input`` (N, C, *sizes) and ``grid`` (N, *output, dimensions).

        Args:
            device: where they are made; the values differ from device to device.
        """
        torch.manual_seed(0)
        images, channels = self.shape[:2]
        inputs = torch.randn(self.shape, device=device, dtype=self.dtype)
        grad_output = torch.randn((images, channels, *self.output), device=device, dtype=self.dtype)
        last = torch.channels_last if self.dimensions == 2 else torch.channels_last_3d
        if self.layout != LAYOUTS[0]:
            inputs = inputs.contiguous(memory_format=last)
        if self.layout == LAYOUTS[2]:
            grad_output = grad_output.contiguous(memory_format=last)
        return grad_output, inputs, make_grid(self.grid, images, self.output, device).to(self.dtype)


def necessary_bytes(row: Row) -> int:
    """What any kernel must read and write: ``grad_output``, ``grid`` and its gradient, ``input`` unless nothing depends
    on it, and ``grad_input`` twice, since it is zeroed before it is added to."""
    images, channels = row.shape[:2]
    positions = images * torch.Size(row.output).numel()
    pixels = torch.Size(row.shape).numel()
    elements = positions * (channels + 2 * row.dimensions) + pixels * (2 if row.interpolation == "nearest" else 3)
    return elements * row.dtype.itemsize


def make_grid(kind: str, images: int, output: Sequence[int], device: str, noise: Noise = torch.randn) -> Tensor:
    """Sampling positions (images, ..., width, dimensions) in float; ``noise`` draws from a normal distribution."""
    dimensions = len(output)
    size = (images, *output, dimensions)
    if kind == "random":
        return noise(size, device=device)
    if kind == "one pixel":
        return torch.full(size, 0.13, device=device)
    if kind == "attention":
        centers = torch.rand((images, output[0], 1, 2), device=device) * 2 - 1
        return centers + 0.1 * noise(size, device=device)
    if kind == "uniform":
        return torch.rand(size, device=device) * 2 - 1
    theta = torch.eye(dimensions, dimensions + 1)
    if kind == "affine":
        theta[0, 1], theta[1, 0], theta[0, -1], theta[1, -1] = 0.1, -0.1, 0.02, 0.01
    if kind == "shear":
        theta[0, 1] = 0.05
    if kind == "rotation":
        theta[0, 1], theta[1, 0] = -0.3, 0.3
    if kind.startswith("zoom"):
        theta *= {"zoom in": 0.5, "zoom out": 2.0}[kind]
    theta = theta.to(device).expand(images, dimensions, dimensions + 1)
    grid = torch.nn.functional.affine_grid(theta, [images, 1, *output], align_corners=True)
    return grid + 0.5 / output[-1] * noise(size, device=device) if kind == "flow" else grid


def _row(group: str, shape: tuple[int, ...], interpolation: str, dtype: torch.dtype, *rest: str) -> Row:
    return Row(group, shape, shape[2:], interpolation, dtype, *rest)


def pr_rows() -> list[Row]:
    """The 32 rows of the pull request, in its order."""
    return [
        _row(PR_GROUP, shape, interpolation, dtype, layout, "random")
        for interpolation in _SMOOTH
        for dtype in _DTYPES
        for layout in LAYOUTS[:2]
        for shape in PR_SHAPES
    ]


def other_rows() -> list[Row]:
    """What the pull request's table leaves out."""
    rows = [
        _row("grad_output channels_last", shape, interpolation, dtype, LAYOUTS[2], "random")
        for interpolation in _SMOOTH
        for dtype in _DTYPES
        for shape in PR_SHAPES
    ]
    rows += [
        _row("smooth grids", shape, interpolation, dtype, layout, grid)
        for interpolation in _SMOOTH
        for grid in ("affine", "flow")
        for dtype in _DTYPES
        for layout in (LAYOUTS[0], LAYOUTS[2])
        for shape in PR_SHAPES
    ]
    rows += [
        _row("nearest", shape, "nearest", dtype, layout, grid)
        for grid in ("random", "affine")
        for dtype in _DTYPES
        for layout in (LAYOUTS[0], LAYOUTS[2])
        for shape in PR_SHAPES
    ]
    rows += [
        Row("deformable attention", shape, output, "bilinear", dtype, LAYOUTS[0], "attention")
        for dtype in _DTYPES
        for shape, output in ATTENTION_SHAPES
    ]
    rows += [
        _row("few channels", shape, interpolation, dtype, LAYOUTS[0], grid)
        for interpolation in _SMOOTH
        for grid in ("random", "affine")
        for dtype in _DTYPES
        for shape in FEW_CHANNELS_SHAPES
    ]
    rows += [
        _row("one pixel", shape, interpolation, dtype, LAYOUTS[0], "one pixel")
        for interpolation in _SMOOTH
        for dtype in _DTYPES
        for shape in PR_SHAPES
    ]
    return rows + rows_3d()


def rows_3d() -> list[Row]:
    """``grid_sampler_3d_backward``, which upstream's table does not have."""
    return [
        _row("3D", shape, interpolation, dtype, layout, grid)
        for interpolation in ("bilinear", "nearest")
        for grid in ("random", "affine")
        for dtype in _DTYPES
        for layout in (LAYOUTS[0], LAYOUTS[2])
        for shape in SHAPES_3D
    ]


def all_rows() -> list[Row]:
    """The whole table."""
    return pr_rows() + other_rows()


def wide_rows() -> list[Row]:
    """The table of the fast backward: grids of every kind, all layouts and dtypes, 1 to 512 channels."""
    float32, float16, bfloat16 = torch.float32, torch.float16, torch.bfloat16
    both = (LAYOUTS[0], LAYOUTS[2])
    small, narrow, medium, large = PR_SHAPES
    rows = [*pr_rows(), *(replace(row, grid="uniform", group="PR 179756, uniform") for row in pr_rows())]

    def add(group: str, interpolation: str, *choices: Sequence[Any]) -> None:
        for shape, dtype, layout, grid in product(*choices):
            rows.append(_row(group, shape, interpolation, dtype, layout, grid))

    grids = ("affine", "shear", "rotation", "identity", "zoom in", "zoom out", "flow")
    add("bilinear by grid", "bilinear", (medium, large), _DTYPES, LAYOUTS, ("uniform", *grids))
    add("bilinear by grid", "bilinear", (medium, large), (bfloat16,), LAYOUTS, ("uniform", "shear"))
    add("bicubic by grid", "bicubic", (medium, large), _DTYPES, LAYOUTS, ("shear", "rotation", "identity", "flow"))
    for interpolation in _SMOOTH:
        add(
            f"small, {interpolation}",
            interpolation,
            (small, narrow),
            _DTYPES,
            LAYOUTS,
            ("shear", "identity", "zoom out"),
        )
        add("one pixel", interpolation, PR_SHAPES, _DTYPES, LAYOUTS[:1], ("one pixel",))
        sizes = tuple((4, channels, 128, 128) for channels in TABLE_CHANNELS)
        add(f"channels, {interpolation}", interpolation, sizes, (float32,), both, ("uniform", "shear"))
    add(
        "channels, bilinear",
        "bilinear",
        tuple((4, n, 128, 128) for n in TABLE_CHANNELS),
        (float16,),
        both[:1],
        ("shear",),
    )
    add("3D", "bilinear", SHAPES_3D, _DTYPES, both, ("uniform", "shear", "identity"))
    add("3D", "bilinear", SHAPES_3D[2:3], (bfloat16,), both, ("uniform", "shear"))
    add("nearest", "nearest", (medium, large), _DTYPES, both, ("uniform", "identity"))
    rows += [
        Row("deformable attention", shape, output, "bilinear", dtype, layout, "attention")
        for shape, output in ATTENTION_SHAPES
        for dtype in (float32, float16, bfloat16)
        for layout in both
    ]
    return rows


def quick_rows() -> list[Row]:
    """One row of each kind, for a first look: the smallest shapes, float, and one in half."""
    small, small_3d, few = PR_SHAPES[0], SHAPES_3D[0], FEW_CHANNELS_SHAPES[1]
    return [
        _row(PR_GROUP, small, "bilinear", torch.float32, LAYOUTS[0], "random"),
        _row(PR_GROUP, small, "bilinear", torch.float16, LAYOUTS[0], "random"),
        _row(PR_GROUP, small, "bicubic", torch.float32, LAYOUTS[1], "random"),
        _row("grad_output channels_last", small, "bilinear", torch.float32, LAYOUTS[2], "random"),
        _row("smooth grids", small, "bilinear", torch.float32, LAYOUTS[2], "affine"),
        _row("nearest", small, "nearest", torch.float32, LAYOUTS[0], "random"),
        _row("few channels", few, "bilinear", torch.float32, LAYOUTS[0], "affine"),
        _row("one pixel", small, "bilinear", torch.float32, LAYOUTS[0], "one pixel"),
        _row("3D", small_3d, "bilinear", torch.float32, LAYOUTS[0], "random"),
        _row("3D", small_3d, "nearest", torch.float32, LAYOUTS[0], "random"),
    ]
