"""The Python mirror of the host function follows the overlay's Objective-C++."""

from __future__ import annotations

import itertools
import re

import pytest
import torch

from overlay_kernels import OVERLAY, overlay_kernels
from stackproof.ops import Kernels
from stackproof.ops.grid_sampler_2d_backward.host import HostFunction, kernel_name, largest_offset
from stackproof.ops.grid_sampler_2d_backward.modes import ALL_MODES, Interpolation, Mode, Padding
from stackproof.ops.grid_sampler_2d_backward.table import DTYPES, SHAPES
from stackproof.ops.grid_sampler_2d_backward.values import random_tensors
from stackproof.ops.layouts import virtual_tensor

HOST = (OVERLAY / "aten/src/ATen/native/mps/operations/GridSampler.mm").read_text()


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    return overlay_kernels()


def test_the_mirror_names_exactly_the_kernels_that_exist(kernels: Kernels) -> None:
    calls = itertools.product(ALL_MODES, DTYPES.values(), (False, True))
    named = {kernel_name(mode, dtype, wide=wide) for mode, dtype, wide in calls}
    assert {name for name in kernels.library.kernel_names if "backward" in name} == named


def test_the_host_function_builds_kernel_names_in_the_same_way() -> None:
    assert '"grid_sampler_2d_backward_{}_{}_{}{}"' in HOST
    assert 'std::is_same_v<idx_type_t, int64_t> ? "_int64" : ""' in HOST


def test_the_host_function_launches_as_many_positions_at_once(kernels: Kernels) -> None:
    (shift,) = re.findall(r"max_launch = int64_t\{1\} << (\d+)", HOST)
    assert HostFunction(kernels).positions_per_launch == 2 ** int(shift)


def test_the_host_function_fills_the_fields_that_the_mirror_fills(kernels: Kernels) -> None:
    filled = set(re.findall(r"params\.(\w+)(?:\[dim\])? =", HOST))
    (layout,) = {tuple(field.path for field in HostFunction(kernels).layouts[wide].fields) for wide in (False, True)}
    assert filled == set(layout)


def test_the_largest_offset_is_that_of_the_last_element() -> None:
    assert largest_offset(torch.empty(2, 3), torch.empty(1).expand(1000)) == 5
    assert largest_offset(torch.empty(4, 6)[:, ::2]) == 22


def test_wide_kernels_are_taken_beyond_32_bits_only(kernels: Kernels) -> None:
    mode = Mode(Interpolation.NEAREST, Padding.ZEROS, True)
    tensors = random_tensors(SHAPES[1], torch.float32, mode)
    host = HostFunction(kernels)
    assert not host.backward(tensors, mode, mask=(True, True)).used_wide
    host.zeros = lambda shape: virtual_tensor(shape, (2**31, 27, 9, 1), torch.float32)
    assert host.backward(tensors, mode, mask=(True, True)).used_wide
    assert not host.backward(tensors, mode, mask=(False, True)).used_wide


def test_empty_calls_return_without_a_kernel() -> None:
    class NoKernels:
        def __getattr__(self, name: str) -> object:
            raise AssertionError(f"{name} was asked for")

    header = (OVERLAY / "aten/src/ATen/native/mps/kernels/GridSampler.h").read_bytes()
    host = HostFunction(Kernels(NoKernels(), (header,)))
    for shape in SHAPES[-3:]:
        tensors = random_tensors(shape, torch.float16, ALL_MODES[0])
        outputs = host.backward(tensors, ALL_MODES[0], mask=(True, True))
        assert outputs.grad_input is not None
        assert outputs.grad_input.shape == tensors.input.shape
        assert torch.equal(outputs.grad_grid, torch.zeros_like(tensors.grid))
