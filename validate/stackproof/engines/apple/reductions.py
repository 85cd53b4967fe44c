"""Reductions of a simdgroup compared as the operators are: ``c10/metal/reduction_utils.h`` compiled by both.

The release's ``NAME_reduction_inner_T_O`` kernels give a row of the input to each simdgroup. With rows of 32 elements
the probe is one call of the header's function, whose 64-bit forms are made of shuffles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from patchstack.errors import PatchstackError
from stackproof.engines.apple.build import library_kernels
from stackproof.engines.apple.container import Metallib
from stackproof.engines.apple.fidelity import DTYPES, Fidelity, distances
from stackproof.engines.metal import RunMode
from stackproof.engines.metal.library import compile_written

_LANES, _ROWS = 32, 64


@dataclass(frozen=True)
class Reduction:
    """A reduction kernel: name, operand and result type, and the type that its values are combined in."""

    name: str
    operand: str
    result: str
    combined: str

    @property
    def kernel(self) -> str:
        """Name of Apple's kernel, and of the probe."""
        return f"{self.name}_reduction_inner_{self.operand}_{self.result}"


REDUCTIONS: tuple[Reduction, ...] = (
    *(Reduction("sum", type_, type_, "float") for type_ in ("float", "half", "bfloat")),
    *(Reduction("sum", type_, "long", "long") for type_ in ("int", "long", "short", "uchar", "char")),
    *(Reduction("sum", type_, type_, "int") for type_ in ("int",)),
    *(Reduction(name, type_, type_, "float") for name in ("max", "min") for type_ in ("float", "half", "bfloat")),
    *(Reduction(name, type_, type_, type_) for name in ("max", "min") for type_ in ("int", "long", "short", "uchar")),
)


def compare_reductions(apple: Metallib, include_dirs: Sequence[Path], cache: Path) -> list[Fidelity]:
    """Compare every reduction that the release has a kernel for; see ``fidelity.compare_operators``."""
    known = [one for one in REDUCTIONS if one.kernel in apple.by_name]
    if not known:
        return []
    theirs = library_kernels(apple, [one.kernel for one in known], RunMode.PLAIN, cache)
    try:
        ours = compile_written(_probe(known), "probe.metal", include_dirs, cache=cache)
    except PatchstackError as error:
        return [_row(one, problem=str(error)) for one in known]
    rows = []
    for one in known:
        values = _values(one)
        mine, apples = (torch.zeros(_ROWS, dtype=DTYPES[one.result]) for _ in range(2))
        ours.kernel(one.kernel)(values, mine, threads=_ROWS * _LANES, group_size=_LANES)
        kernel = theirs.kernel(one.kernel)
        # Some sums also take what they divide by.
        more = [1] * (len(kernel.signature.buffers) - 3)
        kernel(values, apples, [_ROWS, _LANES], *more, threads=_ROWS * _LANES, group_size=_LANES)
        distance = distances(mine, apples)
        worst = int(distance.argmax())
        example = f"row {worst} gives {mine[worst].item()!r} here and {apples[worst].item()!r} by Apple's"
        far = float(distance[worst])
        rows.append(_row(one, far, int((distance > 0).sum()), example if far else ""))
    return rows


def _row(one: Reduction, distance: float = 0.0, differing: int = 0, example: str = "", problem: str = "") -> Fidelity:
    return Fidelity(f"{one.name} of a simdgroup", one.result, one.operand, distance, 0.0, differing, example, problem)


def _probe(reductions: Sequence[Reduction]) -> str:
    lines = ["#include <metal_stdlib>", "#include <c10/metal/reduction_utils.h>"]
    lines += [
        f"kernel void {one.kernel}(device const {one.operand}* in, device {one.result}* out,"
        " uint i [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {\n"
        f"  const auto total = ::c10::metal::simd_{one.name}(static_cast<{one.combined}>(in[i]));\n"
        f"  if (lane == 0) out[i / 32] = static_cast<{one.result}>(total);\n}}"
        for one in reductions
    ]
    return "\n".join(lines) + "\n"


def _values(one: Reduction) -> torch.Tensor:
    """Rows whose sums stay exact in every order, so that only a wrong lane can make a difference."""
    source = torch.Generator().manual_seed(17)
    dtype = DTYPES[one.operand]
    low = 0 if dtype is torch.uint8 else -7
    return torch.randint(low, 8, (_ROWS, _LANES), generator=source).to(dtype)
