"""The overlay's kernels give the right gradients: a representative part of the matrix that the gate runs whole."""

from __future__ import annotations

import json
from pathlib import Path

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

from overlay_kernels import backward_proof, overlay_kernels
from stackproof.metal import ALL_DETECTORS, RunMode
from stackproof.ops import Kernels
from stackproof.ops.grid_sampler_2d_backward.checks import Expected
from stackproof.ops.grid_sampler_2d_backward.host import HostFunction
from stackproof.ops.grid_sampler_2d_backward.modes import ALL_MODES, Interpolation, Mode, Padding
from stackproof.ops.grid_sampler_2d_backward.special import collisions
from stackproof.ops.grid_sampler_2d_backward.table import DTYPES, OPINFO, SPECIAL, Shape
from stackproof.ops.grid_sampler_2d_backward.values import random_tensors
from stackproof.ops.layouts import LAYOUTS, SamplerTensors

CASES = json.loads((Path(__file__).parent / "data" / "grid_sampler_2d_backward.json").read_text())


@pytest.fixture(scope="session")
def kernels() -> Kernels:
    torch.set_num_threads(1)
    return overlay_kernels()


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_the_kernels_give_the_recorded_values(case: dict[str, object], kernels: Kernels) -> None:
    mode = Mode(Interpolation(case["interpolation"]), Padding(case["padding"]), bool(case["align_corners"]))
    tensors = SamplerTensors(*(torch.tensor(case[name]) for name in ("grad_output", "input", "grid")))
    mask = tuple(case["output_mask"])
    outputs = HostFunction(kernels).backward(tensors, mode, mask=mask)
    assert (outputs.grad_input is None) == (case["grad_input"] is None)
    for actual, expected in ((outputs.grad_input, case["grad_input"]), (outputs.grad_grid, case["grad_grid"])):
        if actual is not None:
            torch.testing.assert_close(actual, torch.tensor(expected), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", ALL_MODES, ids=str)
def test_every_small_case_of_the_matrix_passes(mode: Mode, dtype: str, kernels: Kernels) -> None:
    proof = backward_proof()
    units = [unit for unit in proof.units(full=False) if (unit.key.mode, unit.key.dtype) == (mode, dtype)]
    results = [result for unit in units for result in proof.run(unit, kernels)]
    assert len(results) == sum(unit.cases for unit in units) > 0
    assert [problem for result in results for problem in result.problems] == []


def test_float32_is_no_less_exact_than_the_cpu(kernels: Kernels) -> None:
    proof = backward_proof()
    wanted = ("odd sizes", "many samples per pixel", "far outside")
    units = [
        unit
        for unit in proof.units(full=True)
        if unit.key.dtype == "float32" and unit.key.shape is not None and unit.key.shape.name in wanted
    ]
    results = [result for unit in units for result in proof.run(unit, kernels)]
    assert all(result.cpu_errors for result in results)
    assert proof.judge(results) == []


@given(
    mode=st.sampled_from(ALL_MODES),
    dtype=st.sampled_from(list(DTYPES)),
    layout=st.sampled_from([name for name in LAYOUTS if name != "odd offset"]),
    sizes=st.tuples(st.integers(1, 3), st.integers(1, 40), st.integers(1, 9), st.integers(1, 9)),
    out=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    reach=st.floats(0.2, 6),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_random_calls_are_right(
    mode: Mode,
    dtype: str,
    layout: str,
    sizes: tuple[int, int, int, int],
    out: tuple[int, int],
    reach: float,
    seed: int,
    kernels: Kernels,
) -> None:
    shape = Shape(f"random {seed}", sizes, out, reach=reach)
    tensors = LAYOUTS[layout](random_tensors(shape, DTYPES[dtype], mode))
    result = Expected.of(tensors, mode).check(HostFunction(kernels), layout)
    assert result.problems == ()


@pytest.mark.parametrize("kind", [kind for kind in SPECIAL if kind != "collisions"])
def test_special_cases_pass_in_float32_and_bfloat16(kind: str, kernels: Kernels) -> None:
    proof = backward_proof()
    units = [unit for unit in proof.units(full=True) if unit.key.kind == kind and unit.key.dtype != "float16"]
    results = [result for unit in units for result in proof.run(unit, kernels)]
    assert len(results) == SPECIAL[kind] * len(ALL_MODES) * 2
    assert [problem for result in results for problem in result.problems] == []


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_4096_colliding_samples_sum_up_to_4096(dtype: torch.dtype, kernels: Kernels) -> None:
    for mode in ALL_MODES:
        (result,) = collisions(kernels, mode, dtype)
        assert result.problems == ()
        assert result.errors["grad_input"] == 0


def test_pytorchs_own_samples_pass(kernels: Kernels) -> None:
    proof = backward_proof()
    (unit,) = (unit for unit in proof.units(full=True) if unit.key.kind == OPINFO)
    results = proof.run(unit, kernels)
    assert len(results) == unit.cases
    assert [problem for result in results for problem in result.problems] == []


@pytest.mark.parametrize("run_mode", [ALL_DETECTORS, RunMode.PERMUTED, RunMode.FAST_MATH], ids=str)
def test_the_kernels_are_clean_in_every_run_mode(run_mode: RunMode) -> None:
    kernels = overlay_kernels(run_mode)
    proof = backward_proof()
    units = [unit for unit in proof.units(full=False) if unit.key.dtype == "bfloat16" or unit.key.mode.align_corners]
    results = [result for unit in units for result in proof.run(unit, kernels)]
    assert [problem for result in results for problem in result.problems] == []
    assert kernels.library.reports() == []
