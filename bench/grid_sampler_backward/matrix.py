"""Checks the candidates on the GPU, every mode and dtype, against float64 and against change 1's kernel.

    python matrix.py BUILD_FOLDER [--every N] [--json FILE]

Against float64 with ordinary coordinates; against change 1 also with coordinates that are not finite, enormous, or on
the borders between pixels, where float and float64 may well choose different pixels, but two kernels with the same
taps may not. Runs under compute-sanitizer too: it is short.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from candidates import Case, Library, Pass, backward, change_one
from instances import INTERPOLATIONS, PADDINGS, Spread, turn_for
from loading import load_libraries
from torch import Tensor
from variants import CHECKED

# Relative to the largest value: of float against float64, and of two orders of float sums; half and bfloat round once.
ALLOWED = {torch.float32: 2e-5, torch.float16: 1e-3, torch.bfloat16: 8e-3}
SHAPES = (
    ((2, 3, 7, 9), (6, 11)),
    ((1, 37, 8, 5), (9, 10)),
    ((2, 128, 16, 16), (8, 24)),
    ((1, 8, 1, 6), (33, 3)),
    ((2, 37, 4, 5, 6), (3, 5, 7)),
    ((1, 64, 3, 8, 8), (4, 4, 9)),
)
_SPECIAL = (
    *(float("nan"), float("inf"), -float("inf"), 1e30, -1e30, 3e38, 1e5, -1e5),
    *(-1.0, 1.0, 0.0, 0.5, -0.5, 1.5, -1.5, 2.0),
)


@dataclass(frozen=True)
class Finding:
    """A case outside of what is allowed."""

    case: str
    variant: str
    compared_with: str
    errors: tuple[float, float]


@dataclass(frozen=True)
class Worst:
    """The largest error seen, by what it was compared with."""

    dtype: str
    compared_with: str
    grad_input: float
    grad_grid: float
    comparisons: int


def cases(device: str, every: int, dtypes: Iterable[torch.dtype]) -> Iterator[tuple[str, bool, Case]]:
    """Every mode: what it is, whether all coordinates are ordinary, and the case."""
    modes = itertools.product(INTERPOLATIONS, PADDINGS, (False, True), dtypes, SHAPES, (False, True), (False, True))
    for number, (interpolation, padding, align, dtype, shape, last, special) in enumerate(modes):
        # Three dimensions have no bicubic, and no kernel of change 1 to compare special coordinates with.
        if number % every or (len(shape[1]) == 3 and (interpolation == "bicubic" or special)):
            continue
        torch.manual_seed(number)
        size, output = shape
        inputs = torch.randn(size, device=device).to(dtype)
        grad_output = torch.randn((*size[:2], *output), device=device).to(dtype)
        grid = torch.randn((size[0], *output, len(output)), device=device)
        if special:
            values = torch.tensor(_SPECIAL, device=device)
            chosen = values[torch.randint(len(_SPECIAL), grid.shape, device=device)]
            grid = torch.where(torch.rand(grid.shape, device=device) < 0.3, chosen, grid)
        if last:
            memory_format = torch.channels_last if len(output) == 2 else torch.channels_last_3d
            inputs = inputs.contiguous(memory_format=memory_format)
            grad_output = grad_output.contiguous(memory_format=memory_format)
        case = Case(grad_output, inputs, grid.to(dtype), interpolation, padding, align)
        name = f"{interpolation} {padding} align_corners={align} {str(dtype)[6:]} {shape}"
        yield f"{name}{' channels_last' if last else ''}{' special' if special else ''}", not special, case


def passes(library: Library, case: Case) -> Iterator[tuple[str, Pass]]:
    """The candidates that are checked."""
    turn = turn_for(case.input.shape[1])
    has_whole = case.dimensions == 2 or case.interpolation == "nearest"
    for spread in (*((Spread(0, 4),) if has_whole else ()), *CHECKED):
        yield spread.suffix, backward(library, case, spread, turn)


def difference(found: Tensor, right: Tensor) -> float:
    """The largest one, relative to the largest right value that is finite; NaN and infinity must be in their places."""
    found, right = found.double(), right.double()
    same = (found == right) | (found.isnan() & right.isnan())
    scale = float(right.nan_to_num(0.0, 0.0, 0.0).abs().max()) if right.numel() else 0.0
    apart = torch.where(same, 0.0, (found - right).abs()).nan_to_num(torch.inf, torch.inf, torch.inf)
    return float(apart.max()) / (scale or 1.0)


def check(
    library: Library, device: str, *, every: int = 1, dtypes: Iterable[torch.dtype] = tuple(ALLOWED)
) -> tuple[list[Finding], list[Worst]]:
    """Run the matrix, or each n-th case of it."""
    findings: list[Finding] = []
    worst: dict[tuple[str, str], list[float]] = {}
    for name, ordinary, case in cases(device, every, dtypes):
        references = {"change 1": change_one(library, case)()} if case.dimensions == 2 else {}
        # The float64 kernel's own grad_grid jumps where a coordinate rounds to another pixel: rare, not with bfloat.
        if ordinary:
            references["float64"] = case.reference(torch.float64)
        for variant, work in passes(library, case):
            found = work()
            for kind, right in references.items():
                errors = difference(found[0], right[0]), difference(found[1], right[1])
                row = worst.setdefault((str(case.input.dtype)[6:], kind), [0.0, 0.0, 0])
                row[:] = [max(row[0], errors[0]), max(row[1], errors[1]), row[2] + 1]
                if max(errors) > ALLOWED[case.input.dtype]:
                    findings.append(Finding(name, variant, kind, errors))
    return findings, [Worst(*key, row[0], row[1], int(row[2])) for key, row in worst.items()]


def main() -> int:
    """Command line; 0 if all is within what is allowed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=Path)
    parser.add_argument("--every", type=int, default=1, help="take each n-th case only")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    library = load_libraries(arguments.build, "matrix_*", "change1")
    findings, worst = check(library, "cuda", every=arguments.every)
    for row in worst:
        print(f"{row.dtype} against {row.compared_with}: {row.grad_input:.1e} {row.grad_grid:.1e} in {row.comparisons}")
    for finding in findings[:40]:
        print("OUTSIDE", *asdict(finding).values())
    print(f"{len(findings)} findings")
    if arguments.json:
        arguments.json.write_text(json.dumps({"worst": list(map(asdict, worst)), "findings": len(findings)}, indent=1))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
