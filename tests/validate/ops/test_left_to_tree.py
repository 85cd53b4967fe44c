"""A call that the hook of the fast backward leaves to kernels that no proof knows: skipped and told, not failed."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from stackproof.engines.kernels import Kernels
from stackproof.ops import LeftToTreeError
from stackproof.ops.grid_sampler.checks import BOTH, ExpectedGradients
from stackproof.ops.grid_sampler.host import HostBackward
from stackproof.ops.grid_sampler.modes import Interpolation, Mode, Padding
from stackproof.ops.grid_sampler.table import SHAPES
from stackproof.ops.grid_sampler.values import random_tensors

MODE = Mode(Interpolation.BILINEAR, Padding.ZEROS, align_corners=False)


def host_with(*kernels: str) -> HostBackward:
    return HostBackward(Kernels(SimpleNamespace(**dict.fromkeys(kernels)), ()))


def test_a_call_that_the_hook_leaves_to_unknown_kernels_is_skipped() -> None:
    few_channels = random_tensors(SHAPES[2][0], torch.float32, MODE)
    host = host_with("grid_sampler_2d_backward_lanes_bilinear_float_8", "grid_sampler_2d_backward_of_another_kind")
    with pytest.raises(LeftToTreeError):
        host.run(few_channels, MODE, mask=BOTH)
    result = ExpectedGradients.of(few_channels, MODE).check(host, "few channels")
    assert result.problems == ()
    assert "host-run's to show" in result.skipped


def test_without_a_hook_unknown_kernels_are_an_error() -> None:
    tensors = random_tensors(SHAPES[2][0], torch.float32, MODE)
    with pytest.raises(LookupError) as raised:
        host_with("grid_sampler_2d_backward_of_another_kind").run(tensors, MODE, mask=BOTH)
    assert not isinstance(raised.value, LeftToTreeError)
