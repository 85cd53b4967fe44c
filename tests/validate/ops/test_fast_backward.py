"""The fast backward: how its launches are planned, that its proof finds what is seeded, and what it moves, exactly."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

import fast_kernels
from overlay_kernels import OVERLAY
from stackproof.metal import RunMode
from stackproof.ops import Kernels
from stackproof.ops.grid_sampler.checks import BOTH, ExpectedGradients
from stackproof.ops.grid_sampler.families.fast import FastBackward
from stackproof.ops.grid_sampler.families.registry import BACKWARD, family_of
from stackproof.ops.grid_sampler.fast import division
from stackproof.ops.grid_sampler.fast.division import POSITIONS, Division, choose, kernel_names
from stackproof.ops.grid_sampler.fast.launches import Plan, Planner, position_stride
from stackproof.ops.grid_sampler.host import HostBackward
from stackproof.ops.grid_sampler.modes import SAMPLER_2D, SAMPLER_3D, Interpolation, Mode, Padding
from stackproof.ops.grid_sampler.tensors import SamplerTensors
from stackproof.ops.layouts import channels_last
from stackproof.ops.struct_layout import StructLayout

BILINEAR = Mode(Interpolation.BILINEAR, Padding.ZEROS, align_corners=True)
NEAREST = Mode(Interpolation.NEAREST, Padding.ZEROS, align_corners=True)
BICUBIC = Mode(Interpolation.BICUBIC, Padding.BORDER, align_corners=True)
HOST = (OVERLAY / "grid_sampler_fast_backward/aten/src/ATen/native/mps/operations/GridSampler.mm").read_text()


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
    return planner().plan(values, mode, choose(values, mode), compute_grad_input=mask)


def test_the_plan_names_exactly_the_kernels_that_the_tree_has() -> None:
    source = fast_kernels.source_of(fast_kernels.FAST)
    text = (source.root / source.source).read_text()
    assert "grid_sampler_backward_lanes" in text
    names = kernel_names(SAMPLER_2D) | kernel_names(SAMPLER_3D)
    assert len(names) == 88
    assert isinstance(family_of(BACKWARD, names, SAMPLER_2D), FastBackward)


def test_kernels_of_one_dtype_have_the_planned_names(tmp_path: Path) -> None:
    library = fast_kernels.kernels_of(fast_kernels.FAST, tmp_path).library
    planned_names = {name for name in kernel_names(SAMPLER_2D) | kernel_names(SAMPLER_3D) if "_float" in name}
    forward = {name for name in library.kernel_names if "_backward" not in name and "channels_last" not in name}
    assert set(library.kernel_names) - forward == planned_names


@pytest.mark.parametrize(
    ("pattern", "value"),
    [
        (r"call\.is_nearest\(\) \? (\d+)", division.POSITIONS_CHANNELS[Interpolation.NEAREST]),
        (r"is_bicubic \? (\d+)", division.POSITIONS_CHANNELS[Interpolation.BICUBIC]),
        (r"is_bicubic \? \d+ : (\d+)", division.POSITIONS_CHANNELS[Interpolation.BILINEAR]),
        (r"return \{channels <= (\d+) \? 8 : 32", division.NARROW_CHANNELS),
        (r"separate_zeros_bytes = int64_t\{1\} << (\d+)", division.SEPARATE_ZEROS_BYTES.bit_length() - 1),
        (r"max_launch = int64_t\{1\} << (\d+)", division.THREADS_PER_LAUNCH.bit_length() - 1),
    ],
)
def test_the_host_function_has_the_thresholds_of_the_plan(pattern: str, value: int) -> None:
    assert re.findall(pattern, HOST) == [str(value)]


def test_channels_and_layout_divide_the_work() -> None:
    assert choose(tensors(12), BILINEAR) == POSITIONS
    assert choose(tensors(13), BILINEAR) == Division(8, staged=True)
    assert choose(tensors(33), BILINEAR) == Division(32, staged=True)
    assert choose(tensors(33).each(channels_last), BILINEAR) == Division(32)
    assert choose(tensors(5), BICUBIC) == Division(8, staged=True)
    assert choose(tensors(33), NEAREST) == POSITIONS
    assert choose(tensors(33).each(torch.Tensor.half), NEAREST) == Division(32, staged=True)


def test_an_image_that_32_bits_do_not_reach_is_left_to_a_thread_per_position() -> None:
    meta = torch.empty(1, 64, 1 << 13, 1 << 12, device="meta")
    grid = torch.empty(1, 2, 2, 2, device="meta")
    values = SamplerTensors(torch.empty(1, 64, 2, 2, device="meta"), meta, grid)
    assert choose(values, BILINEAR) == POSITIONS
    half = SamplerTensors(values.grad_output, meta[:, :, : 1 << 12].contiguous(), grid)
    assert choose(half, BILINEAR) == Division(32, staged=True)


def test_a_batch_may_be_larger_than_32_bits_reach() -> None:
    meta = torch.empty(8, 64, 1 << 12, 1 << 12, device="meta")
    values = SamplerTensors(torch.empty(8, 64, 2, 2, device="meta"), meta, torch.empty(8, 2, 2, 2, device="meta"))
    assert choose(values, BILINEAR) == Division(32, staged=True)


def test_without_grad_input_nothing_is_zeroed_or_turned_back() -> None:
    names = [step.kernel for step in planned(tensors(40), BILINEAR, mask=False).launches]
    assert names == [
        "grid_sampler_to_channels_last_float_32",
        "grid_sampler_2d_backward_lanes_bilinear_float_32_staged",
    ]
    plan = planned(tensors(40), BILINEAR, mask=False)
    assert plan.grad_input is None
    assert len(plan.steps) == 2


def test_nearest_without_grad_input_launches_nothing() -> None:
    assert planned(tensors(40), NEAREST, mask=False).launches == ()


def test_a_channels_last_input_is_not_turned() -> None:
    names = [step.kernel for step in planned(tensors(40).each(channels_last), BILINEAR).launches]
    assert names == ["grid_sampler_2d_backward_lanes_bilinear_float_32", "grid_sampler_from_channels_last_float_32"]


def test_large_grids_take_several_launches_of_whole_threadgroups() -> None:
    values = tensors(3, (20, 30))
    launches = planner(threads=256).plan(values, BILINEAR, POSITIONS).launches
    assert [launch.threads[0] for launch in launches] == [256, 256, 128]


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
        "sum[0][k] = keeps_right ? before[1]",
        "sum[0][k] = keeps_right ? before[0]",
        37,
    ),
    "half of the lanes are not summed": ("kept += simd_shuffle_xor(is_upper ? x : y, LANES / 2);", "", 37),
    "channels beyond the last are read": ("} else if (is_inside && has(k)) {", "} else if (is_inside) {", 37),
    "sums are not zeroed on the way": ("if (params.zeroes_sums) {", "if (false) {", 37),
    "a turned tile is read askew": ("turned[at] = tile[c * pitch + p];", "turned[at] = tile[c * pitch + p + 1];", 37),
    "the taker forgets what it was given": ("part += sharing.takes ? given : 0.0f;", "", 3),
    "the giver adds what was taken": ("!(is_last && sharing.gives)", "true", 3),
}


def _largest_error(kernels: Kernels, values: SamplerTensors, mode: Mode) -> float:
    result = ExpectedGradients.of(values, mode).judge(HostBackward(kernels).run(values, mode, mask=BOTH), "seeded")
    return max(result.errors.values())


@pytest.mark.parametrize("fault", _FAULTS)
def test_a_seeded_fault_is_found(fault: str, tmp_path: Path) -> None:
    old, new, channels = _FAULTS[fault]
    kernels = fast_kernels.kernels_of(fast_kernels.FAST, tmp_path, old=old, new=new, only="2, bilinear")
    assert not _largest_error(kernels, tensors(channels, like="smooth"), BILINEAR) < 100


def _threes() -> SamplerTensors:
    """Samples of an image of 3 x 3 pixels, left of its middle and right of it: bicubic windows with the same ends."""
    grid = torch.zeros(1, 4, 32, 2)
    grid[..., 0] = torch.where(torch.arange(32) % 2 == 0, -0.5, 0.5)
    return SamplerTensors(torch.randn(1, 2, 4, 32), torch.randn(1, 2, 3, 3) + 3, grid)


def test_threads_add_up_only_if_all_of_their_pixels_are_the_same(tmp_path: Path) -> None:
    kernels = fast_kernels.kernels_of(fast_kernels.FAST, tmp_path, only="2, bicubic")
    assert _largest_error(kernels, _threes(), BICUBIC) < 2
    old, new = "is_same = is_same && index == first;", "is_same = is_same && (index == first || tap % 3 != 0);"
    wrong = fast_kernels.kernels_of(fast_kernels.FAST, tmp_path, old=old, new=new, only="2, bicubic")
    assert _largest_error(wrong, _threes(), BICUBIC) > 100


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


def test_neighbors_with_a_position_each_share_the_pixels_between_them(tmp_path: Path) -> None:
    """Exact counts: of each simdgroup of 32 neighbors in a row, all but the last give their right pixels away."""
    columns = 32
    grid = torch.nn.functional.affine_grid(torch.eye(2, 3)[None], [1, 1, 4, columns + 1], align_corners=True)
    values = SamplerTensors(
        torch.randn(1, 3, 3, columns), torch.randn(1, 3, 4, columns + 1), grid[:, :-1, :-1].contiguous()
    )
    fast = fast_kernels.kernels_of(fast_kernels.FAST, tmp_path, only="2, bilinear", mode=RunMode.TRAFFIC)
    assert _atomics(fast, values, BILINEAR) == 2 * (columns + 1) * 3 * 3
