"""The overlay's kernels give the right values: a representative part of the matrices that the gate runs whole."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

from overlay_kernels import OPS, kernels_before, overlay_kernels, sampler_proof
from stackproof.engines.kernels import Kernels
from stackproof.engines.metal import ALL_DETECTORS, RunMode
from stackproof.ops import CaseResult, WorkUnit
from stackproof.ops.grid_sampler.checks import ExpectedGradients, ExpectedSamples
from stackproof.ops.grid_sampler.host import HostBackward, HostForward
from stackproof.ops.grid_sampler.modes import SAMPLER_2D, SAMPLER_3D, Interpolation, Mode, Padding, Sampler
from stackproof.ops.grid_sampler.special_backward import collisions
from stackproof.ops.grid_sampler.table import DTYPES, OPINFO, Shape
from stackproof.ops.grid_sampler.tensors import LAYOUTS, ODD_OFFSET, SamplerTensors
from stackproof.ops.grid_sampler.values import random_tensors

CASES = json.loads((Path(__file__).parent / "data" / "grid_sampler_2d_backward.json").read_text())
BACKWARD = [op for op in OPS if op.endswith("backward")]
SAMPLERS = [SAMPLER_2D, SAMPLER_3D]


@pytest.fixture(scope="session")
def kernels() -> Kernels:
    torch.set_num_threads(1)
    return overlay_kernels()


def problems_of(units: list[WorkUnit], kernels: Kernels) -> tuple[list[str], list[CaseResult]]:
    """Problems and results of some units of one op; every announced case must be there, and none be left out."""
    results = [result for unit in units for result in sampler_proof(unit.op).run(unit, kernels)]
    assert len(results) == sum(unit.cases for unit in units) > 0
    assert [result.skipped for result in results if result.skipped] == []
    return [problem for result in results for problem in result.problems], results


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_the_kernels_give_the_recorded_values(case: dict[str, object], kernels: Kernels) -> None:
    mode = Mode(Interpolation(case["interpolation"]), Padding(case["padding"]), bool(case["align_corners"]))
    tensors = SamplerTensors(*(torch.tensor(case[name]) for name in ("grad_output", "input", "grid")))
    mask = tuple(case["output_mask"])
    outputs = HostBackward(kernels).run(tensors, mode, mask=mask)
    assert (outputs.grad_input is None) == (case["grad_input"] is None)
    for actual, expected in ((outputs.grad_input, case["grad_input"]), (outputs.grad_grid, case["grad_grid"])):
        if actual is not None:
            torch.testing.assert_close(actual, torch.tensor(expected), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", OPS)
def test_every_small_case_of_the_matrix_passes(op: str, dtype: str, kernels: Kernels) -> None:
    units = [unit for unit in sampler_proof(op).units(full=False) if unit.key.dtype == dtype]
    problems, results = problems_of(units, kernels)
    assert problems == []
    assert {result.mode for result in results} == {str(mode) for mode in sampler_proof(op).sampler.modes}


@pytest.mark.parametrize("op", OPS)
def test_float32_is_no_less_exact_than_the_cpu(op: str, kernels: Kernels) -> None:
    proof = sampler_proof(op)
    wanted = ("odd sizes", "three samples", "one pixel", "many samples per pixel", "far outside")
    units = [
        unit
        for unit in proof.units(full=True)
        if unit.key.dtype == "float32" and unit.key.shape is not None and unit.key.shape.name in wanted
    ]
    problems, results = problems_of(units, kernels)
    assert problems == []
    assert all(result.cpu_errors for result in results)
    assert proof.judge(results) == []


def random_call(sampler: Sampler, data: st.DataObject) -> tuple[SamplerTensors, Mode, str]:
    """Tensors of any sizes in any layout, a mode, and the layout's name."""
    mode = data.draw(st.sampled_from(sampler.modes))
    dtype = data.draw(st.sampled_from(list(DTYPES.values())))
    layout = data.draw(st.sampled_from([name for name in LAYOUTS if name != ODD_OFFSET]))
    sizes = data.draw(st.tuples(st.integers(1, 3), st.integers(1, 40), *[st.integers(1, 9)] * sampler.dims))
    output = data.draw(st.tuples(*[st.integers(1, 18 // sampler.dims)] * sampler.dims))
    seed = data.draw(st.integers(0, 2**31))
    shape = Shape(f"random {seed}", sizes, output, reach=data.draw(st.floats(0.2, 6)))
    return LAYOUTS[layout](random_tensors(shape, dtype, mode)), mode, layout


@pytest.mark.parametrize("sampler", SAMPLERS, ids=str)
@given(data=st.data())
@settings(max_examples=150, deadline=None, derandomize=True)
def test_random_gradients_are_right(sampler: Sampler, kernels: Kernels, data: st.DataObject) -> None:
    tensors, mode, layout = random_call(sampler, data)
    assert ExpectedGradients.of(tensors, mode).check(HostBackward(kernels), layout).problems == ()


@given(data=st.data())
@settings(max_examples=100, deadline=None, derandomize=True)
def test_random_samples_are_right(kernels: Kernels, data: st.DataObject) -> None:
    tensors, mode, layout = random_call(SAMPLER_3D, data)
    assert ExpectedSamples.of(tensors, mode).check(HostForward(kernels), layout).problems == ()


@pytest.mark.parametrize("op", OPS)
def test_special_cases_pass_in_float32_and_bfloat16(op: str, kernels: Kernels) -> None:
    proof = sampler_proof(op)
    kinds = {kind for kind, special in proof.special.items() if kind != "collisions" and not special.compares}
    units = [unit for unit in proof.units(full=True) if unit.key.kind in kinds and unit.key.dtype != "float16"]
    problems, _ = problems_of(units, kernels)
    assert problems == []
    assert Counter(unit.key.kind for unit in units) == dict.fromkeys(kinds, len(proof.sampler.modes) * 2)


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
@pytest.mark.parametrize("sampler", SAMPLERS, ids=str)
def test_4096_colliding_samples_sum_up_to_4096(sampler: Sampler, dtype: torch.dtype, kernels: Kernels) -> None:
    for mode in sampler.modes:
        (result,) = collisions(kernels, sampler, mode, dtype)
        assert result.case == "4096 collisions"
        assert result.problems == ()
        assert result.errors["grad_input"] == 0


@pytest.mark.exhaustive
@pytest.mark.parametrize("op", OPS)
def test_pytorchs_own_samples_pass(op: str, kernels: Kernels) -> None:
    units = [unit for unit in sampler_proof(op).units(full=True) if unit.key.kind == OPINFO]
    problems, results = problems_of(units if op == OPS[0] else units[1:2], kernels)
    assert problems == []
    assert {result.mode for result in results} == {str(mode) for mode in sampler_proof(op).sampler.modes}


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("run_mode", [ALL_DETECTORS, RunMode.PERMUTED, RunMode.FAST_MATH], ids=str)
def test_the_kernels_are_clean_in_every_run_mode(run_mode: RunMode, op: str) -> None:
    kernels = overlay_kernels(run_mode)
    units = [unit for unit in sampler_proof(op).units(full=False) if unit.key.dtype == "bfloat16"]
    problems, _ = problems_of(units, kernels)
    assert problems == []
    assert kernels.library.reports() == []


def compared(kernels: Kernels) -> list[CaseResult]:
    proof = sampler_proof("grid_sampler_3d")
    units = [unit for unit in proof.units(full=True) if unit.compares]
    return [result for unit in units for result in proof.run(unit, kernels)]


def test_the_forward_loses_nothing_beside_the_one_before_the_stack(kernels: Kernels) -> None:
    new = Kernels(kernels.library, kernels.headers, before=kernels_before())
    results = compared(new)
    assert len(results) == 36 * 6 * 3
    assert {result.mode for result in results} == {
        str(mode) for mode in SAMPLER_3D.modes if mode.interpolation is Interpolation.BILINEAR
    }
    assert [result for result in results if result.problems or result.skipped] == []


def test_without_the_kernels_of_before_nothing_is_compared_and_that_is_said(kernels: Kernels) -> None:
    assert {result.skipped for result in compared(kernels)} == {
        "the commit below the stack does not have these kernels"
    }
