"""Checks the kernels on a device, every mode, dtype and division of the work, against float64 and the change below.

Against float64 with ordinary coordinates; against the change below also with coordinates that are not finite, enormous,
or on the borders between pixels, where float and float64 may well choose different pixels, but two kernels with the
same taps may not.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

from stackproof.ops.grid_sampler.bench.passes import Kernels
from stackproof.ops.grid_sampler.families.model import params_layout
from stackproof.ops.grid_sampler.families.series import SeriesBackward, backward_params, kernel_name
from stackproof.ops.grid_sampler.fast.division import FEW_CHANNELS, Division, divisions
from stackproof.ops.grid_sampler.fast.launches import Layouts, Planner
from stackproof.ops.grid_sampler.fast.passes import Case, pass_of
from stackproof.ops.grid_sampler.modes import Sampler

# Relative to the largest value: of float against float64, and of two orders of float sums; half and bfloat round once.
ALLOWED = {torch.float32: 2e-5, torch.float16: 1e-3, torch.bfloat16: 8e-3}
SHAPES = (
    ((2, 3, 7, 9), (6, 11)),
    ((1, 37, 8, 5), (9, 10)),
    ((2, 128, 16, 16), (8, 24)),
    ((1, 8, 1, 6), (33, 3)),
    ((3, 5, 3, 3), (16, 8)),
    ((2, 37, 4, 5, 6), (3, 5, 7)),
    ((1, 64, 3, 8, 8), (4, 4, 9)),
    ((2, 3, 3, 3, 3), (8, 4, 4)),
)
GRIDS = ("random", "special", "smooth")
_SPECIAL = (
    *(float("nan"), float("inf"), -float("inf"), 1e30, -1e30, 3e38, 1e5, -1e5),
    *(-1.0, 1.0, 0.0, 0.5, -0.5, 1.5, -1.5, 2.0),
)
BELOW, FLOAT64 = "the change below", "float64"


@dataclass
class Checked:
    """What a matrix showed.

    Attributes:
        comparisons: how many passes were compared with something.
        worst: the largest error of either gradient, by dtype and what it was compared with.
        findings: one sentence for each pass outside of what is allowed.
    """

    comparisons: int = 0
    worst: dict[str, float] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)


def cases(device: str, every: int, dtypes: Iterable[torch.dtype]) -> Iterator[tuple[str, bool, Case]]:
    """Every mode: what it is, whether all coordinates are ordinary, and the case."""
    layouts = (False, True)
    modes = itertools.product((mode for mode in Sampler(2).modes), dtypes, SHAPES, layouts, GRIDS)
    for number, (mode, dtype, shape, last, kind) in enumerate(modes):
        size, output = shape
        if number % every or mode.interpolation not in Sampler(len(output)).interpolations:
            continue
        torch.manual_seed(number)
        inputs = torch.randn(size, device=device).to(dtype)
        grad_output = torch.randn((*size[:2], *output), device=device).to(dtype)
        if last:
            memory_format = torch.channels_last if len(output) == 2 else torch.channels_last_3d
            inputs = inputs.contiguous(memory_format=memory_format)
            grad_output = grad_output.contiguous(memory_format=memory_format)
        names = mode.interpolation.name.lower(), mode.padding.name.lower()
        grid = _grid(kind, size[0], output, device).to(dtype)
        layout = "channels_last" if last else "contiguous"
        yield (
            f"{mode}, {dtype}, {size}, {layout}, {kind}",
            kind != "special",
            Case(grad_output, inputs, grid, *names, mode.align_corners),
        )


def _grid(kind: str, images: int, output: tuple[int, ...], device: str) -> Tensor:
    if kind == "smooth":
        theta = torch.eye(len(output), len(output) + 1).expand(images, -1, -1)
        grid = torch.nn.functional.affine_grid(theta, [images, 1, *output], align_corners=True).to(device)
        return grid * 1.2 + 0.013
    grid = torch.randn((images, *output, len(output)), device=device)
    if kind == "special":
        values = torch.tensor(_SPECIAL, device=device)
        chosen = values[torch.randint(len(_SPECIAL), grid.shape, device=device)]
        grid = torch.where(torch.rand(grid.shape, device=device) < 0.3, chosen, grid)
    return grid


def runs(stack: Kernels, case: Case) -> Iterator[tuple[str, tuple[Tensor, Tensor]]]:
    """Both gradients by each division of the work."""
    planners: list[tuple[str, Planner, Division]] = []
    layouts = _layouts(stack)
    for division in divisions() if case.mode.interpolation in FEW_CHANNELS else ():
        if division.staged or case.grad_output.stride(1) == 1:
            planners.append((division.label, Planner(layouts), division))
    if planners:  # contiguous nearest in float is left to the tree's kernels
        label, _, division = planners[-1]
        planners.append((f"{label}, launches of 128", Planner(layouts, threads_per_launch=128), division))
    for label, planner, division in planners:
        yield label, pass_of(stack.library, planner.plan(case.tensors, case.mode, division))()


def _layouts(kernels: Kernels) -> Layouts:
    return lambda name, *arguments: params_layout(kernels.headers, name, *arguments)


def run_below(below: Kernels, case: Case) -> tuple[Tensor, Tensor]:
    """The kernel of the change below: a thread per position, in float."""
    tensors, mode = case.tensors, case.mode
    sums = torch.zeros(case.input.shape, dtype=torch.float32, device=case.input.device)
    grad_grid = torch.full_like(case.grid, torch.nan)
    name = kernel_name(Sampler(case.dimensions).backward, mode, case.input.dtype, wide=False)
    layout = SeriesBackward().layout(below.headers, case.dimensions, wide=False)
    params = layout.pack(backward_params(tensors, mode, sums, 0))
    positions = tensors.positions
    buffers = (sums, grad_grid, case.grad_output, case.input, case.grid, params)
    below.library.kernel(name)(*buffers, threads=(positions,), group_size=(min(positions, 256),))
    return sums.to(case.input.dtype), grad_grid


def difference(found: Tensor, right: Tensor) -> float:
    """The largest one, relative to the largest right value that is finite; NaN and infinity must be in their places."""
    found, right = found.double(), right.double()
    same = (found == right) | (found.isnan() & right.isnan())
    scale = float(right.nan_to_num(0.0, 0.0, 0.0).abs().max()) if right.numel() else 0.0
    apart = torch.where(same, 0.0, (found - right).abs()).nan_to_num(torch.inf, torch.inf, torch.inf)
    return float(apart.max()) / (scale or 1.0)


def check(
    stack: Kernels,
    below: Kernels | None,
    device: str,
    *,
    every: int = 1,
    dtypes: Iterable[torch.dtype] = tuple(ALLOWED),
) -> Checked:
    """Run the matrix, or each n-th case of it.

    Args:
        stack: kernels of the fast backward.
        below: those of the change below, if they are to be compared with.
        device: of the tensors.
        every: take each n-th case only.
        dtypes: of the tensors.
    """
    checked = Checked()
    for name, ordinary, case in cases(device, every, tuple(dtypes)):
        references = {BELOW: run_below(below, case)} if below else {}
        # The float64 kernel's own grad_grid jumps where a coordinate rounds to another pixel.
        if ordinary:
            references[FLOAT64] = case.reference(torch.float64)
        for label, found in runs(stack, case):
            for kind, right in references.items():
                error = max(difference(found[0], right[0]), difference(found[1], right[1]))
                checked.comparisons += 1
                row = f"{str(case.input.dtype)[6:]} against {kind}"
                checked.worst[row] = max(checked.worst.get(row, 0.0), error)
                if not error <= ALLOWED[case.input.dtype]:
                    checked.findings.append(f"{name}, {label}: {error:.2g} from {kind}")
    return checked
