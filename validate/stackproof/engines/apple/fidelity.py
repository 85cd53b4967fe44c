"""How near our Metal headers are to Apple's: the same function, compiled by both, on the same values.

Apple's side is a kernel of the wheel; ours is a probe kernel that includes the ``c10/metal`` headers of the same
release and is compiled through our ``metal_stdlib``. Both run here, so that a difference is one of headers, overloads
and promotions, not of a processor. What a function of Metal's own library returns in the last places is the host's libm
on both sides.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from patchstack.errors import PatchstackError
from stackproof.engines.apple.build import library_kernels
from stackproof.engines.apple.container import Metallib
from stackproof.engines.apple.operators import Operator
from stackproof.engines.metal import MetalLibrary, RunMode
from stackproof.engines.metal.library import compile_written

DTYPES: Mapping[str, torch.dtype] = {
    "float": torch.float32, "half": torch.float16, "bfloat": torch.bfloat16, "bool": torch.bool, "char": torch.int8,
    "uchar": torch.uint8, "short": torch.int16, "int": torch.int32, "long": torch.int64,
}  # fmt: skip
# Two compilations may contract differently; integers, and what is rounded to 16 bits, leave no room.
ALLOWED_FLOAT_ULPS = 4
_COUNT = 512
_SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, float("inf"), float("-inf"), float("nan"))
_HEADERS = ("special_math", "utils", "igamma", "expm1f")
_FLOATS = ("float", "half", "bfloat")
_ORDERED = {torch.float32: torch.int32, torch.float16: torch.int16, torch.bfloat16: torch.int16}


@dataclass(frozen=True)
class Fidelity:
    """One operator for one pair of types.

    Attributes:
        operator: its name.
        result: Metal name of the result's type.
        operand: of the operands'.
        distance: the largest, in units in the last place of a float result, in absolute value of an integer one.
        allowed: how much of that is explained.
        differing: values for which anything differs.
        example: operands and both results at the largest distance; empty where all are equal.
        problem: why it was not compared.
        reason: what explains the distance.
    """

    operator: str
    result: str
    operand: str
    distance: float = 0.0
    allowed: float = 0.0
    differing: int = 0
    example: str = ""
    problem: str = ""
    reason: str = ""

    @property
    def fails(self) -> bool:
        """Whether it is too far off, or could not be compared although there is a kernel for it."""
        return bool(self.problem) or self.distance > self.allowed


def kernel_name(operator: Operator, result: str, operand: str) -> str:
    """Of Apple's kernel, and of the probe."""
    return f"{operator.name}_dense_{result}_{operand}"


def probe_source(cases: Sequence[tuple[Operator, str, str]]) -> str:
    """A Metal source with a kernel for each case."""
    lines = ["#include <metal_stdlib>", *(f"#include <c10/metal/{name}.h>" for name in _HEADERS)]
    for operator, result, operand in cases:
        second = f", device const {operand}* in2 [[buffer(2)]]" if operator.binary else ""
        number = operand if operand in _FLOATS else "float"
        other = f"  const {operand} y = in2[i]; const {number} arg2 = {number}(y); const float wide2 = float(y);\n"
        lines.append(
            f"kernel void {kernel_name(operator, result, operand)}(device {result}* out [[buffer(0)]], "
            f"device const {operand}* in [[buffer(1)]]{second}, uint i [[thread_position_in_grid]]) {{\n"
            f"  const {operand} x = in[i]; const {number} arg = {number}(x); const float wide = float(x);\n"
            f"{other if operator.binary else ''}"
            f"  out[i] = static_cast<{result}>({operator.expression});\n}}"
        )
    return "\n".join(lines) + "\n"


def compare_operators(
    operators: Sequence[Operator], apple: Metallib, include_dirs: Sequence[Path], cache: Path
) -> list[Fidelity]:
    """Compare every operator in every type that the release has a kernel for.

    Args:
        operators: some of :data:`stackproof.engines.apple.operators.OPERATORS`.
        apple: kernels of a release.
        include_dirs: with the ``c10/metal`` headers of the same release.
        cache: for compiled kernels.
    """
    cases = [
        (one, result, operand)
        for one in operators
        for result, operand in one.types
        if kernel_name(one, result, operand) in apple.by_name
    ]
    if not cases:
        return []
    theirs = library_kernels(apple, [kernel_name(*case) for case in cases], RunMode.PLAIN, cache)
    try:
        ours = compile_written(probe_source(cases), "probe.metal", include_dirs, cache=cache)
    except PatchstackError as error:
        if len(operators) == 1:
            return [Fidelity(one.name, result, operand, problem=str(error)) for one, result, operand in cases]
        return [row for one in operators for row in compare_operators([one], apple, include_dirs, cache)]
    return [_compare(operator, result, operand, ours, theirs) for operator, result, operand in cases]


def _compare(operator: Operator, result: str, operand: str, ours: MetalLibrary, theirs: MetalLibrary) -> Fidelity:
    name = kernel_name(operator, result, operand)
    given = [_values(name, operand, operator.domain, special=operator.special)]
    if operator.binary:
        given.append(_values(f"{name} second", operand, operator.second, special=operator.special))
    found = []
    for library in (ours, theirs):
        kernel = library.kernel(name)
        out = torch.zeros(_COUNT, dtype=DTYPES[result])
        # Apple's kernels of one operand also take the number of elements.
        more = [_COUNT] if len(kernel.signature.buffers) > 1 + len(given) else []
        kernel(out, *given, *more, threads=_COUNT)
        found.append(out)
    distance = distances(*found)
    worst = int(distance.argmax())
    allowed = max(operator.allowed, ALLOWED_FLOAT_ULPS) if result == "float" else 0.0
    example = ""
    if float(distance[worst]):
        operands = ", ".join(f"{one[worst].item()!r}" for one in given)
        example = f"{operands} gives {found[0][worst].item()!r} here and {found[1][worst].item()!r} by Apple's"
    count = int((distance > 0).sum())
    reason = operator.reason if float(distance[worst]) else ""
    return Fidelity(operator.name, result, operand, float(distance[worst]), allowed, count, example, reason=reason)


def distances(ours: Tensor, theirs: Tensor) -> Tensor:
    """Element by element: units in the last place, or the difference of integers; NaN equals NaN and nothing else."""
    if ours.dtype not in _ORDERED:
        return (ours.double() - theirs.double()).abs()
    places = []
    for one in (ours, theirs):
        bits = one.view(_ORDERED[one.dtype]).long()
        least = torch.iinfo(_ORDERED[one.dtype]).min
        places.append(torch.where(bits < 0, least - bits, bits))
    distance = (places[0] - places[1]).abs().double()
    nan = torch.isnan(ours), torch.isnan(theirs)
    distance[nan[0] & nan[1]] = 0.0
    distance[nan[0] != nan[1]] = torch.inf
    return distance


def _values(label: str, type_: str, domain: tuple[float, float], *, special: bool) -> Tensor:
    """Operands that depend on the label only: over the domain, and for floats the special ones."""
    dtype = DTYPES[type_]
    source = torch.Generator().manual_seed(zlib.crc32(label.encode()))
    low, high = domain
    uniform = torch.rand(_COUNT, generator=source, dtype=torch.float64) * (high - low) + low
    if dtype.is_floating_point:
        if not special:
            return uniform.to(dtype)
        uniform[: len(_SPECIAL)] = torch.tensor(_SPECIAL, dtype=torch.float64)[
            torch.randperm(len(_SPECIAL), generator=source)
        ]
        return uniform.to(dtype)
    if dtype is torch.bool:
        return uniform > (low + high) / 2
    least = max(low, 0.0) if dtype is torch.uint8 else low
    return uniform.clamp(min=least).round().to(dtype)
