"""Errors in units of the dtype's epsilon: what one rounding costs, and that nothing wrong measures as small."""

from __future__ import annotations

import math

import pytest
import torch

from stackproof.ops.measure import LARGEST_ERROR, largest_error

EXPECTED = torch.tensor([1.0, -3.7, 1000.3, 2.0**-6], dtype=torch.float64)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_one_rounding_to_16_bits_is_at_most_half_a_unit(dtype: torch.dtype) -> None:
    error = largest_error(EXPECTED.to(dtype), EXPECTED, EXPECTED.abs())
    assert 0 < error <= 0.5


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_two_roundings_off_is_more_than_is_allowed(dtype: torch.dtype) -> None:
    off = EXPECTED * (1 + 2 * torch.finfo(dtype).eps)
    assert largest_error(off.to(dtype), EXPECTED, EXPECTED.abs()) > LARGEST_ERROR[dtype]


def test_a_float32_error_is_counted_in_epsilons_of_the_terms() -> None:
    terms = torch.tensor([100.0], dtype=torch.float64)
    expected = torch.tensor([0.5], dtype=torch.float64)
    actual = expected.float() + 3 * 100 * torch.finfo(torch.float32).eps
    assert largest_error(actual, expected, terms) == pytest.approx(3, rel=0.01)


def test_a_value_where_nothing_contributes_must_be_zero() -> None:
    nothing = torch.zeros(1, dtype=torch.float64)
    assert largest_error(torch.zeros(1), nothing, nothing) == 0
    assert largest_error(torch.tensor([1e-30]), nothing, nothing) > LARGEST_ERROR[torch.float32]


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_not_finite_is_infinitely_wrong(value: float) -> None:
    assert largest_error(torch.tensor([value]), EXPECTED[:1], EXPECTED[:1]) == math.inf


def test_nothing_to_compare_is_no_error() -> None:
    assert largest_error(torch.zeros(0), torch.zeros(0, dtype=torch.float64), torch.zeros(0, dtype=torch.float64)) == 0
