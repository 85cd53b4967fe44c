"""The samples that PyTorch's own tests would use: those of its OpInfo entries, of the installed torch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from stackproof.ops.grid_sampler.modes import Interpolation, Mode, Padding, Sampler
from stackproof.ops.grid_sampler.tensors import SamplerTensors
from stackproof.ops.grid_sampler.values import generator, moved_off_jumps

# Elements of the output. The float64 reference of PyTorch's largest samples, which have batches of 20 volumes, would
# take longer than all other cases together.
_LARGEST = 2**16


def opinfo_samples(sampler: Sampler, dtype: torch.dtype) -> Iterator[tuple[str, Mode, SamplerTensors]]:
    """Name, mode and tensors of every sample of a sampler's rank, large batches cut to their first images.

    Grid values next to a jump are moved off it.

    Args:
        sampler: chooses the entries, and the samples of the entry that has several ranks.
        dtype: of all tensors.
    """
    # Importing the list of all ops takes seconds: only here.
    from torch.testing._internal import common_methods_invocations

    entries: list[Any] = common_methods_invocations.op_db
    for entry in entries:
        if entry.name not in (sampler.forward, "nn.functional.grid_sample"):
            continue
        torch.manual_seed(0)
        for number, sample in enumerate(entry.sample_inputs("cpu", dtype)):
            if sample.input.dim() != sampler.dims + 2:
                continue
            mode = _mode(sample.args[1:], sample.kwargs)
            images = _images(sample.input, sample.args[0])
            grid = moved_off_jumps(sample.args[0][:images], sample.input.shape[2:], mode.align_corners)
            source = generator(entry.name, number)
            size = (*sample.input[:images].shape[:2], *grid.shape[1:-1])
            grad_output = torch.randn(size, generator=source).to(dtype)
            yield f"{entry.name} sample {number}", mode, SamplerTensors(grad_output, sample.input[:images], grid)


def _images(values: Tensor, grid: Tensor) -> int:
    """How many images of a batch are worth their time: they are sampled independently of each other."""
    outputs_of_one = values.shape[1] * grid.shape[1:-1].numel()
    return max(1, _LARGEST // max(outputs_of_one, 1))


def _mode(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Mode:
    """The mode of a sample of either entry: integer codes by position, or names by keyword."""
    if args:
        return Mode(Interpolation(args[0]), Padding(args[1]), bool(args[2]))
    return Mode(
        Interpolation[kwargs["mode"].upper()], Padding[kwargs["padding_mode"].upper()], bool(kwargs["align_corners"])
    )
