"""The float64 oracle against PyTorch's float64 kernel, against the forward's finite differences, and its own rule."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

from stackproof.ops.grid_sampler.modes import SAMPLER_2D, SAMPLER_3D, Interpolation, Mode, Padding, Sampler
from stackproof.ops.grid_sampler.oracle import gradients, samples
from stackproof.ops.grid_sampler.reference import cpu_gradients, cpu_samples, expected_gradients, expected_samples
from stackproof.ops.grid_sampler.tensors import SamplerTensors

CASES = json.loads((Path(__file__).parent / "data" / "grid_sampler_2d_backward.json").read_text())
NEITHER_FINITE = [math.nan, math.inf, -math.inf, 3.2e38]
SAMPLERS = [SAMPLER_2D, SAMPLER_3D]
CALLS = [(sampler, mode) for sampler in SAMPLERS for mode in sampler.modes]


def calls(*paddings: Padding) -> pytest.MarkDecorator:
    """Both samplers in every mode with these paddings, all if none is given."""
    chosen = [(sampler, mode) for sampler, mode in CALLS if mode.padding in (paddings or Padding)]
    return pytest.mark.parametrize(("sampler", "mode"), chosen, ids=lambda value: str(getattr(value, "dims", value)))


def random_tensors(seed: int, sizes: Sequence[int], output: Sequence[int], reach: float = 1.7) -> SamplerTensors:
    """float64 tensors; ``sizes`` begin with the batch and the channels."""
    source = torch.Generator().manual_seed(seed)
    batch, channels, *spatial = sizes
    return SamplerTensors(
        torch.randn(batch, channels, *output, generator=source, dtype=torch.float64),
        torch.randn(*sizes, generator=source, dtype=torch.float64),
        (torch.rand(batch, *output, len(spatial), generator=source, dtype=torch.float64) * 2 - 1) * reach,
    )


def small_tensors(seed: int, sampler: Sampler, batch: int = 1) -> SamplerTensors:
    """A few samples of two channels."""
    return random_tensors(seed, (batch, 2, *(3, 4, 5)[-sampler.dims :]), (2, 3, 2)[-sampler.dims :])


@pytest.mark.parametrize("sampler", SAMPLERS, ids=str)
@given(data=st.data())
@settings(max_examples=120, deadline=None, derandomize=True)
def test_the_oracle_agrees_with_pytorch_in_float64(sampler: Sampler, data: st.DataObject) -> None:
    mode = data.draw(st.sampled_from(sampler.modes))
    sizes = data.draw(st.tuples(*[st.integers(1, 6)] * (sampler.dims + 2)))
    output = data.draw(st.tuples(*[st.integers(1, 5)] * sampler.dims))
    tensors = random_tensors(data.draw(st.integers(0, 2**31)), sizes, output, data.draw(st.floats(0.1, 30)))
    own = gradients(tensors, mode)
    grad_input, grad_grid = cpu_gradients(tensors, mode, torch.float64)
    torch.testing.assert_close(own.grad_input, grad_input, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(own.grad_grid, grad_grid, rtol=1e-10, atol=1e-10)
    output_on_cpu = cpu_samples(tensors, mode, torch.float64)
    torch.testing.assert_close(samples(tensors, mode).output, output_on_cpu, rtol=1e-10, atol=1e-10)


@calls()
def test_the_oracle_is_the_derivative_of_the_forward(sampler: Sampler, mode: Mode) -> None:
    tensors = small_tensors(1, sampler)
    own = gradients(tensors, mode)
    call = getattr(torch, sampler.forward)

    def loss(image: torch.Tensor, grid: torch.Tensor) -> float:
        sampled = call(image, grid, mode.interpolation, mode.padding, mode.align_corners)
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
    own = gradients(tensors, mode)
    for name in ("grad_input", "grad_grid"):
        if case[name] is not None:
            expected = torch.tensor(case[name], dtype=torch.float64)
            torch.testing.assert_close(getattr(own, name), expected, rtol=1e-12, atol=1e-12)


def at_last_sample(tensors: SamplerTensors, coordinate: float) -> SamplerTensors:
    """The same tensors with the first coordinate of the last sample replaced."""
    grid = tensors.grid.clone()
    grid.view(-1, tensors.dims)[-1, 0] = coordinate
    return SamplerTensors(tensors.grad_output, tensors.input, grid)


@pytest.mark.parametrize("value", NEITHER_FINITE)
@calls(Padding.ZEROS, Padding.REFLECTION)
def test_a_non_finite_sample_contributes_nothing_with_zeros_and_reflection(
    sampler: Sampler, mode: Mode, value: float
) -> None:
    plain = small_tensors(2, sampler)
    extreme = at_last_sample(plain, value)
    silent = SamplerTensors(plain.grad_output.clone(), plain.input, plain.grid)
    silent.grad_output.flatten(2)[..., -1] = 0
    own, without = gradients(extreme, mode), gradients(silent, mode)
    assert own.grad_grid.view(-1, sampler.dims)[-1].tolist() == [0] * sampler.dims
    torch.testing.assert_close(own.grad_input, without.grad_input)
    assert samples(extreme, mode).output.flatten(2)[..., -1].tolist() == [[0, 0]]


@pytest.mark.parametrize(("value", "edge"), [(math.nan, -9.0), (-math.inf, -9.0), (math.inf, 9.0), (3.2e38, 9.0)])
@calls(Padding.BORDER)
def test_a_non_finite_sample_takes_the_edge_with_border(
    sampler: Sampler, mode: Mode, value: float, edge: float
) -> None:
    plain = small_tensors(3, sampler)
    extreme, clipped = at_last_sample(plain, value), at_last_sample(plain, edge)
    own, expected = gradients(extreme, mode), gradients(clipped, mode)
    torch.testing.assert_close(own.grad_input, expected.grad_input)
    torch.testing.assert_close(own.grad_grid, expected.grad_grid)
    assert own.grad_grid.view(-1, sampler.dims)[-1, 0] == 0
    torch.testing.assert_close(samples(extreme, mode).output, samples(clipped, mode).output)


def test_a_wrong_oracle_is_noticed_before_anything_is_proved_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    mode = Mode(Interpolation.BICUBIC, Padding.BORDER, True)
    tensors = small_tensors(4, SAMPLER_2D)
    assert expected_gradients(tensors, mode).grad_grid.isfinite().all()
    oracle = "stackproof.ops.grid_sampler.oracle"
    monkeypatch.setattr(f"{oracle}._CUBIC_NEAR", (1.5, -2.5, 0.0, 1.0))  # Keys' other parameter
    with pytest.raises(AssertionError, match="disagree"):
        expected_gradients(tensors, mode)
    with pytest.raises(AssertionError, match="disagree about output"):
        expected_samples(tensors, mode)


@pytest.mark.parametrize("sampler", SAMPLERS, ids=str)
def test_the_cpu_kernel_is_never_asked_about_coordinates_it_is_not_defined_for(sampler: Sampler) -> None:
    tensors = at_last_sample(small_tensors(5, sampler), math.nan)
    for ask in (cpu_gradients, cpu_samples):
        with pytest.raises(ValueError, match="not defined"):
            ask(tensors, sampler.modes[0], torch.float32)
