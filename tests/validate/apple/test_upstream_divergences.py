"""What upstream's own 2.13 grid samplers do wrong, found by running them: each place with a minimal case.

They are pinned so that a change which claims to repair one has the case to show it on. The right values are those of
PyTorch's float64 kernel, which for these few finite coordinates is defined.
"""

from __future__ import annotations

import pytest
import torch

from apple_release import require_release
from metal_kernels import cache
from stackproof.apple.build import AirSource, compile_kernels
from stackproof.apple.container import Metallib
from stackproof.apple.sampler import SamplerKernel, reference, run_sampler
from stackproof.metal import ALL_DETECTORS, Report, ReportKind
from stackproof.ops.grid_sampler.modes import Interpolation, Mode, Padding
from stackproof.ops.grid_sampler.tensors import SamplerTensors

_BILINEAR, _NEAREST = Interpolation.BILINEAR, Interpolation.NEAREST
_ZEROS, _BORDER, _REFLECTION = Padding


@pytest.fixture(scope="module")
def release() -> Metallib:
    return require_release("2.13")


def run(
    release: Metallib, name: str, mode: Mode, inputs: SamplerTensors
) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor], list[Report]]:
    """What the kernel wrote, what is right, and what the detectors say."""
    kernel = SamplerKernel.of(name)
    assert kernel
    source = AirSource.of(release, name)
    library = compile_kernels([source], ALL_DETECTORS, cache())
    found = run_sampler(library, kernel, source.kernel().struct("params"), mode, inputs)
    reports = library.reports()
    library.clear_reports()
    return found, reference(mode, inputs, backward=kernel.backward), reports


def at(*coordinates: float) -> SamplerTensors:
    """A 4 by 8 input of two channels, sampled at these places along x and in the middle along y."""
    x = torch.tensor(coordinates)
    grid = torch.stack([x, torch.zeros_like(x)], -1)[None, None]
    source = torch.Generator().manual_seed(5)
    image = torch.rand(1, 2, 4, 8, generator=source) + 1
    return SamplerTensors(torch.rand(1, 2, 1, len(coordinates), generator=source) + 1, image, grid)


_FORWARD = "grid_sampler_2d_bilinear_{}_i32_float"


@pytest.mark.parametrize("padding", [_BORDER, _REFLECTION], ids=["border", "reflection"])
def test_a_bilinear_sample_beyond_2_to_the_24_pixels_is_zero_instead_of_a_pixel(
    release: Metallib, padding: Padding
) -> None:
    mode = Mode(_BILINEAR, padding, False)
    name = _FORWARD.format(padding.name.lower())
    found, exact, reports = run(release, name, mode, at(1e6))
    assert float((found["output"].double() - exact["output"]).abs().max()) < 1e-6
    found, exact, reports = run(release, name, mode, at(1e8))
    assert (exact["output"] > 1).all()
    assert (found["output"] == 0).all()
    assert reports == []


def test_a_zeros_sample_beyond_int32_reads_outside_the_input(release: Metallib) -> None:
    _found, _exact, reports = run(release, _FORWARD.format("zeros"), Mode(_BILINEAR, _ZEROS, False), at(1e10))
    assert {report.kind for report in reports} == {ReportKind.UNDEFINED, ReportKind.OUT_OF_BOUNDS}


@pytest.mark.parametrize("padding", [_BORDER, _REFLECTION], ids=["border", "reflection"])
def test_a_bilinear_sample_beyond_int32_has_weights_of_any_size(release: Metallib, padding: Padding) -> None:
    mode = Mode(_BILINEAR, padding, False)
    found, exact, reports = run(release, _FORWARD.format(padding.name.lower()), mode, at(1e10))
    assert float(exact["output"].max()) < 2
    assert float(found["output"].abs().min()) > 1e6
    assert {report.kind for report in reports} == {ReportKind.UNDEFINED}


@pytest.mark.parametrize("gradient", ["input", "grid"])
@pytest.mark.parametrize("padding", [_ZEROS, _REFLECTION], ids=["zeros", "reflection"])
def test_the_backward_converts_coordinates_beyond_int32(release: Metallib, gradient: str, padding: Padding) -> None:
    name = f"grid_sampler_2d_backward_bilinear_{gradient}_i32_float"
    _found, _exact, reports = run(release, name, Mode(_BILINEAR, padding, False), at(1e10))
    assert {report.kind for report in reports} == {ReportKind.UNDEFINED}


def test_the_backward_of_border_is_clamped_before_it_converts(release: Metallib) -> None:
    mode = Mode(_BILINEAR, _BORDER, False)
    found, exact, reports = run(release, "grid_sampler_2d_backward_bilinear_input_i32_float", mode, at(1e10, -1e10))
    torch.testing.assert_close(found["grad_input"].double(), exact["grad_input"])
    assert reports == []


@pytest.mark.parametrize(
    ("dtype", "metal", "stops_at"), [(torch.bfloat16, "bfloat", 256), (torch.float16, "half", 2048)]
)
def test_gradients_that_are_added_in_16_bits_stop_growing(
    release: Metallib, dtype: torch.dtype, metal: str, stops_at: int
) -> None:
    count = 3 * stops_at
    # Two pixels: upstream's 16-bit addition takes a whole 32-bit word.
    inputs = SamplerTensors(torch.ones(1, 1, 1, count), torch.ones(1, 1, 1, 2), torch.zeros(1, 1, count, 2))
    inputs = inputs.each(lambda tensor: tensor.to(dtype))
    mode = Mode(_NEAREST, _BORDER, False)
    found, exact, reports = run(release, f"grid_sampler_2d_backward_nearest_input_i32_{metal}", mode, inputs)
    assert exact["grad_input"].max() == count
    assert found["grad_input"].max() == stops_at
    assert reports == []
