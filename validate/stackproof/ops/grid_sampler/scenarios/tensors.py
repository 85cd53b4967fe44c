"""Small tensors to call a sampler with, and what such a call raises."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from stackproof.ops.grid_sampler.modes import Sampler

# Output and input sizes by number of dimensions.
_SIZES = {2: ((4, 6), (5, 7)), 3: ((3, 4, 2), (4, 5, 7))}


def small_tensors(sampler: Sampler, device: str, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    """grad_output (2, 3, *O), input (2, 3, *S) and grid (2, *O, dimensions)."""
    source = torch.Generator().manual_seed(7)
    output, sizes = _SIZES[sampler.dims]
    grid = torch.rand(2, *output, sampler.dims, generator=source) * 2.6 - 1.3
    made = [torch.randn(2, 3, *output, generator=source), torch.randn(2, 3, *sizes, generator=source), grid]
    return [tensor.to(dtype).to(device) for tensor in made]


def raised(call: Callable[[], object]) -> tuple[type[BaseException] | None, str]:
    """Type and message of what the call raises."""
    try:
        call()
    except Exception as error:
        return type(error), str(error)
    return None, ""
