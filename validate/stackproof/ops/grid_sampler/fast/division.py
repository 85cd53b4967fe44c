"""How the fast backward divides the work of a call: by what its host function knows, never by the grid's contents.

The thresholds are the host function's, in ``GridSampler.mm`` of the series' layer ``grid_sampler_fast_backward``. They
are crossovers that ``bench/grid_sampler_backward`` measured on an NVIDIA H200; an Apple GPU may put them elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from stackproof.ops.grid_sampler.families.model import INT32_MAX, METAL_NAMES, largest_offset
from stackproof.ops.grid_sampler.modes import Interpolation, Mode, Sampler
from stackproof.ops.grid_sampler.tensors import SamplerTensors

# Up to so many channels a thread has a position: lanes over channels lose on smooth grids, where neighboring threads
# read from and add to neighboring addresses in contiguous memory too.
POSITIONS_CHANNELS = {Interpolation.BILINEAR: 12, Interpolation.NEAREST: 32, Interpolation.BICUBIC: 4}
# Up to so many channels a position has 8 lanes and not 32.
NARROW_CHANNELS = 32
# From so many bytes of sums on, zeroing them by a launch of its own is faster than on the way of the input.
SEPARATE_ZEROS_BYTES = 1 << 27
# Threads of a launch, counted in 32 bits.
THREADS_PER_LAUNCH = 1 << 30


@dataclass(frozen=True)
class Division:
    """How the work of one position is divided.

    Attributes:
        lanes: that share a position; 0: a thread has the whole position, or for nearest some of its channels.
        staged: ``grad_output`` goes through threadgroup memory.
    """

    lanes: int
    staged: bool = False

    @property
    def tile(self) -> int:
        """Positions of a threadgroup of 128 threads."""
        return {0: 128, 8: 64, 32: 32}[self.lanes]

    @property
    def label(self) -> str:
        """For reports."""
        if not self.lanes:
            return "a thread per position"
        return f"{self.lanes} lanes per position{', staged' if self.staged else ''}"

    def kernel_name(self, sampler: Sampler, interpolation: Interpolation, dtype: torch.dtype, *, wide: bool) -> str:
        """The kernel's host name; ``wide`` chooses 64-bit offsets, which only a thread per position has."""
        mode = f"{interpolation.name.lower()}_{METAL_NAMES[dtype]}"
        if not self.lanes:
            return f"{sampler.backward}_positions_{mode}{'_int64' if wide else ''}"
        return f"{sampler.backward}_lanes_{mode}_{self.lanes}{'_staged' if self.staged else ''}"


POSITIONS = Division(0)


def choose(tensors: SamplerTensors, mode: Mode) -> Division:
    """The division that the host function takes for a call whose offsets fit."""
    channels = tensors.input.shape[1]
    staged = tensors.grad_output.stride(1) != 1
    if channels <= POSITIONS_CHANNELS[mode.interpolation] or not fits_lanes(tensors):
        return POSITIONS
    # In contiguous float, nearest has neither a layout to change nor a sum to round.
    if mode.interpolation is Interpolation.NEAREST and tensors.input.dtype is torch.float32 and staged:
        return POSITIONS
    return Division(8 if channels <= NARROW_CHANNELS else 32, staged)


def fits_lanes(tensors: SamplerTensors) -> bool:
    """Whether 32 bits hold every offset within an image of any tensor, and the distance from one image to the next."""
    return all(map(_fits, (tensors.grad_output, tensors.input, tensors.grid)))


def _fits(tensor: Tensor) -> bool:
    offsets = (tensor.numel() // tensor.shape[0], tensor.stride(0), largest_offset(tensor[0]))
    return max(offsets) <= INT32_MAX


def divisions(interpolation: Interpolation, dtype: torch.dtype) -> tuple[Division, ...]:
    """All that there are kernels for."""
    is_nearest = interpolation is Interpolation.NEAREST
    lanes = (32,) if is_nearest else (8, 32)
    staged = (False,) if is_nearest and dtype is torch.float32 else (False, True)
    return (POSITIONS, *(Division(count, one) for count in lanes for one in staged))


def kernel_names(sampler: Sampler) -> frozenset[str]:
    """Of all kernels of one op, those that change layouts included."""
    found = {name for dtype in METAL_NAMES for name in _turn_names(dtype)}
    for interpolation in sampler.interpolations:
        for dtype in METAL_NAMES:
            for one in divisions(interpolation, dtype):
                found.add(one.kernel_name(sampler, interpolation, dtype, wide=False))
                found.add(one.kernel_name(sampler, interpolation, dtype, wide=not one.lanes))
    return frozenset(found)


def turn_channels(channels: int) -> int:
    """Channels of a tile of the kernels that change layouts: the size that wastes the least."""
    return 16 if channels <= 16 else 32


def turn_name(direction: str, dtype: torch.dtype, channels: int) -> str:
    """Host name of the kernel that brings a tensor ``to`` channels-last memory, or back ``from`` it."""
    return f"grid_sampler_{direction}_channels_last_{METAL_NAMES[dtype]}_{turn_channels(channels)}"


def _turn_names(dtype: torch.dtype) -> tuple[str, ...]:
    return tuple(turn_name(way, dtype, channels) for way in ("to", "from") for channels in (16, 32))
