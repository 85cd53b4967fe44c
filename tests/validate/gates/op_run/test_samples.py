"""Where the calls of an op come from, and how they are changed and compared; no device."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from stackproof.gates.op_run import layouts
from stackproof.gates.op_run.compared import Reference, all_judged
from stackproof.gates.op_run.overloads import in_place_of, out_of
from stackproof.gates.op_run.recorded import functional, recorded_calls, user_calls

aten = torch.ops.aten
USER = """
import torch

def samples(dtype):
    x = torch.arange(6, dtype=dtype).reshape(2, 3)
    yield lambda: torch.renorm(x, 2, 0, 1.0)

def doubled(x, p, dim, maxnorm):
    return 2 * x

REFERENCES = {"renorm": doubled}
"""


def test_calls_are_recorded_from_the_backward_pass_of_another_op() -> None:
    from torch.testing._internal.common_methods_invocations import op_db

    numbers = tuple(number for number, entry in enumerate(op_db) if entry.name == "cdist")
    calls = recorded_calls("_cdist_backward", numbers, torch.float64)
    assert {call.function for call in calls} == {aten._cdist_backward.default}
    assert any(call.resized and 0 in call.tensors[1].shape for call in calls)
    assert any(call.resized and 1100 in call.tensors[1].shape for call in calls)


def test_a_users_file_gives_calls_and_what_is_right(tmp_path: Path) -> None:
    path = tmp_path / "proof.py"
    path.write_text(USER)
    (call,) = user_calls("renorm_", str(path), torch.float64)
    assert (call.function, call.source) == (aten.renorm.default, "proof.py, sample 0")
    assert torch.equal(call.run(right=True)[0], 2 * call.args[0])
    assert call.run()[0].norm() <= 2
    (call,) = user_calls("renorm", str(path), torch.int64)
    assert call.args[0].dtype is torch.int64


def test_the_overloads_that_compute_the_same_are_found_by_their_inputs() -> None:
    assert functional(aten.renorm_.default) is aten.renorm.default
    assert [one.function for one in in_place_of(aten.renorm.default)] == [aten.renorm_.default] * 2
    assert {one.function for one in out_of(aten.pow.Tensor_Scalar)} == {aten.pow.Tensor_Scalar_out}
    assert in_place_of(aten._cdist_backward.default) == []


@pytest.mark.parametrize("way", layouts.LAYOUTS, ids=lambda way: way.name)
def test_a_layout_keeps_the_values_of_a_tensor_but_for_the_expanded_one(way: layouts.Way) -> None:
    given = torch.arange(12.0).reshape(3, 4)
    (made,) = way.change((given,))
    assert made.stride() != given.stride() or made.storage_offset() or way is layouts.AS_RECORDED
    assert torch.equal(made, given[:1].expand(3, 4) if way.name == "expanded" else given)


@pytest.mark.parametrize(
    ("way", "shapes"),
    [
        ("of no elements", [(0, 3), (3, 0)]),
        ("of one element", [(1, 1), (1, 1)]),
        ("larger than a threadgroup", [(1100, 3), (3, 1100)]),
        ("larger than a threadgroup in another direction", [(2, 1101), (1101, 2)]),
    ],
)
def test_sizes_that_belong_together_are_changed_together(way: str, shapes: list[tuple[int, int]]) -> None:
    (change,) = [one.change for one in layouts.SIZES if one.name == way]
    assert [tuple(one.shape) for one in change((torch.ones(2, 3), torch.ones(3, 2)))] == shapes


@pytest.mark.parametrize(
    ("factor", "wrong"), [(1 + 8 * 2**-10, False), (1 + 40 * 2**-10, True), (float("nan"), True), (float("inf"), True)]
)
def test_a_few_roundings_pass_and_more_do_not(factor: float, wrong: bool) -> None:
    exact = torch.tensor([3.0, -700.0], dtype=torch.float64)
    plain = exact.half()
    actual = (exact * torch.tensor([factor, 1.0])).half()
    _error, problems = all_judged([actual], Reference([exact], [plain], [exact.float()]), torch.float16)
    assert bool(problems) is wrong


def test_a_small_value_beside_a_large_one_is_compared_by_itself() -> None:
    exact = torch.tensor([1e30, 2.0], dtype=torch.float64)
    actual = torch.tensor([1e30, 3.0])
    _error, problems = all_judged([actual], Reference([exact], [exact.float()], [exact.float()]), torch.float32)
    assert problems == ["4.19e+06 epsilons off, 16 allowed"]


def test_a_number_that_the_cpu_loses_in_float32_is_left_out() -> None:
    exact = torch.tensor([1e-3, 2.0], dtype=torch.float64)
    single = torch.tensor([0.5, 2.0])
    assert all_judged([torch.tensor([0.7, 2.0])], Reference([exact], [single], [single]), torch.float32)[1] == []


def test_another_shape_or_dtype_is_named() -> None:
    exact = torch.zeros(2, dtype=torch.float64)
    _error, problems = all_judged([torch.zeros(2, 1)], Reference([exact], [exact.half()]), torch.float16)
    assert problems == ["torch.float32 of (2, 1), where the CPU has torch.float16 of (2,)"]


@pytest.mark.parametrize(("factor", "wrong"), [(1 + 2e-7, False), (1 + 1e-5, True)])
def test_floats_of_integers_are_compared_with_what_the_cpu_has_in_float32(factor: float, wrong: bool) -> None:
    exact = torch.tensor([1.266, 2.28])
    _error, problems = all_judged([exact * factor], Reference([exact], [exact]), torch.int64)
    assert bool(problems) is wrong
