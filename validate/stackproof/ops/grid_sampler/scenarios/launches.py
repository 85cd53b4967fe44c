"""Which kernels the backward's host function launches, over which grids: those that the launch plan says.

The kernels are proved, counted and measured through a plan in Python, :mod:`stackproof.ops.grid_sampler.fast`. Here the
tree's own host function is asked: a threshold, a tile or a layout that is not the same on both sides shows. Launches of
the tree's own kernels, which get what the hook leaves, are not compared; trees without it have nothing to compare.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch

from stackproof.engines.metal.struct_layout import Argument, StructLayout, Value
from stackproof.engines.standin.device import StandinDevice
from stackproof.engines.standin.interface import Dispatch
from stackproof.engines.standin.tensors import layout_kept_on
from stackproof.ops.grid_sampler.families.lanes import has_lanes
from stackproof.ops.grid_sampler.fast.division import choose
from stackproof.ops.grid_sampler.fast.launches import Planner
from stackproof.ops.grid_sampler.modes import Mode, Padding, Sampler
from stackproof.ops.grid_sampler.table import Shape
from stackproof.ops.grid_sampler.tensors import EXPANDED_GRAD_OUTPUT, LAYOUTS, SamplerTensors
from stackproof.ops.grid_sampler.values import random_tensors
from stackproof.ops.scenarios import HostCase

# On both sides of every threshold.
_CHANNELS = (1, 4, 5, 12, 13, 16, 17, 32, 33, 65)
_SIZES = {2: ((5, 7), (9, 8)), 3: ((3, 4, 5), (4, 3, 6))}
_LAYOUTS = ("contiguous", "channels_last", "sliced", EXPANDED_GRAD_OUTPUT)
_MASKS = ((True, True), (False, True))


@dataclass(frozen=True)
class _Launched:
    kernel: str
    threads: tuple[int, ...]
    group_size: tuple[int, ...]


def launches(device: StandinDevice, sampler: Sampler) -> Iterator[HostCase]:
    """Every interpolation and dtype, on both sides of every threshold, in several layouts."""
    if not has_lanes(device.kernel_names, sampler):
        return
    for interpolation in sampler.interpolations:
        mode = Mode(interpolation, Padding.ZEROS, align_corners=True)
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            for channels in _CHANNELS:
                wrong = tuple(_differences(device, sampler, mode, dtype, channels))
                yield HostCase(f"{interpolation.name.lower()}, {dtype}, {channels} channels", None, wrong)


def _differences(
    device: StandinDevice, sampler: Sampler, mode: Mode, dtype: torch.dtype, channels: int
) -> Iterator[str]:
    sizes, output = _SIZES[sampler.dims]
    values = random_tensors(Shape("launches", (2, channels, *sizes), output), dtype, mode)
    operator = getattr(torch.ops.aten, sampler.backward)
    for layout in _LAYOUTS:
        tensors = LAYOUTS[layout](values)
        moved = tensors.each(layout_kept_on("mps"))
        for mask in _MASKS:
            planned = _planned(tensors, mode, compute_grad_input=mask[0])
            arguments = (moved.grad_output, moved.input, moved.grid, int(mode.interpolation), int(mode.padding))
            call = partial(operator, *arguments, mode.align_corners, list(mask))
            seen = _seen(device, call, may_fail=not planned)
            if seen != planned:
                yield f"{layout}, mask {list(mask)}: {_shown(seen)} instead of {_shown(planned)}"


def _planned(tensors: SamplerTensors, mode: Mode, *, compute_grad_input: bool) -> list[_Launched]:
    """Of the hook's kernels; none where it leaves the call to the tree's own."""
    division = choose(tensors, mode, compute_grad_input=compute_grad_input)
    if division is None:
        return []
    plan = Planner(_unpacked).plan(tensors, mode, division, compute_grad_input=compute_grad_input)
    return [_Launched(one.kernel, one.threads, one.group_size) for one in plan.launches]


class _Unpacked(StructLayout):
    """Of parameters that nobody reads."""

    def pack(self, values: Mapping[str, Value]) -> bytes:
        return b""


def _unpacked(name: str, *arguments: Argument) -> StructLayout:
    return _Unpacked(name, 0, 1, ())


def _seen(device: StandinDevice, call: Callable[[], object], *, may_fail: bool) -> list[_Launched]:
    """What a call launches.

    Args:
        may_fail: the call is left to the tree's own code, whose errors are for other scenarios to judge.
    """
    seen: list[_Launched] = []

    def note(dispatch: Dispatch) -> None:
        if "_lanes_" in dispatch.kernel or "_channels_last_" in dispatch.kernel:
            seen.append(_Launched(dispatch.kernel, dispatch.grid, dispatch.group))

    before, device.before_run = device.before_run, note
    try:
        with contextlib.suppress(*[Exception] * may_fail):
            call()
    finally:
        device.before_run = before
    return seen


def _shown(launched: Sequence[_Launched]) -> str:
    return ", ".join(f"{one.kernel} {one.threads}" for one in launched) or "nothing"
