"""What upstream's own 2.13 grid samplers do wrong, found by running them, each place with a minimal case.

The evidence is upstream's kernel as Apple compiled it. Each case has its mirror: the same inputs through the kernels
that the change for trees of after April 2026 puts in their place, which have to be right, without a report. What is
right is PyTorch's float64 kernel where it is defined, and otherwise CUDA's rule for coordinates that are not finite.
"""

from __future__ import annotations

import math
import multiprocessing
import signal
from dataclasses import dataclass, replace
from enum import Enum

import pytest
import torch
from torch import Tensor

from apple_release import require_release
from metal_kernels import cache
from stack_lab import StackLab, sampler_kernels
from stackproof.engines.apple.build import AirSource, compile_kernels
from stackproof.engines.apple.container import Metallib
from stackproof.engines.apple.release import release_library
from stackproof.engines.kernels import Kernels
from stackproof.engines.metal import ALL_DETECTORS, MetalLibrary, ReportKind
from stackproof.ops.grid_sampler.apple.sampler import run_sampler
from stackproof.ops.grid_sampler.checks import ExpectedGradients, ExpectedSamples
from stackproof.ops.grid_sampler.families.upstream import METAL_NAMES, SamplerKernel, backward_kernels, forward_kernel
from stackproof.ops.grid_sampler.host import HostBackward, HostForward
from stackproof.ops.grid_sampler.modes import SAMPLER_2D, SAMPLER_3D, Interpolation, Mode, Padding, Sampler
from stackproof.ops.grid_sampler.reference import expected_gradients, expected_samples
from stackproof.ops.grid_sampler.tensors import SamplerTensors

BILINEAR, NEAREST, BICUBIC = Interpolation
ZEROS, BORDER, REFLECTION = Padding
# Grid coordinates: a pixel that float32 does not resolve, one beyond int32, and none at all.
FAR, HUGE, LEFT, RIGHT, NAN = 1e8, 1e10, -math.inf, math.inf, math.nan


class Wrong(Enum):
    """What a kernel does with a sample."""

    CONVERTED = "converts to an integer what none can hold"
    OUTSIDE = "reads outside of the input"
    NO_NUMBER = "gives NaN"
    WEIGHTLESS = "gives 0 instead of a pixel"
    OVERWEIGHT = "weighs pixels by numbers of any size"
    A_PIXEL = "takes a pixel where there is none"


CONVERTED, OUTSIDE, NO_NUMBER, WEIGHTLESS, OVERWEIGHT, A_PIXEL = Wrong

# By sampler, interpolation and output: what happens at which coordinate, by padding.
_Table = dict[tuple[Sampler, Interpolation, str], dict[Padding, dict[float, Wrong]]]
_NOT_FINITE = {LEFT: NO_NUMBER, RIGHT: NO_NUMBER, NAN: NO_NUMBER}
_SOMEWHERE = {HUGE: CONVERTED, LEFT: A_PIXEL, RIGHT: A_PIXEL, NAN: A_PIXEL}
_NOWHERE = {HUGE: CONVERTED, LEFT: CONVERTED, RIGHT: CONVERTED}
_BEYOND = {HUGE: OUTSIDE, LEFT: CONVERTED, RIGHT: OUTSIDE, NAN: NO_NUMBER}
_REFLECTED = {HUGE: CONVERTED, **_NOT_FINITE}
_NEAREST = {ZEROS: {**_NOWHERE, NAN: A_PIXEL}, REFLECTION: _SOMEWHERE}
_LINEAR_GRADIENT = {ZEROS: {**_NOWHERE, NAN: NO_NUMBER}, BORDER: {NAN: NO_NUMBER}, REFLECTION: _REFLECTED}
_CUBIC_GRADIENT = {
    ZEROS: {HUGE: CONVERTED, **_NOT_FINITE},
    BORDER: {HUGE: CONVERTED, **_NOT_FINITE},
    REFLECTION: _REFLECTED,
}
TABLE: _Table = {
    (SAMPLER_2D, BILINEAR, "output"): {
        ZEROS: _BEYOND,
        BORDER: {FAR: WEIGHTLESS, HUGE: OVERWEIGHT, **_NOT_FINITE},
        REFLECTION: {FAR: WEIGHTLESS, HUGE: OVERWEIGHT, **_NOT_FINITE},
    },
    (SAMPLER_2D, NEAREST, "output"): _NEAREST,
    (SAMPLER_2D, BICUBIC, "output"): {
        ZEROS: {**_BEYOND, LEFT: NO_NUMBER},
        BORDER: {HUGE: CONVERTED, **_NOT_FINITE},
        REFLECTION: _REFLECTED,
    },
    (SAMPLER_3D, BILINEAR, "output"): {
        ZEROS: _BEYOND,
        BORDER: {HUGE: OVERWEIGHT, **_NOT_FINITE},
        REFLECTION: {HUGE: OVERWEIGHT, **_NOT_FINITE},
    },
    (SAMPLER_3D, NEAREST, "output"): _NEAREST,
    (SAMPLER_2D, BILINEAR, "grad_input"): {ZEROS: {**_NOWHERE, NAN: NO_NUMBER}, REFLECTION: _SOMEWHERE},
    (SAMPLER_2D, BILINEAR, "grad_grid"): _LINEAR_GRADIENT,
    (SAMPLER_2D, NEAREST, "grad_input"): _NEAREST,
    (SAMPLER_2D, BICUBIC, "grad_input"): {**_CUBIC_GRADIENT, ZEROS: {**_NOWHERE, NAN: NO_NUMBER}},
    (SAMPLER_2D, BICUBIC, "grad_grid"): _CUBIC_GRADIENT,
    (SAMPLER_3D, BILINEAR, "grad_input"): _LINEAR_GRADIENT,
    (SAMPLER_3D, BILINEAR, "grad_grid"): _LINEAR_GRADIENT,
    (SAMPLER_3D, NEAREST, "grad_input"): _NEAREST,
}


@dataclass(frozen=True)
class Place:
    """A kernel and a coordinate with which something is wrong.

    Attributes:
        sampler: its number of dimensions.
        mode: how it samples.
        output: the tensor in which it shows.
        coordinate: of the sample along x; along the other axes it is in the middle.
        wrong: what upstream's kernel does.
    """

    sampler: Sampler
    mode: Mode
    output: str
    coordinate: float
    wrong: Wrong

    def __str__(self) -> str:
        return f"{self.sampler.dims}D {self.output}, {self.mode}, {self.coordinate:g}"

    @property
    def kernel(self) -> SamplerKernel:
        """Upstream's, in float32."""
        return kernel_of(self.sampler, self.mode, self.output)

    @property
    def inputs(self) -> SamplerTensors:
        """One sample in two channels of an image whose pixels lie between 1 and 2."""
        return at(self.sampler, self.coordinate)

    @property
    def has_one_answer(self) -> bool:
        """A reflected coordinate that float32 does not resolve may end on any pixel."""
        return self.mode.padding is not REFLECTION or not math.isfinite(self.coordinate)


def kernel_of(sampler: Sampler, mode: Mode, output: str, dtype: torch.dtype = torch.float32) -> SamplerKernel:
    """Upstream's kernel that writes a tensor."""
    if output == "output":
        return forward_kernel(sampler, mode, dtype, wide=False)
    return next(one for one in backward_kernels(sampler, mode, dtype, wide=False) if output in one.outputs)


def at(sampler: Sampler, coordinate: float, *, columns: int = 8) -> SamplerTensors:
    """A sample at this place along x and in the middle along the other axes."""
    dims = sampler.dims
    source = torch.Generator().manual_seed(5)
    image = torch.rand(1, 2, *(3, 4)[3 - dims :], columns, generator=source) + 1
    grid = torch.zeros(1, *[1] * dims, dims)
    grid[..., 0] = coordinate
    return SamplerTensors(torch.rand(1, 2, *[1] * dims, generator=source) + 1, image, grid)


PLACES = [
    Place(sampler, Mode(interpolation, padding, align_corners=False), output, coordinate, wrong)
    for (sampler, interpolation, output), paddings in TABLE.items()
    for padding, coordinates in paddings.items()
    for coordinate, wrong in coordinates.items()
]
# What upstream's kernels with padding before the conversion get right.
RIGHT_PLACES = [
    Place(SAMPLER_2D, Mode(BILINEAR, BORDER, align_corners=False), output, coordinate, CONVERTED)
    for output in ("grad_input", "grad_grid")
    for coordinate in (FAR, HUGE, -HUGE, LEFT, RIGHT)
]


@pytest.fixture(scope="module")
def upstream() -> tuple[MetalLibrary, Metallib]:
    """Upstream's float32 kernels, as Apple compiled them, watched."""
    release = require_release("2.13")
    names = sorted({place.kernel.name for place in (*PLACES, *RIGHT_PLACES)})
    return compile_kernels([AirSource.of(release, name) for name in names], ALL_DETECTORS, cache()), release


@pytest.fixture(scope="module")
def changed(stack_of_after: StackLab) -> Kernels:
    """The kernels of the stack on a tree of after April 2026, watched."""
    return sampler_kernels(stack_of_after.tree(), ALL_DETECTORS)


def exact(place: Place) -> Tensor:
    """The right values of the place's output, float64."""
    if place.output == "output":
        return expected_samples(place.inputs, place.mode).output
    wanted: Tensor = getattr(expected_gradients(place.inputs, place.mode), place.output)
    return wanted


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_upstreams_kernel_is_wrong_there(place: Place, upstream: tuple[MetalLibrary, Metallib]) -> None:
    library, release = upstream
    library.clear_reports()
    layout = AirSource.of(release, place.kernel.name).kernel().struct("params")
    found = run_sampler(library, place.kernel, layout, place.mode, place.inputs)[place.output]
    kinds, right = {report.kind for report in library.reports()}, exact(place)
    if place.wrong is WEIGHTLESS:
        assert kinds == set()
        assert (found == 0).all()
        assert (right > 1).all()
        return
    assert ReportKind.UNDEFINED in kinds
    assert (ReportKind.OUT_OF_BOUNDS in kinds) == (place.wrong is OUTSIDE)
    if place.wrong is NO_NUMBER:
        assert found.isnan().any()
        assert right.isfinite().all()
    elif place.wrong is OVERWEIGHT:
        assert float(found.abs().min()) > 100 * float(right.abs().max())
    elif place.wrong is A_PIXEL:
        assert (right == 0).all()
        assert (found > 0).any()


@pytest.mark.parametrize("place", RIGHT_PLACES, ids=str)
def test_upstreams_backward_of_border_is_clamped_before_it_converts(
    place: Place, upstream: tuple[MetalLibrary, Metallib]
) -> None:
    library, release = upstream
    library.clear_reports()
    layout = AirSource.of(release, place.kernel.name).kernel().struct("params")
    found = run_sampler(library, place.kernel, layout, place.mode, place.inputs)[place.output]
    torch.testing.assert_close(found.double(), exact(place))
    assert library.reports() == []


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_the_changes_kernel_is_right_there(place: Place, changed: Kernels) -> None:
    assert isinstance(changed.library, MetalLibrary)
    changed.library.clear_reports()
    inputs = place.inputs
    if not place.has_one_answer:
        # A sample of ones is 1 on whichever pixel it ends, so is the sum of grad_input; grad_grid has no right value.
        inputs = replace(inputs, input=torch.ones_like(inputs.input), grad_output=torch.ones_like(inputs.grad_output))
    if place.output == "output":
        output = HostForward(changed).run(inputs, place.mode)
        result = ExpectedSamples.of(inputs, place.mode).judge(output, str(place))
        total = output
    else:
        outputs = HostBackward(changed).run(inputs, place.mode, mask=(True, True))
        result = ExpectedGradients.of(inputs, place.mode).judge(outputs, str(place))
        assert outputs.grad_input is not None
        assert outputs.grad_grid.isfinite().all()
        total = outputs.grad_input.flatten(2).sum(-1)
    if place.has_one_answer:
        assert result.problems == ()
    else:
        torch.testing.assert_close(total, torch.ones_like(total))
    assert changed.library.reports() == []


SINGLE_COLUMN = [
    (sampler, Mode(interpolation, REFLECTION, align_corners=True))
    for sampler, interpolation in ((SAMPLER_2D, BILINEAR), (SAMPLER_2D, BICUBIC), (SAMPLER_3D, BILINEAR))
]


def upstreams_single_column(task: tuple[Sampler, Mode]) -> Tensor:
    """What upstream's forward gives on an image of one column; for a process of its own."""
    kernel = kernel_of(*task, "output")
    source = AirSource.of(release_library("2.13", offline=True), kernel.name)
    library = compile_kernels([source], ALL_DETECTORS, cache())
    return run_sampler(library, kernel, source.kernel().struct("params"), task[1], at(task[0], 0.25, columns=1))[
        "output"
    ]


def test_reflecting_on_an_axis_of_one_pixel_divides_by_zero_in_upstreams_forward() -> None:
    require_release("2.13")
    for task in SINGLE_COLUMN:
        process = multiprocessing.get_context("fork").Process(target=upstreams_single_column, args=(task,))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGFPE


@pytest.mark.parametrize(("sampler", "mode"), SINGLE_COLUMN, ids=str)
def test_reflecting_on_an_axis_of_one_pixel_gives_that_pixel_with_the_change(
    sampler: Sampler, mode: Mode, changed: Kernels
) -> None:
    assert isinstance(changed.library, MetalLibrary)
    changed.library.clear_reports()
    expected = ExpectedSamples.of(at(sampler, 0.25, columns=1), mode)
    assert expected.check(HostForward(changed), "one column").problems == ()
    assert changed.library.reports() == []


ADDING = [
    (sampler, interpolation, dtype)
    for sampler in (SAMPLER_2D, SAMPLER_3D)
    for interpolation in sampler.interpolations
    for dtype in (torch.bfloat16, torch.float16)
]
STOPS_AT = {torch.bfloat16: 256, torch.float16: 2048}


def on_one_pixel(sampler: Sampler, dtype: torch.dtype) -> SamplerTensors:
    """Ones that fall on the first of two pixels, three times as many as 16 bits can count one by one."""
    dims, count = sampler.dims, 3 * STOPS_AT[dtype]
    grid = torch.zeros(1, *[1] * (dims - 1), count, dims)
    grid[..., 0] = -0.5
    # Two pixels: upstream's 16-bit addition takes a whole 32-bit word.
    inputs = SamplerTensors(torch.ones(1, 1, *grid.shape[1:-1]), torch.ones(1, 1, *[1] * (dims - 1), 2), grid)
    return inputs.each(lambda tensor: tensor.to(dtype))


@pytest.mark.parametrize(("sampler", "interpolation", "dtype"), ADDING, ids=str)
def test_gradients_that_upstream_adds_in_16_bits_stop_growing(
    sampler: Sampler, interpolation: Interpolation, dtype: torch.dtype
) -> None:
    release, mode = require_release("2.13"), Mode(interpolation, BORDER, align_corners=False)
    kernels = [kernel_of(one, Mode(way, BORDER, False), "grad_input", other) for one, way, other in ADDING]
    sources = {name: AirSource.of(release, name) for name in sorted({one.name for one in kernels})}
    library = compile_kernels(list(sources.values()), ALL_DETECTORS, cache())
    kernel = kernel_of(sampler, mode, "grad_input", dtype)
    layout = sources[kernel.name].kernel().struct("params")
    found = run_sampler(library, kernel, layout, mode, on_one_pixel(sampler, dtype))["grad_input"]
    assert found.flatten().tolist() == [STOPS_AT[dtype], 0]
    assert library.reports() == []


@pytest.mark.parametrize(("sampler", "interpolation", "dtype"), ADDING, ids=str)
def test_the_change_adds_them_in_float(
    sampler: Sampler, interpolation: Interpolation, dtype: torch.dtype, changed: Kernels
) -> None:
    inputs, mode = on_one_pixel(sampler, dtype), Mode(interpolation, BORDER, align_corners=False)
    outputs = HostBackward(changed).run(inputs, mode, mask=(True, True))
    assert outputs.grad_input is not None
    assert outputs.grad_input.flatten().tolist() == [inputs.positions, 0]
    assert METAL_NAMES[outputs.grad_input.dtype] in ("half", "bfloat")
