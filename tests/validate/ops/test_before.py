"""Two outputs of one call beside float64: who is right, and whose fault it is."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from stackproof.ops.grid_sampler.before import beside_float64
from stackproof.ops.grid_sampler.checks import Wanted
from stackproof.ops.model import CaseResult

RIGHT = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
EPSILON = torch.finfo(torch.float32).eps


def judged(new: Tensor, old: Tensor) -> CaseResult:
    return beside_float64(new, old, Wanted(RIGHT, torch.ones(3, dtype=torch.float64)), CaseResult("m", "float32", "c"))


def off(*units: float) -> Tensor:
    return (RIGHT + torch.tensor(units, dtype=torch.float64) * EPSILON).float()


@pytest.mark.parametrize("units", [(0, 0, 0), (0, 2, -2)])
def test_both_right_within_rounding_is_nothing_to_say(units: tuple[float, ...]) -> None:
    result = judged(off(*units), off(0, 0, 0))
    assert (result.problems, result.note) == ((), "")


def test_ours_off_where_the_one_below_is_right_is_a_problem_with_both_errors() -> None:
    result = judged(off(0, 64, 0), off(0, 2, 0))
    assert result.problems == (
        "output is off by up to 64 units of float32's epsilon where the kernels below the stack are off by 2",
    )


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (math.nan, "give 1 values that are not finite"),
        (math.inf, "give 1 values that are not finite"),
        (2.0 + 100 * EPSILON, "are off by up to 100 units of float32's epsilon"),
    ],
)
def test_the_one_below_off_where_ours_is_right_is_a_note(wrong: float, said: str) -> None:
    old = off(0, 0, 0)
    old[1] = wrong
    result = judged(off(0, 0, 2), old)
    assert result.problems == ()
    assert result.note == f"the kernels below the stack {said}"


def test_ours_off_further_than_a_wrong_one_below_is_a_problem() -> None:
    assert judged(off(0, 640, 0), off(0, 64, 0)).problems != ()
    assert judged(off(0, 32, 0), off(0, 64, 0)).problems == ()


def test_nothing_in_common_with_an_empty_output() -> None:
    empty = Wanted(torch.empty(0, dtype=torch.float64), torch.empty(0, dtype=torch.float64))
    result = beside_float64(torch.empty(0), torch.empty(0), empty, CaseResult("m", "float32", "c"))
    assert (result.problems, result.note) == ((), "")
