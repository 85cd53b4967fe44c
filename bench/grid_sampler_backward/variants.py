"""Which variants are worth measuring for a row, and the instantiations that they take."""

from __future__ import annotations

import torch
from candidates import (
    POSITIONS,
    Instance,
    Spread,
    Turn,
    backward_instance,
    turn_instances,
)
from rows import LAYOUTS, Row

SHAPES = (
    (32, 1, 64),
    (32, 2, 64),
    (32, 4, 32),
    (32, 2, 32),
    (32, 2, 16),
    (16, 1, 64),
    (16, 2, 64),
    (16, 4, 32),
    (16, 2, 16),
    (16, 1, 16),
    (8, 1, 64),
    (8, 2, 64),
    (8, 4, 64),
    (8, 2, 16),
    (8, 4, 16),
)
TURNS = {8: Turn(8, 128), 16: Turn(16, 64), 32: Turn(32, 64)}


def turn_for(channels: int) -> Turn:
    """The tile that wastes the least."""
    return TURNS[8 if channels <= 8 else 16 if channels <= 16 else 32]


def spreads_for(row: Row) -> list[tuple[str, Spread, Turn]]:
    """Name, division of the work and turning tile of each variant for a row."""
    channels = row.shape[1]
    staged = row.layout != LAYOUTS[2]
    found = []
    for lanes, each, tile in SHAPES:
        if lanes * each > max(8, channels) or (channels >= 64 and lanes * each < 32):
            continue
        if row.interpolation == "bicubic" and each > 2:
            continue
        spread = Spread(lanes, each, tile, staged)
        found.append((spread.suffix, spread, turn_for(channels)))
    if channels <= 16 and row.layout != LAYOUTS[1]:
        found.append(("positions", POSITIONS, turn_for(channels)))
    return found


def instances() -> dict[str, list[Instance]]:
    """All kernels of the exploration, by the library that they go into."""
    found: dict[str, list[Instance]] = {}
    for dtype, metal in ((torch.float32, "float"), (torch.float16, "half")):
        found[f"turn_{metal}"] = [one for turn in TURNS.values() for one in turn_instances(dtype, turn)]
        for interpolation in ("bilinear", "bicubic", "nearest"):
            group = [backward_instance(interpolation, "zeros", dtype, POSITIONS)]
            for lanes, each, tile in SHAPES:
                if interpolation == "bicubic" and each > 2:
                    continue
                for staged in (False, True):
                    group.append(backward_instance(interpolation, "zeros", dtype, Spread(lanes, each, tile, staged)))
            found[f"{interpolation}_{metal}"] = group
    return found
