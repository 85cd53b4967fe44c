"""The fast backward: how its launches are planned, that its proof finds what is seeded, and what it moves, exactly."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

import fast_kernels
from overlay_kernels import OVERLAY
from stackproof.engines.kernels import Kernels
from stackproof.engines.metal import RunMode
from stackproof.engines.metal.struct_layout import StructLayout
from stackproof.ops.grid_sampler.checks import BOTH, ExpectedGradients
from stackproof.ops.grid_sampler.families.lanes import has_lanes
from stackproof.ops.grid_sampler.fast import division
from stackproof.ops.grid_sampler.fast.division import Division, choose, images_at_once, kernel_names
from stackproof.ops.grid_sampler.fast.launches import Plan, Planner, position_stride
from stackproof.ops.grid_sampler.host import HostBackward
from stackproof.ops.grid_sampler.modes import SAMPLER_2D, SAMPLER_3D, Interpolation, Mode, Padding
from stackproof.ops.grid_sampler.tensors import SamplerTensors
from stackproof.ops.layouts import channels_last

BILINEAR = Mode(Interpolation.BILINEAR, Padding.ZEROS, align_corners=True)
NEAREST = Mode(Interpolation.NEAREST, Padding.ZEROS, align_corners=True)
BICUBIC = Mode(Interpolation.BICUBIC, Padding.BORDER, align_corners=True)
HOST = (OVERLAY / "aten/src/ATen/native/mps/operations/GridSamplerLanes.mm").read_text()


class _Unread(StructLayout):
    def pack(self, values: object) -> bytes:
        return b""


def planner(**options: int) -> Planner:
    """Of plans whose parameters nobody reads."""
    return Planner(lambda name, *arguments: _Unread(name, 0, 1, ()), threads_per_launch=options.get("threads", 2**30))


def tensors(
    channels: int, output: tuple[int, ...] = (9, 20), images: int = 1, *, like: str = "random"
) -> SamplerTensors:
    """Float tensors whose grid is random, or smooth: neighbors are about a pixel apart."""
    torch.manual_seed(channels)
    dims = len(output)
    grid = torch.rand(images, *output, dims) * 3 - 1.5
    if like == "smooth":
        theta = torch.eye(dims, dims + 1).expand(images, -1, -1)
        grid = torch.nn.functional.affine_grid(theta, [images, 1, *output], align_corners=True) + 0.01
    size = (images, channels, *output)
    return SamplerTensors(torch.randn(size), torch.randn(size) + 3, grid)


def planned(values: SamplerTensors, mode: Mode, *, mask: bool = True) -> Plan:
    """The launches of the call, as the host function divides it."""
    division_of = choose(values, mode) if mask else Division(32, staged=values.grad_output.stride(1) != 1)
    assert division_of is not None
    return planner().plan(values, mode, division_of, compute_grad_input=mask)


def test_the_plan_names_exactly_the_kernels_that_the_tree_has() -> None:
    source = fast_kernels.source_of(fast_kernels.FAST)
    assert "grid_sampler_backward_lanes" in fast_kernels.text_of(source)
    names = kernel_names(SAMPLER_2D) | kernel_names(SAMPLER_3D)
    assert len(names) == 48
    assert has_lanes(names, SAMPLER_2D)
    assert has_lanes(names, SAMPLER_3D)


def test_kernels_of_one_dtype_have_the_planned_names(tmp_path: Path) -> None:
    library = fast_kernels.kernels_of(fast_kernels.FAST, tmp_path).library
    planned_names = {name for name in kernel_names(SAMPLER_2D) | kernel_names(SAMPLER_3D) if "_float" in name}
    assert {name for name in library.kernel_names if "_lanes_" in name or "channels_last" in name} == planned_names


@pytest.mark.parametrize(
    ("pattern", "value"),
    [
        (r"is_half_bicubic \? (\d+)", division.FEW_CHANNELS_IN_16_BITS[Interpolation.BICUBIC]),
        (r"is_half_bicubic \? \d+ : (\d+)", division.FEW_CHANNELS[Interpolation.BILINEAR]),
        (r"return LanesDivision\{channels <= (\d+) \? 8 : 32", division.NARROW_CHANNELS),
        (r"separate_zeros_bytes = int64_t\{1\} << (\d+)", division.SEPARATE_ZEROS_BYTES.bit_length() - 1),
        (r" scratch_bytes = int64_t\{1\} << (\d+)", division.SCRATCH_BYTES.bit_length() - 1),
        (r"max_launch = int64_t\{1\} << (\d+)", division.THREADS_PER_LAUNCH.bit_length() - 1),
    ],
)
def test_the_host_function_has_the_thresholds_of_the_plan(pattern: str, value: int) -> None:
    assert re.findall(pattern, HOST) == [str(value)]


def test_channels_and_layout_divide_the_work() -> None:
    assert choose(tensors(12), BILINEAR) is None
    assert choose(tensors(13), BILINEAR) == Division(8, staged=True)
    assert choose(tensors(33), BILINEAR) == Division(32, staged=True)
    assert choose(tensors(33).each(channels_last), BILINEAR) == Division(32)
    assert choose(tensors(12), BICUBIC) is None
    assert choose(tensors(13), BICUBIC) == Division(8, staged=True)
    assert choose(tensors(4).each(torch.Tensor.half), BICUBIC) is None
    assert choose(tensors(5).each(torch.Tensor.half), BICUBIC) == Division(8, staged=True)


def test_nearest_is_left_to_the_kernels_of_the_tree() -> None:
    assert choose(tensors(100), NEAREST) is None
    assert choose(tensors(100).each(torch.Tensor.half).each(channels_last), NEAREST) is None


def test_images_are_worked_on_in_groups_of_about_one_size_that_fit_the_scratch_memory() -> None:
    assert [images_at_once(16, size, 100) for size in (1, 25, 30, 51, 101, 0)] == [16, 4, 3, 1, 1, 16]
    assert images_at_once(5, 25, 100) == 3
    values = tensors(40, (9, 20), images=5)
    image = 2 * 4 * 40 * 180
    plan = planner().plan(values, BILINEAR, Division(32, staged=True))
    assert plan.scratch == 5 * image
    grouped = Planner(planner().layouts, scratch_bytes=3 * image).plan(values, BILINEAR, Division(32, staged=True))
    assert grouped.scratch == 3 * image
    assert [launch.threads[1] for launch in grouped.launches] == [3, 3, 3, 2, 2, 2]
    uneven = SamplerTensors(torch.randn(5, 40, 9, 21)[..., :20], channels_last(values.input), values.grid)
    assert planner().plan(uneven, BILINEAR, Division(32, staged=True)).scratch == 5 * image
    assert planner().plan(values, BILINEAR, Division(32), compute_grad_input=False).scratch == 5 * image // 2


def test_scratch_memory_is_bounded_whatever_the_batch() -> None:
    meta = torch.empty(1000, 128, 256, 256, device="meta")
    values = SamplerTensors(meta, meta, torch.empty(1000, 256, 256, 2, device="meta"))
    assert planner().plan(values, BILINEAR, Division(32, staged=True)).scratch <= 1 << 28


def test_an_image_that_32_bits_do_not_reach_is_left_to_the_kernels_of_the_tree() -> None:
    meta = torch.empty(1, 64, 1 << 13, 1 << 12, device="meta")
    grid = torch.empty(1, 2, 2, 2, device="meta")
    values = SamplerTensors(torch.empty(1, 64, 2, 2, device="meta"), meta, grid)
    assert choose(values, BILINEAR) is None
    half = SamplerTensors(values.grad_output, meta[:, :, : 1 << 12].contiguous(), grid)
    assert choose(half, BILINEAR) == Division(32, staged=True)


def test_a_batch_may_be_larger_than_32_bits_reach() -> None:
    meta = torch.empty(8, 64, 1 << 12, 1 << 12, device="meta")
    values = SamplerTensors(torch.empty(8, 64, 2, 2, device="meta"), meta, torch.empty(8, 2, 2, 2, device="meta"))
    assert choose(values, BILINEAR) == Division(32, staged=True)


def test_without_grad_input_nothing_is_zeroed_or_transposed_back() -> None:
    names = [step.kernel for step in planned(tensors(40), BILINEAR, mask=False).launches]
    assert names == [
        "grid_sampler_to_channels_last_float_32",
        "grid_sampler_2d_backward_lanes_bilinear_float_32_staged",
    ]
    plan = planned(tensors(40), BILINEAR, mask=False)
    assert plan.grad_input is None
    assert len(plan.steps) == 2


def test_a_gradient_of_the_grid_alone_is_left_to_the_kernels_of_the_tree() -> None:
    assert choose(tensors(40), BILINEAR) is not None
    assert choose(tensors(40), BILINEAR, compute_grad_input=False) is None


def test_a_channels_last_input_is_not_transposed() -> None:
    names = [step.kernel for step in planned(tensors(40).each(channels_last), BILINEAR).launches]
    assert names == ["grid_sampler_2d_backward_lanes_bilinear_float_32", "grid_sampler_from_channels_last_float_32"]


def test_large_grids_take_several_launches_of_whole_threadgroups() -> None:
    values = tensors(40, (10, 13)).each(channels_last)
    launches = planner(threads=256).plan(values, BILINEAR, Division(32)).launches
    assert [launch.threads[0] for launch in launches[:-1]] == [256, 256, 128]


def test_positions_are_evenly_spaced_only_if_rows_follow_each_other() -> None:
    whole = torch.empty(2, 3, 4, 5)
    assert position_stride(whole) == 1
    assert position_stride(channels_last(whole)) == 3
    assert position_stride(whole[..., :4]) is None
    assert position_stride(torch.empty(1).expand(2, 3, 4, 5)) == 0
    assert position_stride(torch.empty(2, 3, 4, 1).as_strided((2, 3, 4, 1), (12, 4, 1, 99))) == 1


# A fault, and a call that it must show in.
_FAULTS = {
    "a pixel's sum is lost on the way": (
        "sum[0] = keeps_right ? before[1]",
        "sum[0] = keeps_right ? before[0]",
        37,
    ),
    "half of the lanes are not summed": ("kept += simd_shuffle_xor(is_upper ? x : y, LANES / 2);", "", 37),
    "grad_output of another position is taken": ("staged[row * pitch + i]", "staged[row * pitch]", 37),
    "sums are not zeroed while the input is transposed": ("if (params.zeroes_sums) {", "if (false) {", 37),
    "a transposed tile is read askew": (
        "transposed[at] = static_cast<U>(tile[r * pitch + c]);",
        "transposed[at] = static_cast<U>(tile[r * pitch + c + 1]);",
        37,
    ),
}


def _largest_error(kernels: Kernels, values: SamplerTensors, mode: Mode) -> float:
    result = ExpectedGradients.of(values, mode).judge(HostBackward(kernels).run(values, mode, mask=BOTH), "seeded")
    return max(result.errors.values())


@pytest.mark.parametrize("fault", _FAULTS)
def test_a_seeded_fault_is_found(fault: str, tmp_path: Path) -> None:
    old, new, channels = _FAULTS[fault]
    kernels = fast_kernels.kernels_of(fast_kernels.FAST, tmp_path, old=old, new=new, only="2, bilinear")
    assert not _largest_error(kernels, tensors(channels, like="smooth"), BILINEAR) < 100


def _atomics(kernels: Kernels, values: SamplerTensors, mode: Mode) -> int:
    found = 0

    class Counting:
        kernel_names = kernels.library.kernel_names

        def __dir__(self) -> list[str]:
            return self.kernel_names

        def __getattr__(self, name: str) -> object:
            def launch(*arguments: object, **grid: object) -> None:
                nonlocal found
                kernels.library.kernel(name)(*arguments, **grid)
                found += kernels.library.traffic["atomics"]

            return launch

    HostBackward(Kernels(Counting(), kernels.headers)).run(values, mode, mask=BOTH)
    return found


def test_a_walk_adds_to_two_pixels_a_step_where_the_kernel_below_adds_to_four(tmp_path: Path) -> None:
    """Exact counts: an identity grid, whose samples each move on by one pixel, away from the right and lower edge."""
    rows, columns, channels = 3, 32, 64
    grid = torch.nn.functional.affine_grid(torch.eye(2, 3)[None], [1, 1, rows + 1, columns + 1], align_corners=True)
    image = torch.randn(1, channels, rows + 1, columns + 1)
    values = SamplerTensors(torch.randn(1, channels, rows, columns), image, grid[:, :-1, :-1].contiguous())
    fast = fast_kernels.kernels_of(fast_kernels.FAST, tmp_path, only="2, bilinear", mode=RunMode.TRAFFIC)
    below = fast_kernels.kernels_of(fast_kernels.BELOW, tmp_path, only="2, bilinear", mode=RunMode.TRAFFIC)
    positions, run = rows * columns, 8
    assert _atomics(below, values, BILINEAR) == 4 * positions * channels
    assert _atomics(fast, values, BILINEAR) == (2 * (run - 1) + 4) * (positions // run) * channels
