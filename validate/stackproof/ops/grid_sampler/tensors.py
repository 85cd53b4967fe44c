"""The tensors of one call of a grid sampler, and every arrangement of them in memory that must not matter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from stackproof.ops.layouts import at_odd_offset, channels_last, expanded, sliced


@dataclass(frozen=True)
class SamplerTensors:
    """The tensors of one call of a grid sampler's backward, all of one dtype; the forward takes the last two.

    Sizes are given as (N, C, *S) and so on: S are the input's spatial sizes and O the output's, both with the axis that
    varies fastest last, while a grid point has that axis' coordinate first.

    Attributes:
        grad_output: (N, C, *O).
        input: (N, C, *S).
        grid: (N, *O, number of spatial dimensions).
    """

    grad_output: Tensor
    input: Tensor
    grid: Tensor

    @property
    def dims(self) -> int:
        """Number of spatial dimensions."""
        return self.input.dim() - 2

    @property
    def positions(self) -> int:
        """How many samples are taken, in each channel."""
        return self.grid.shape[:-1].numel()

    def each(self, change: Callable[[Tensor], Tensor]) -> SamplerTensors:
        """The same with ``change`` applied to every tensor."""
        return SamplerTensors(change(self.grad_output), change(self.input), change(self.grid))


def _contiguous(tensors: SamplerTensors) -> SamplerTensors:
    return tensors.each(Tensor.contiguous)


def _channels_last(tensors: SamplerTensors) -> SamplerTensors:
    return SamplerTensors(channels_last(tensors.grad_output), channels_last(tensors.input), tensors.grid)


def _permuted(tensors: SamplerTensors) -> SamplerTensors:
    grid = tensors.grid.movedim(-1, 1).contiguous().movedim(1, -1)
    return SamplerTensors(tensors.grad_output, tensors.input.mT.contiguous().mT, grid)


def _expanded_grad_output(tensors: SamplerTensors) -> SamplerTensors:
    # As a sum's backward makes it: one value, all strides zero.
    whole = tensors.grad_output
    one = whole.reshape(-1)[:1] if whole.numel() else whole.new_ones(1)
    return SamplerTensors(one.view([1] * whole.dim()).expand(whole.shape), tensors.input, tensors.grid)


def _expanded_input(tensors: SamplerTensors) -> SamplerTensors:
    return SamplerTensors(tensors.grad_output, expanded(tensors.input), expanded(tensors.grid))


def _sliced(tensors: SamplerTensors) -> SamplerTensors:
    return tensors.each(sliced)


def _odd_offset(tensors: SamplerTensors) -> SamplerTensors:
    return tensors.each(at_odd_offset)


EXPANDED_GRAD_OUTPUT, EXPANDED_INPUT, ODD_OFFSET = "expanded grad_output", "expanded input and grid", "odd offset"

# Layouts that keep the values, and after them those that repeat some of them.
KEEPING: dict[str, Callable[[SamplerTensors], SamplerTensors]] = {
    "contiguous": _contiguous,
    "channels_last": _channels_last,
    "permuted grid": _permuted,
    "sliced": _sliced,
    ODD_OFFSET: _odd_offset,
}
LAYOUTS: dict[str, Callable[[SamplerTensors], SamplerTensors]] = {
    **KEEPING,
    EXPANDED_GRAD_OUTPUT: _expanded_grad_output,
    EXPANDED_INPUT: _expanded_input,
}
