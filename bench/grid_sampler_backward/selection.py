"""Which division of the work a call gets, by what the host function knows: never by the grid's contents.

The thresholds are crossovers measured by explore.py on an NVIDIA H200 and recorded in results/; an Apple GPU may put
them elsewhere. Between divisions that a row ranks within a few percent, the one that needs fewer kernels won.
"""

from __future__ import annotations

import torch
from candidates import Case
from instances import Spread, Turn, turn_for

# Up to so many channels a thread has a whole position: lanes over channels lose on smooth grids, where neighboring
# threads read and add to neighboring addresses in contiguous memory too.
POSITIONS_CHANNELS = {"bilinear": 12, "bicubic": 4, "nearest": 12}
# The same for nearest in float, if nothing would have to change its layout.
NEAREST_FLOAT_CHANNELS = 16
# Up to so many channels, four positions share a simdgroup.
NARROW_CHANNELS = 32
# Fewer positions than this do not fill the GPU with tiles of 64.
FEW_POSITIONS = 1 << 15
# From so many bytes of sums on, zeroing them by a launch of its own is faster than on the way of the input.
SEPARATE_ZEROES_BYTES = 1 << 27


def choose(case: Case) -> tuple[Spread, Turn]:
    """The division of the work, and how the layout is changed if it needs to be."""
    channels = case.input.shape[1]
    zeroes = 4 * case.input.numel() < SEPARATE_ZEROES_BYTES
    return choose_spread(case), turn_for(channels, zeroes=zeroes)


def choose_spread(case: Case) -> Spread:
    """The division of the work alone."""
    channels = case.input.shape[1]
    staged = case.grad_output.stride(1) != 1
    if channels <= POSITIONS_CHANNELS[case.interpolation] and (case.dimensions == 2 or case.interpolation == "nearest"):
        return Spread(0, WHOLE_CHANNELS[case.interpolation])
    # In contiguous float, nearest has neither a layout to change nor a rounding to do.
    is_float_nearest = case.interpolation == "nearest" and case.input.dtype == torch.float32
    if is_float_nearest and (staged or channels <= NEAREST_FLOAT_CHANNELS):
        return Spread(0, WHOLE_CHANNELS[case.interpolation])
    if channels <= NARROW_CHANNELS:
        few = case.positions * case.input.shape[0] < FEW_POSITIONS
        return Spread(8, 2, 16 if few else 64, staged)
    return Spread(32, 2, 32, staged)


# Channels at a time of a thread that has a whole position: more than one did not pay where input is read.
WHOLE_CHANNELS = {"bilinear": 1, "bicubic": 1, "nearest": 8}
# All other divisions that choose_spread can give.
SHARED_POSITIONS = tuple(
    Spread(lanes, 2, tile, staged) for lanes, tile in ((8, 16), (8, 64), (32, 32)) for staged in (False, True)
)
