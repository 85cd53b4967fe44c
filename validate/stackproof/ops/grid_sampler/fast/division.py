"""How the fast backward divides the work of a call: by what its host function knows, never by the grid's contents.

The thresholds are those of ``GridSamplerLanes.mm``. They are crossovers that ``bench/grid_sampler_backward`` measured
on an NVIDIA H200; an Apple GPU may put them elsewhere. Calls that it does not take are left to the tree's own kernels.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from stackproof.ops.grid_sampler.families.model import INT32_MAX, METAL_NAMES, largest_offset
from stackproof.ops.grid_sampler.modes import Interpolation, Mode, Sampler
from stackproof.ops.grid_sampler.tensors import SamplerTensors

# Calls with up to so many channels are not taken: lanes over channels lose on smooth grids, where neighboring threads
# read from and add to neighboring addresses in contiguous memory too.
# Nearest is never taken: it has no gradient with respect to the grid, and one addition a channel.
FEW_CHANNELS = {Interpolation.BILINEAR: 12, Interpolation.BICUBIC: 12}
# In 16 bits a thread per position costs more.
FEW_CHANNELS_IN_16_BITS = {**FEW_CHANNELS, Interpolation.BICUBIC: 4}
# Up to so many channels a position has 8 lanes and not 32.
NARROW_CHANNELS = 32
# From so many bytes of sums on, zeroing them by a launch of its own is faster than while the input is transposed.
SEPARATE_ZEROS_BYTES = 1 << 26
# Images are worked on in groups that need at most so much scratch memory; one image may need more.
SCRATCH_BYTES = 1 << 28
# Threads of a launch, counted in 32 bits.
THREADS_PER_LAUNCH = 1 << 30


@dataclass(frozen=True)
class Division:
    """How the work of one position is divided.

    Attributes:
        lanes: that share a position, 8 or 32.
        staged: ``grad_output`` is transposed in threadgroup memory.
    """

    lanes: int
    staged: bool = False

    @property
    def tile(self) -> int:
        """Positions of a threadgroup of 128 threads."""
        return {8: 64, 32: 32}[self.lanes]

    @property
    def label(self) -> str:
        """For reports."""
        return f"{self.lanes} lanes per position{', staged' if self.staged else ''}"

    def kernel_name(self, sampler: Sampler, interpolation: Interpolation, dtype: torch.dtype) -> str:
        """The kernel's host name."""
        mode = f"{interpolation.name.lower()}_{METAL_NAMES[dtype]}"
        return f"{sampler.backward}_lanes_{mode}_{self.lanes}{'_staged' if self.staged else ''}"


def choose(tensors: SamplerTensors, mode: Mode, *, compute_grad_input: bool = True) -> Division | None:
    """The division that the host function takes for a call, ``None`` where it leaves it to the tree's own kernels."""
    channels = tensors.input.shape[1]
    staged = tensors.grad_output.stride(1) != 1
    table = FEW_CHANNELS if tensors.input.dtype is torch.float32 else FEW_CHANNELS_IN_16_BITS
    few = table.get(mode.interpolation)
    if few is None or not compute_grad_input or channels <= few or not fits_lanes(tensors):
        return None
    return Division(8 if channels <= NARROW_CHANNELS else 32, staged)


def fits_lanes(tensors: SamplerTensors) -> bool:
    """Whether 32 bits hold every offset within an image of any tensor, and the distance from one image to the next."""
    return all(map(_fits, (tensors.grad_output, tensors.input, tensors.grid)))


def _fits(tensor: Tensor) -> bool:
    offsets = (tensor.numel() // tensor.shape[0], tensor.stride(0), largest_offset(tensor[0]))
    return max(offsets) <= INT32_MAX


def divisions() -> tuple[Division, ...]:
    """All that there are kernels for."""
    return tuple(Division(lanes, staged) for lanes in (8, 32) for staged in (False, True))


def kernel_names(sampler: Sampler) -> frozenset[str]:
    """Of all kernels of one op, those that transpose included."""
    found = {name for dtype in METAL_NAMES for name in _transpose_names(dtype)}
    for interpolation in FEW_CHANNELS.keys() & set(sampler.interpolations):
        for dtype in METAL_NAMES:
            for one in divisions():
                found.add(one.kernel_name(sampler, interpolation, dtype))
    return frozenset(found)


def images_at_once(batch: int, scratch_of_image: int, scratch_bytes: int = SCRATCH_BYTES) -> int:
    """Images of a group, all of about the same size."""
    most = max(scratch_bytes // max(scratch_of_image, 1), 1)
    return -(-batch // -(-batch // most))


def transpose_channels(channels: int) -> int:
    """Channels of a tile of the kernels that transpose: the size that wastes the least."""
    return 16 if channels <= 16 else 32


def transpose_name(direction: str, dtype: torch.dtype, channels: int) -> str:
    """Host name of the kernel that brings a tensor ``to`` channels-last memory, or back ``from`` it."""
    return f"grid_sampler_{direction}_channels_last_{METAL_NAMES[dtype]}_{transpose_channels(channels)}"


def _transpose_names(dtype: torch.dtype) -> tuple[str, ...]:
    return tuple(transpose_name(way, dtype, channels) for way in ("to", "from") for channels in (16, 32))
