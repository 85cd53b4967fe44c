"""Which division of the work a call gets, by what the host function knows: never by the grid's contents.

The thresholds are crossovers measured by explore.py on an NVIDIA H200 and recorded in results/; an Apple GPU may put
them elsewhere. Between divisions that a row ranks within a few percent, the one that needs fewer kernels won.
"""

from __future__ import annotations

from candidates import Case
from instances import Spread, Turn, turn_for

# Up to so many channels a thread has a whole position: lanes over channels lose on smooth grids, where neighboring
# threads read and add to neighboring addresses in contiguous memory too.
POSITIONS_CHANNELS = {"bilinear": 8, "bicubic": 4}
# Fewer positions than this do not fill the GPU with tiles of 32.
FEW_POSITIONS = 1 << 15
# From so many bytes of sums on, zeroing them by a launch of its own is faster than on the way of the input.
SEPARATE_ZEROES_BYTES = 1 << 27


def choose(case: Case) -> tuple[Spread, Turn]:
    """The division of the work, and how the layout is changed if it needs to be."""
    channels = case.input.shape[1]
    zeroes = 4 * case.input.numel() < SEPARATE_ZEROES_BYTES
    return choose_spread(case, channels), turn_for(channels, zeroes=zeroes)


def choose_spread(case: Case, channels: int) -> Spread:
    """The division of the work alone."""
    staged = case.grad_output.stride(1) != 1
    if case.interpolation == "nearest" and (staged or channels <= 16):
        return Spread(0, 8 if channels <= 16 else 4)
    if case.dimensions == 2 and channels <= POSITIONS_CHANNELS.get(case.interpolation, 0):
        return Spread(0, 1)
    few = case.positions * case.input.shape[0] < FEW_POSITIONS
    if channels <= 16:
        return Spread(16, 1, 16 if few else 64, staged)
    if channels <= 32:
        return Spread(16, 2, 16 if few else 64, staged)
    return Spread(32, 2, 16 if few else 32, staged)


# All divisions that choose_spread can give, by whether a position has a thread to itself.
WHOLE_POSITIONS = {"bilinear": (Spread(0, 1),), "bicubic": (Spread(0, 1),), "nearest": (Spread(0, 4), Spread(0, 8))}
SHARED_POSITIONS = tuple(
    Spread(lanes, each, tile, staged)
    for lanes, each, tiles in ((16, 1, (16, 64)), (16, 2, (16, 64)), (32, 2, (16, 32)))
    for tile in tiles
    for staged in (False, True)
)
