"""The float64 oracle against PyTorch's float64 kernel, against the forward's finite differences, and its own rule."""

from __future__ import annotations

import json
import math
from pathlib import Path

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

from stackproof.ops.grid_sampler_2d_backward.modes import ALL_MODES, Interpolation, Mode, Padding
from stackproof.ops.grid_sampler_2d_backward.oracle import Gradients, gradients
from stackproof.ops.grid_sampler_2d_backward.reference import cpu_gradients, expected_gradients
from stackproof.ops.layouts import SamplerTensors

CASES = json.loads((Path(__file__).parent / "data" / "grid_sampler_2d_backward.json").read_text())
NEITHER_FINITE = [math.nan, math.inf, -math.inf, 3.2e38]


def random_tensors(
    seed: int, batch: int, channels: int, height: int, width: int, out: tuple[int, int], reach: float = 1.7
) -> SamplerTensors:
    source = torch.Generator().manual_seed(seed)
    return SamplerTensors(
        torch.randn(batch, channels, *out, generator=source, dtype=torch.float64),
        torch.randn(batch, channels, height, width, generator=source, dtype=torch.float64),
        (torch.rand(batch, *out, 2, generator=source, dtype=torch.float64) * 2 - 1) * reach,
    )


def own_gradients(tensors: SamplerTensors, mode: Mode) -> Gradients:
    return gradients(tensors.grad_output, tensors.input, tensors.grid, mode)


@given(
    mode=st.sampled_from(ALL_MODES),
    sizes=st.tuples(*[st.integers(1, 6)] * 4),
    out=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    reach=st.floats(0.1, 30),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_the_oracle_agrees_with_pytorch_in_float64(
    mode: Mode, sizes: tuple[int, int, int, int], out: tuple[int, int], reach: float, seed: int
) -> None:
    tensors = random_tensors(seed, *sizes, out, reach)
    own = own_gradients(tensors, mode)
    grad_input, grad_grid = cpu_gradients(tensors, mode, torch.float64)
    torch.testing.assert_close(own.grad_input, grad_input, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(own.grad_grid, grad_grid, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("mode", ALL_MODES, ids=str)
def test_the_oracle_is_the_derivative_of_the_forward(mode: Mode) -> None:
    tensors = random_tensors(1, 1, 2, 4, 5, (3, 3))
    own = own_gradients(tensors, mode)

    def loss(image: torch.Tensor, grid: torch.Tensor) -> float:
        sampled = torch.grid_sampler_2d(image, grid, mode.interpolation, mode.padding, mode.align_corners)
        return (sampled * tensors.grad_output).sum().item()

    def loss_of_grid(grid: torch.Tensor) -> float:
        return loss(tensors.input, grid)

    def loss_of_input(image: torch.Tensor) -> float:
        return loss(image, tensors.grid)

    for change, tensor, expected in (
        (loss_of_input, tensors.input, own.grad_input),
        (loss_of_grid, tensors.grid, own.grad_grid),
    ):
        for at in (0, 4, tensor.numel() - 1):
            step = torch.zeros(tensor.numel(), dtype=torch.float64)
            step[at] = 1e-6
            difference = change(tensor + step.view(tensor.shape)) - change(tensor - step.view(tensor.shape))
            assert difference / 2e-6 == pytest.approx(expected.reshape(-1)[at].item(), abs=1e-7)


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_the_oracle_gives_the_recorded_values(case: dict[str, object]) -> None:
    mode = Mode(Interpolation(case["interpolation"]), Padding(case["padding"]), bool(case["align_corners"]))
    names = ("grad_output", "input", "grid")
    tensors = SamplerTensors(*(torch.tensor(case[name], dtype=torch.float64) for name in names))
    own = own_gradients(tensors, mode)
    for name in ("grad_input", "grad_grid"):
        if case[name] is not None:
            expected = torch.tensor(case[name], dtype=torch.float64)
            torch.testing.assert_close(getattr(own, name), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("value", NEITHER_FINITE)
@pytest.mark.parametrize("mode", [mode for mode in ALL_MODES if mode.padding is not Padding.BORDER], ids=str)
def test_a_non_finite_sample_contributes_nothing_with_zeros_and_reflection(mode: Mode, value: float) -> None:
    tensors = random_tensors(2, 1, 2, 4, 5, (2, 2))
    tensors.grid[0, 1, 1, 0] = value
    finite = SamplerTensors(tensors.grad_output.clone(), tensors.input, tensors.grid.clone())
    finite.grad_output[..., 1, 1] = 0
    finite.grid[0, 1, 1, 0] = 0
    own, without = own_gradients(tensors, mode), own_gradients(finite, mode)
    assert torch.equal(own.grad_grid[0, 1, 1], torch.zeros(2, dtype=torch.float64))
    torch.testing.assert_close(own.grad_input, without.grad_input)


@pytest.mark.parametrize(("value", "edge"), [(math.nan, -9.0), (-math.inf, -9.0), (math.inf, 9.0), (3.2e38, 9.0)])
@pytest.mark.parametrize("mode", [mode for mode in ALL_MODES if mode.padding is Padding.BORDER], ids=str)
def test_a_non_finite_sample_takes_the_edge_with_border(mode: Mode, value: float, edge: float) -> None:
    tensors = random_tensors(3, 1, 2, 4, 5, (2, 2))
    tensors.grid[0, 1, 1, 0] = value
    clipped = SamplerTensors(tensors.grad_output, tensors.input, tensors.grid.clone())
    clipped.grid[0, 1, 1, 0] = edge
    own, expected = own_gradients(tensors, mode), own_gradients(clipped, mode)
    torch.testing.assert_close(own.grad_input, expected.grad_input)
    torch.testing.assert_close(own.grad_grid, expected.grad_grid)
    assert own.grad_grid[0, 1, 1, 0] == 0


def test_a_wrong_oracle_is_noticed_before_anything_is_proved_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    mode = Mode(Interpolation.BICUBIC, Padding.BORDER, True)
    tensors = random_tensors(4, 1, 2, 4, 5, (3, 3))
    assert expected_gradients(tensors, mode).grad_grid.isfinite().all()
    oracle = "stackproof.ops.grid_sampler_2d_backward.oracle"
    monkeypatch.setattr(f"{oracle}._CUBIC_NEAR", (1.5, -2.5, 0.0, 1.0))  # Keys' other parameter
    with pytest.raises(AssertionError, match="disagree"):
        expected_gradients(tensors, mode)


def test_the_cpu_kernel_is_never_asked_about_coordinates_it_is_not_defined_for() -> None:
    tensors = random_tensors(5, 1, 1, 3, 3, (1, 1))
    tensors.grid[0, 0, 0, 0] = math.nan
    with pytest.raises(ValueError, match="not defined"):
        cpu_gradients(tensors, ALL_MODES[0], torch.float32)
