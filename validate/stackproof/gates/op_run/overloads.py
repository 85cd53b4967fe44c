"""The overloads of an op that compute the same into a result of the caller's, or in place of the first argument."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from stackproof.gates.op_run.recorded import Call, base_name, inputs_of, overloads


@dataclass(frozen=True)
class Out:
    """Results that the caller brings.

    Attributes:
        function: the overload.
        name: in words.
        layout: what is brought.
    """

    function: Any
    name: str
    layout: str

    def fits(self, call: Call, results: Sequence[Tensor]) -> bool:
        """Whether there are as many results as the overload takes."""
        return len(self._names) == len(results)

    @property
    def _names(self) -> list[str]:
        return [one.name for one in self.function._schema.arguments if one.is_out]

    def run(self, call: Call, results: Sequence[Tensor]) -> list[Tensor]:
        """What is in the results after the call."""
        outs = [self._made(one) for one in results]
        self.function(*call.args, **call.kwargs, **dict(zip(self._names, outs, strict=True)))
        return outs

    def _made(self, like: Tensor) -> Tensor:
        sizes = list(like.shape)
        if self.layout == "to be resized":
            return torch.empty([0], dtype=like.dtype, device="mps")
        if self.layout == "transposed" and sizes:
            made = torch.empty(sizes[::-1], dtype=like.dtype, device="mps")
            return made.permute(list(range(like.dim()))[::-1])
        return with_gaps(like) if self.layout == "with gaps" else torch.empty(sizes, dtype=like.dtype, device="mps")


def with_gaps(like: Tensor) -> Tensor:
    """A tensor on the device, every second element of a larger one."""
    if not like.dim():
        return torch.zeros([], dtype=like.dtype, device="mps")
    sizes = [*like.shape[:-1], 2 * like.shape[-1]]
    part: Tensor = torch.zeros(sizes, dtype=like.dtype, device="mps")[..., ::2]
    return part


@dataclass(frozen=True)
class InPlace:
    """The result in place of the first argument.

    Attributes:
        function: the overload.
        name: in words.
        gaps: the first argument has gaps.
    """

    function: Any
    name: str
    gaps: bool = False

    def fits(self, call: Call, results: Sequence[Tensor]) -> bool:
        """Whether the one result has the shape and dtype of the first argument."""
        first = call.args[0] if call.args else None
        if not isinstance(first, Tensor) or len(results) != 1:
            return False
        return (first.shape, first.dtype) == (results[0].shape, results[0].dtype)

    def run(self, call: Call, results: Sequence[Tensor]) -> list[Tensor]:
        """The first argument after the call."""
        first = call.args[0]
        if self.gaps:
            first = with_gaps(first).copy_(first)
        found = self.function(first, *call.args[1:], **call.kwargs)
        assert all(one.data_ptr() == first.data_ptr() for one in tree_leaves(found))
        return [first]


def out_of(function: Any) -> list[Out]:
    """Ways to bring the results of a functional overload."""
    name = base_name(function._schema.name.split("::")[1])
    found = [one for one in overloads(name) if inputs_of(one) == inputs_of(function) and one._schema.is_mutable]
    kinds = ("of the right size", "to be resized", "transposed", "with gaps")
    return [Out(one, f"out= {kind}", kind) for one in found if _has_outs(one) for kind in kinds]


def in_place_of(function: Any) -> list[InPlace]:
    """The overload that works in place, of a contiguous tensor and of one with gaps."""
    name = base_name(function._schema.name.split("::")[1])
    found = [one for one in overloads(f"{name}_") if inputs_of(one) == inputs_of(function) and not _has_outs(one)]
    return [InPlace(one, f"in place{of}", gaps) for one in found for of, gaps in (("", False), (" with gaps", True))]


def _has_outs(function: Any) -> bool:
    return any(one.is_out for one in function._schema.arguments)
