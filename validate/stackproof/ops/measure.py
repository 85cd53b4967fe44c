"""How far a result is from float64, in units of its dtype's epsilon.

A plain relative error is meaningless where a gradient is a small difference of large terms, and an absolute one where
scales differ. The unit used here is what an error of one epsilon moves:

* float32: one epsilon in each term and coordinate that the expected value was computed from (the oracle's ``terms``).
  Straightforward float32 code stays below about 1.
* half and bfloat16, computed in float32 and rounded once: one epsilon of the expected value itself, at least one
  subnormal step, and at least eight units of the float32 arithmetic before the rounding. "Within one rounding" is
  therefore at most 1, and the rounding alone is at most 0.5.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

_FLOAT32_EPSILON = torch.finfo(torch.float32).eps
_FLOAT32_UNITS_BEFORE_ROUNDING = 8

# The bound of one case by itself; that float32 is no worse than the CPU is judged on all cases together.
LARGEST_ERROR = {torch.float32: 4.0, torch.float16: 1.0, torch.bfloat16: 1.0}


def one_unit(expected: Tensor, terms: Tensor, dtype: torch.dtype) -> Tensor:
    """The unit of each element, float64; see the module's text.

    Args:
        expected: float64 values.
        terms: float64, what an error of one epsilon everywhere moves; the same shape.
        dtype: of the result to be measured.
    """
    info = torch.finfo(dtype)
    if dtype is torch.float32:
        return (terms * info.eps).clamp(min=info.tiny)
    arithmetic = terms * (_FLOAT32_EPSILON * _FLOAT32_UNITS_BEFORE_ROUNDING)
    return torch.maximum(expected.abs() * info.eps, arithmetic).clamp(min=info.tiny * info.eps)


def largest_error(actual: Tensor, expected: Tensor, terms: Tensor) -> float:
    """The largest error of ``actual`` in units of its dtype's epsilon; infinite where it is not finite, 0 if empty."""
    if actual.numel() == 0:
        return 0.0
    error = (actual.double() - expected).abs() / one_unit(expected, terms, actual.dtype)
    worst = error.max().item()
    return math.inf if math.isnan(worst) else worst
