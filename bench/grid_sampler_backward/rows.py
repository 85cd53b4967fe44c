"""The inputs that are measured: those of PyTorch's pull request 179756, and those that it leaves out.

Its table has four shapes, two interpolations, two dtypes and two layouts of ``input``; ``grad_output`` is contiguous
there, as the forward pass returns it, and sampling positions are random. Smooth grids, as warps and flows make them,
``grad_output`` in channels last, few channels, the many small levels of deformable attention, and all samples on one
pixel are what a kernel made for that table alone could lose on.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from candidates import Case
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
LAYOUTS = ("contiguous", "input channels_last", "both channels_last")


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        group: what it belongs to: ``PR 179756``, ``channels_last grad_output``, ...
        shape: (N, C, H, W) or (N, C, D, H, W) of the input.
        output: (Ho, Wo) or (Do, Ho, Wo).
        interpolation: name.
        dtype: of all tensors.
        layout: one of ``LAYOUTS``.
        grid: ``random``, ``affine``, ``flow``, ``one pixel`` or ``attention``.
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
        dtype = str(self.dtype).removeprefix("torch.")
        return f"{self.interpolation} {dtype} {self.shape} {self.layout}, {self.grid}"

    def case(self, device: str, seed: int = 0) -> Case:
        """Its tensors, from ``seed``."""
        torch.manual_seed(seed)
        images, channels = self.shape[:2]
        inputs = torch.randn(self.shape, device=device, dtype=self.dtype)
        grad_output = torch.randn((images, channels, *self.output), device=device, dtype=self.dtype)
        last = torch.channels_last if len(self.shape) == 4 else torch.channels_last_3d
        if self.layout != LAYOUTS[0]:
            inputs = inputs.contiguous(memory_format=last)
        if self.layout == LAYOUTS[2]:
            grad_output = grad_output.contiguous(memory_format=last)
        grid = make_grid(self.grid, images, self.output, device).to(self.dtype)
        return Case(grad_output, inputs, grid, self.interpolation)


def make_grid(kind: str, images: int, output: tuple[int, ...], device: str) -> Tensor:
    """Sampling positions (images, ..., width, dimensions) in float."""
    dimensions = len(output)
    size = (images, *output, dimensions)
    if kind == "random":
        return torch.randn(size, device=device)
    if kind == "one pixel":
        return torch.full(size, 0.13, device=device)
    if kind == "attention":
        centers = torch.rand((images, output[0], 1, 2), device=device) * 2 - 1
        return centers + 0.1 * torch.randn(size, device=device)
    theta = torch.eye(dimensions, dimensions + 1)
    if kind == "affine":
        theta[0, 1], theta[1, 0], theta[0, -1], theta[1, -1] = 0.1, -0.1, 0.02, 0.01
    theta = theta.to(device).expand(images, dimensions, dimensions + 1)
    grid = torch.nn.functional.affine_grid(theta, [images, 1, *output], align_corners=True)
    return grid + 0.5 / output[-1] * torch.randn(size, device=device) if kind == "flow" else grid


def _row(group: str, shape: tuple[int, ...], interpolation: str, dtype: torch.dtype, *rest: str) -> Row:
    return Row(group, shape, shape[2:], interpolation, dtype, *rest)


def pr_rows() -> list[Row]:
    """The 32 rows of the pull request, in its order."""
    return [
        _row("PR 179756", shape, interpolation, dtype, layout, "random")
        for interpolation in ("bilinear", "bicubic")
        for dtype in (torch.float32, torch.float16)
        for layout in LAYOUTS[:2]
        for shape in PR_SHAPES
    ]


def other_rows() -> list[Row]:
    """What the pull request's table leaves out."""
    dtypes = (torch.float32, torch.float16)
    interpolations = ("bilinear", "bicubic")
    rows = [
        _row("grad_output channels_last", shape, interpolation, dtype, LAYOUTS[2], "random")
        for interpolation in interpolations
        for dtype in dtypes
        for shape in PR_SHAPES
    ]
    rows += [
        _row("smooth grids", shape, interpolation, dtype, layout, grid)
        for interpolation in interpolations
        for grid in ("affine", "flow")
        for dtype in dtypes
        for layout in (LAYOUTS[0], LAYOUTS[2])
        for shape in PR_SHAPES
    ]
    rows += [
        _row("nearest", shape, "nearest", dtype, layout, grid)
        for grid in ("random", "affine")
        for dtype in dtypes
        for layout in (LAYOUTS[0], LAYOUTS[2])
        for shape in PR_SHAPES
    ]
    rows += [
        Row("deformable attention", shape, output, "bilinear", dtype, LAYOUTS[0], "attention")
        for dtype in dtypes
        for shape, output in ATTENTION_SHAPES
    ]
    rows += [
        _row("few channels", shape, interpolation, dtype, LAYOUTS[0], grid)
        for interpolation in interpolations
        for grid in ("random", "affine")
        for dtype in dtypes
        for shape in FEW_CHANNELS_SHAPES
    ]
    rows += [
        _row("one pixel", shape, interpolation, dtype, LAYOUTS[0], "one pixel")
        for interpolation in interpolations
        for dtype in dtypes
        for shape in PR_SHAPES
    ]
    return rows + rows_3d()


def rows_3d() -> list[Row]:
    """grid_sampler_3d_backward, which upstream's table does not have."""
    return [
        _row("3D", shape, interpolation, dtype, layout, grid)
        for interpolation in ("bilinear", "nearest")
        for grid in ("random", "affine")
        for dtype in (torch.float32, torch.float16)
        for layout in (LAYOUTS[0], LAYOUTS[2])
        for shape in SHAPES_3D
    ]
