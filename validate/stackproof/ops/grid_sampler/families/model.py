"""What a family of kernels has to know about itself, and what it is given."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import torch
from torch import Tensor

from stackproof.engines.kernels import Kernels
from stackproof.engines.metal.struct_layout import Argument, StructLayout, StructTable
from stackproof.ops.grid_sampler.modes import Mode, Sampler
from stackproof.ops.grid_sampler.tensors import SamplerTensors

METAL_NAMES = {torch.float32: "float", torch.float16: "half", torch.bfloat16: "bfloat"}
POSITIONS_PER_LAUNCH = 2**30
INT32_MAX = 2**31 - 1


@dataclass(frozen=True)
class Outputs:
    """What the backward returns, before undefined gradients are dropped.

    Attributes:
        grad_input: (N, C, *S) in the input's dtype, ``None`` where the mask leaves it out.
        grad_grid: (N, *O, dimensions) contiguous.
        mask_kept: nothing was written to ``grad_input`` where the mask leaves it out.
        used_wide: the kernel with 64-bit offsets was taken, or no tensor that a kernel got needs it.
    """

    grad_input: Tensor | None
    grad_grid: Tensor
    mask_kept: bool = True
    used_wide: bool = False


@dataclass(frozen=True)
class _Call:
    """What both directions are given.

    Attributes:
        kernels: the library and its headers.
        tensors: all of one dtype, on one device, none of them empty.
        mode: how to sample.
        always_wide: take the 64-bit kernels even where 32 bits are enough, to try them on small tensors.
        positions_per_launch: at most so many threads in a launch, for families that split their launches.
    """

    kernels: Kernels
    tensors: SamplerTensors
    mode: Mode
    always_wide: bool
    positions_per_launch: int

    @property
    def sampler(self) -> Sampler:
        """Of the tensors' number of dimensions."""
        return Sampler(self.tensors.dims)

    def is_wide(self, *tensors: Tensor) -> bool:
        """Whether these need kernels with 64-bit offsets, or those were asked for."""
        return self.always_wide or largest_offset(*tensors) > INT32_MAX


@dataclass(frozen=True)
class ForwardCall(_Call):
    """One call of a forward.

    Attributes:
        output: where to write, (N, C, *O).
    """

    output: Tensor


@dataclass(frozen=True)
class BackwardCall(_Call):
    """One call of a backward.

    Attributes:
        grad_grid: where to write that gradient, contiguous; what is not written shows.
        compute_grad_input: the mask.
        zeros: makes the memory that ``grad_input`` is summed in, ``None`` for what the family takes.
    """

    grad_grid: Tensor
    compute_grad_input: bool
    zeros: Callable[[Sequence[int]], Tensor] | None


class ForwardFamily(Protocol):
    """Kernels that sample.

    Attributes:
        splits_launches: a grid with more positions than a launch takes gets several.
    """

    @property
    def splits_launches(self) -> bool: ...

    def is_among(self, names: Collection[str], sampler: Sampler) -> bool:
        """Whether a library with kernels of these names has the family for a sampler."""
        ...

    def run(self, call: ForwardCall) -> bool:
        """Write the output; returns whether the kernel with 64-bit offsets was taken."""
        ...


class BackwardFamily(Protocol):
    """Kernels that compute the gradients.

    Attributes:
        splits_launches: as in :class:`ForwardFamily`.
    """

    @property
    def splits_launches(self) -> bool: ...

    def is_among(self, names: Collection[str], sampler: Sampler) -> bool:
        """Whether a library with kernels of these names has the family for a sampler."""
        ...

    def run(self, call: BackwardCall) -> Outputs:
        """Compute both gradients, as the host function does; ``grad_grid`` always, whatever the mask."""
        ...


def largest_offset(*tensors: Tensor) -> int:
    """The largest offset in elements from a tensor's first element to any of its elements."""
    return max(
        sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
        for tensor in tensors
    )


@lru_cache(maxsize=64)
def params_layout(headers: tuple[bytes, ...], name: str, *arguments: Argument) -> StructLayout:
    """The layout of a kernel's parameters, from the text of the headers that declare them.

    Raises:
        PatchstackError: see :meth:`StructTable.layout`.
    """
    return StructTable(*headers).layout(name, *arguments)


def is_wide(kernel: str) -> bool:
    """Whether a kernel is for offsets of 64 bits, by its host name: ours end in that, upstream's have it inside."""
    return kernel.endswith("_int64") or "_i64_" in kernel
