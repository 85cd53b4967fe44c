"""The samples that PyTorch's own tests would use: those of its OpInfo entries, of the installed torch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from stackproof.ops.grid_sampler_2d_backward.modes import Interpolation, Mode, Padding
from stackproof.ops.grid_sampler_2d_backward.values import generator, moved_off_jumps
from stackproof.ops.layouts import SamplerTensors

_ENTRIES = ("grid_sampler_2d", "nn.functional.grid_sample")


def opinfo_samples(dtype: torch.dtype) -> Iterator[tuple[str, Mode, SamplerTensors]]:
    """Name, mode and tensors of every 4-D sample; grid values next to a jump are moved off it.

    Args:
        dtype: of all tensors.
    """
    # Importing the list of all ops takes seconds: only here.
    from torch.testing._internal import common_methods_invocations

    entries: list[Any] = common_methods_invocations.op_db
    for entry in entries:
        if entry.name not in _ENTRIES:
            continue
        torch.manual_seed(0)
        for number, sample in enumerate(entry.sample_inputs("cpu", dtype)):
            if sample.input.dim() != 4:
                continue
            mode = _mode(sample.args[1:], sample.kwargs)
            height, width = sample.input.shape[2:]
            grid = moved_off_jumps(sample.args[0], height, width, mode.align_corners)
            source = generator(entry.name, number)
            size = (*sample.input.shape[:2], *grid.shape[1:3])
            grad_output = torch.randn(size, generator=source).to(dtype)
            yield f"{entry.name} sample {number}", mode, SamplerTensors(grad_output, sample.input, grid)


def _mode(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Mode:
    """The mode of a sample of either entry: integer codes by position, or names by keyword."""
    if args:
        return Mode(Interpolation(args[0]), Padding(args[1]), bool(args[2]))
    return Mode(
        Interpolation[kwargs["mode"].upper()], Padding[kwargs["padding_mode"].upper()], bool(kwargs["align_corners"])
    )
