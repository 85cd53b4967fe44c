"""Which variants are worth measuring for a row, and the instantiations that they take."""

from __future__ import annotations

from dataclasses import replace

import torch
from instances import (
    INTERPOLATIONS,
    METAL_NAMES,
    PADDINGS,
    TURNS,
    Instance,
    Spread,
    Turn,
    backward_instance,
    turn_for,
    turn_instances,
)
from rows import LAYOUTS, Row
from selection import SHARED_POSITIONS, WHOLE_CHANNELS

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
# Channels at a time of the kernels that give a thread a whole position.
POSITION_CHANNELS = {"bilinear": (1, 2, 4), "bicubic": (1,), "nearest": (4, 8, 16)}
SHAPES_3D = ((32, 2, 64), (32, 2, 32), (16, 2, 64), (16, 2, 16), (16, 1, 64), (8, 4, 16))


def spreads_for(row: Row) -> list[tuple[str, Spread, Turn]]:
    """Name, division of the work and turning tile of each variant for a row."""
    channels = row.shape[1]
    staged = row.layout != LAYOUTS[2]
    found = []
    for lanes, each, tile in SHAPES if len(row.shape) == 4 else SHAPES_3D:
        if lanes * each > max(8, channels) or (channels >= 64 and lanes * each < 32):
            continue
        if row.interpolation == "bicubic" and each > 2:
            continue
        spread = Spread(lanes, each, tile, staged)
        found.append((spread.suffix, spread, turn_for(channels)))
        if row.layout == LAYOUTS[0] and (lanes, each) in ((32, 2), (16, 2), (16, 1)):
            found.append((spread.suffix + "_apart", spread, turn_for(channels, zeroes=False)))
    if len(row.shape) == 4 or row.interpolation == "nearest":
        for each in POSITION_CHANNELS[row.interpolation]:
            if each <= max(channels, 1):
                found.append((f"positions{each}", Spread(0, each), turn_for(channels)))
    return found


def instances() -> dict[str, list[Instance]]:
    """All kernels of the exploration, by the library that they go into."""
    found: dict[str, list[Instance]] = {}
    for dtype, metal in ((torch.float32, "float"), (torch.float16, "half")):
        found[f"turn_{metal}"] = _turns(dtype)
        for interpolation in INTERPOLATIONS:
            group = [
                backward_instance(interpolation, "zeros", dtype, Spread(0, each))
                for each in POSITION_CHANNELS[interpolation]
            ]
            if interpolation == "nearest":
                each_channels = POSITION_CHANNELS[interpolation]
                group += [backward_instance(interpolation, "zeros", dtype, Spread(0, n), 3) for n in each_channels]
            for lanes, each, tile in SHAPES:
                if interpolation == "bicubic" and each > 2:
                    continue
                for staged in (False, True):
                    spread = Spread(lanes, each, tile, staged)
                    group.append(backward_instance(interpolation, "zeros", dtype, spread))
                    if interpolation != "bicubic" and (lanes, each, tile) in SHAPES_3D:
                        group.append(backward_instance(interpolation, "zeros", dtype, spread, 3))
            found[f"{interpolation}_{metal}"] = group
    return found


def _turns(dtype: torch.dtype) -> list[Instance]:
    turns = [replace(turn, zeroes=zeroes) for turn in TURNS.values() for zeroes in (False, True)]
    return [one for turn in turns for one in turn_instances(dtype, turn)]


# What the other paddings, and bfloat, are checked with: one of each kind.
CHECKED = (Spread(8, 2, 16, True), Spread(32, 2, 32, False), Spread(32, 2, 32, True))


def selected_instances() -> dict[str, list[Instance]]:
    """The kernels that selection.py chooses from, by library: zeros padding, the dtypes that are measured."""
    found = {}
    for dtype, metal in ((torch.float32, "float"), (torch.float16, "half")):
        for interpolation in INTERPOLATIONS:
            group = _turns(dtype)
            for dimensions in (2,) if interpolation == "bicubic" else (2, 3):
                has_whole = dimensions == 2 or interpolation == "nearest"
                whole = (Spread(0, WHOLE_CHANNELS[interpolation]),) if has_whole else ()
                for spread in (*whole, *SHARED_POSITIONS):
                    group.append(backward_instance(interpolation, "zeros", dtype, spread, dimensions))
            found[f"{interpolation}_{metal}"] = group
    return found


def checked_instances() -> dict[str, list[Instance]]:
    """The kernels of the correctness matrix, by library."""
    found = {}
    for dtype, metal in METAL_NAMES.items():
        group = _turns(dtype)
        for interpolation in INTERPOLATIONS:
            for padding in PADDINGS:
                group.append(backward_instance(interpolation, padding, dtype, Spread(0, 4)))
                group += [backward_instance(interpolation, padding, dtype, spread) for spread in CHECKED]
                if interpolation != "bicubic":
                    group += [backward_instance(interpolation, padding, dtype, spread, 3) for spread in CHECKED]
                if interpolation == "nearest":
                    group.append(backward_instance(interpolation, padding, dtype, Spread(0, 4), 3))
        found[f"matrix_{metal}"] = group
    return found
