"""What the special cases of the forward and of the backward are made from."""

from __future__ import annotations

import torch
from torch import Tensor

from stackproof.ops.grid_sampler.modes import Mode, Sampler
from stackproof.ops.grid_sampler.table import Shape
from stackproof.ops.grid_sampler.tensors import SamplerTensors
from stackproof.ops.grid_sampler.values import random_tensors
from stackproof.ops.layouts import virtual_tensor

_BEYOND_INT32 = 2**31 + 3
_SHAPES = {2: Shape("special", (2, 3, 5, 7), (5, 6)), 3: Shape("special", (2, 3, 4, 5, 7), (3, 5, 4))}


def special_tensors(sampler: Sampler, dtype: torch.dtype, mode: Mode) -> SamplerTensors:
    """Small contiguous tensors with two samples of three channels."""
    return random_tensors(_SHAPES[sampler.dims], dtype, mode)


def spread(values: Tensor) -> Tensor:
    """The same values with more than 2**31 elements from one sample to the next."""
    inner = values[0].contiguous().stride()
    return virtual_tensor(values.shape, (_BEYOND_INT32, *inner), values.dtype).copy_(values)
