"""Which instantiations of the candidate kernels there are: how the work is divided, and how that is spelled in Metal.

Instantiations are written from the divisions that are asked for, since a measurement wants more of them than a change
may have.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
OVERLAY = HERE.parents[1] / "aten_overlay" / "aten" / "src"
OVERLAY_SOURCE = OVERLAY / "ATen" / "native" / "mps" / "kernels" / "GridSampler.metal"

# Fragments of one source, in this order.
KERNELS = tuple(HERE / "kernels" / f"{name}.metal" for name in ("walk", "lanes", "layout", "positions", "volumes"))

INTERPOLATIONS = ("bilinear", "nearest", "bicubic")
PADDINGS = ("zeros", "border", "reflection")
METAL_NAMES = {torch.float32: "float", torch.float16: "half", torch.bfloat16: "bfloat"}
_REGISTRATIONS = re.compile(r"^REGISTER_GRID_SAMPLER_2D_BACKWARD_OPS\(.*\);\n", re.MULTILINE)


@dataclass(frozen=True)
class Spread:
    """How the work of one position is divided.

    Attributes:
        lanes: that share a position; 0: a thread has the whole position, or for nearest some of its channels.
        channels: of each lane at a time.
        tile: positions of a threadgroup.
        staged: ``grad_output`` goes through threadgroup memory.
    """

    lanes: int
    channels: int = 1
    tile: int = 64
    staged: bool = False

    @property
    def suffix(self) -> str:
        """Part of the kernel's name."""
        if not self.lanes:
            return f"{self.channels}"
        return f"{self.lanes}x{self.channels}x{self.tile}{'_staged' if self.staged else ''}"


@dataclass(frozen=True)
class Turn:
    """How the layout is changed.

    Attributes:
        channels: of a tile.
        pixels: of a tile.
        zeroes: the kernel that turns the input also zeroes the sums, which saves a launch.
    """

    channels: int
    pixels: int
    zeroes: bool = True


TURNS = {8: Turn(8, 128), 16: Turn(16, 64), 32: Turn(32, 64)}


def turn_for(channels: int, *, zeroes: bool = True) -> Turn:
    """The tile that wastes the least."""
    turn = TURNS[8 if channels <= 8 else 16 if channels <= 16 else 32]
    return replace(turn, zeroes=zeroes)


@dataclass(frozen=True)
class Instance:
    """One kernel instantiation.

    Attributes:
        name: host name.
        function: the template.
        arguments: its template arguments.
    """

    name: str
    function: str
    arguments: str

    @property
    def text(self) -> str:
        """The line that makes it."""
        whole = f"{self.function}<{self.arguments}>"
        return f'template [[host_name("{self.name}")]] kernel decltype({whole}) {whole};\n'


def backward_instance(
    interpolation: str, padding: str, dtype: torch.dtype, spread: Spread, dimensions: int = 2
) -> Instance:
    """The kernel of one mode and division of the work."""
    metal = METAL_NAMES[dtype]
    interp = f"Grid{interpolation.title()}<GridPad{padding.title()}>"
    if not spread.lanes:
        kind = "nearest" if interpolation == "nearest" else "positions"
        name = f"positions{dimensions}d_{interpolation}_{padding}_{metal}_{spread.suffix}"
        return Instance(name, f"grid_sampler_{dimensions}d_backward_{kind}", f"{interp}, {metal}, {spread.channels}")
    numbers = f"{spread.lanes}, {spread.channels}, {spread.tile}, {str(spread.staged).lower()}"
    name = f"lanes{dimensions}d_{interpolation}_{padding}_{metal}_{spread.suffix}"
    return Instance(name, f"grid_sampler_{dimensions}d_backward_lanes", f"{interp}, {metal}, {numbers}")


def turn_instances(dtype: torch.dtype, turn: Turn) -> list[Instance]:
    """The kernels that change the layout, there and back."""
    metal = METAL_NAMES[dtype]
    arguments = f"{metal}, {turn.channels}, {turn.pixels}"
    suffix = f"{metal}_{turn.channels}x{turn.pixels}"
    zeroes = f"{arguments}, {str(turn.zeroes).lower()}"
    there = f"to_channels_last_{suffix}{'_zeroes' if turn.zeroes else ''}"
    return [
        Instance(there, "grid_sampler_to_channels_last", zeroes),
        Instance(f"from_channels_last_{suffix}", "grid_sampler_from_channels_last", arguments),
    ]


def write_source(path: Path, instances: Iterable[Instance]) -> Path:
    """The overlay's source without its own instantiations, the candidates, and the instantiations asked for."""
    base = _REGISTRATIONS.sub("", OVERLAY_SOURCE.read_text())
    lines = "".join(dict.fromkeys(instance.text for instance in instances))
    text = base + "\n".join(part.read_text() for part in KERNELS) + lines
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
    return path
