"""The Python mirror of the host functions follows the overlay's Objective-C++."""

from __future__ import annotations

import itertools
import re

import pytest
import torch

from overlay_kernels import KERNELS, OVERLAY, kernels_before, overlay_kernels
from stackproof.engines.kernels import Kernels
from stackproof.ops.grid_sampler.families.model import largest_offset
from stackproof.ops.grid_sampler.families.series import SeriesBackward, SeriesForward, kernel_name
from stackproof.ops.grid_sampler.host import HostBackward, HostForward
from stackproof.ops.grid_sampler.modes import SAMPLER_2D, SAMPLER_3D, Interpolation, Mode, Padding, Sampler
from stackproof.ops.grid_sampler.table import DTYPES, SHAPES
from stackproof.ops.grid_sampler.values import random_tensors
from stackproof.ops.layouts import virtual_tensor

HOST = (OVERLAY / "aten/src/ATen/native/mps/operations/GridSampler.mm").read_text()
MODE = Mode(Interpolation.NEAREST, Padding.ZEROS, True)
SAMPLERS = pytest.mark.parametrize("sampler", [SAMPLER_2D, SAMPLER_3D], ids=str)


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    return overlay_kernels()


def names(op: str, sampler: Sampler) -> set[str]:
    calls = itertools.product(sampler.modes, DTYPES.values(), (False, True))
    return {kernel_name(op, mode, dtype, wide=wide) for mode, dtype, wide in calls}


def test_the_mirror_names_exactly_the_kernels_that_exist(kernels: Kernels) -> None:
    named = names(SAMPLER_2D.backward, SAMPLER_2D) | names(SAMPLER_3D.backward, SAMPLER_3D)
    assert set(kernels.library.kernel_names) == named | names(SAMPLER_3D.forward, SAMPLER_3D)


def test_the_host_functions_build_kernel_names_in_the_same_way() -> None:
    assert 'fmt::format("{}_{}_{}_{}{}"' in HOST
    assert 'std::is_same_v<idx_type_t, int64_t> ? "_int64" : ""' in HOST


def test_the_host_functions_launch_as_many_positions_at_once(kernels: Kernels) -> None:
    (shift,) = re.findall(r"max_launch = int64_t\{1\} << (\d+)", HOST)
    assert HostBackward(kernels).positions_per_launch == 2 ** int(shift)
    assert HostForward(kernels).positions_per_launch == 2 ** int(shift)


@SAMPLERS
def test_the_host_functions_fill_the_fields_that_the_mirror_fills(kernels: Kernels, sampler: Sampler) -> None:
    filled = set(re.findall(r"params\.(\w+) =", HOST))
    families = [SeriesBackward(), SeriesForward()]
    layouts = [one.layout(kernels.headers, sampler.dims, wide=wide) for one in families for wide in (False, True)]
    assert {name for layout in layouts for name in layout.names} == filled


def test_the_largest_offset_is_that_of_the_last_element() -> None:
    assert largest_offset(torch.empty(2, 3), torch.empty(1).expand(1000)) == 5
    assert largest_offset(torch.empty(4, 6)[:, ::2]) == 22


@SAMPLERS
def test_wide_kernels_are_taken_beyond_32_bits_only(kernels: Kernels, sampler: Sampler) -> None:
    tensors = random_tensors(SHAPES[sampler.dims][1], torch.float32, MODE)
    host = HostBackward(kernels)
    assert not host.run(tensors, MODE, mask=(True, True)).used_wide
    inner = tensors.input[0].stride()
    host.zeros = lambda shape: virtual_tensor(shape, (2**31, *inner), torch.float32)
    assert host.run(tensors, MODE, mask=(True, True)).used_wide
    assert not host.run(tensors, MODE, mask=(False, True)).used_wide


def test_the_forward_takes_wide_kernels_beyond_32_bits_only(kernels: Kernels) -> None:
    tensors = random_tensors(SHAPES[3][1], torch.float32, MODE)
    host = HostForward(kernels)
    narrow = host.run(tensors, MODE)
    assert not host.used_wide
    far = virtual_tensor(narrow.shape, (2**31, *narrow[0].stride()), torch.float32)
    assert torch.equal(host.run(tensors, MODE, far), narrow)
    assert host.used_wide


class NoKernels:
    """A library that must not be asked."""

    def __getattr__(self, name: str) -> object:
        raise AssertionError(f"{name} was asked for")


@SAMPLERS
def test_empty_calls_return_without_a_kernel(sampler: Sampler) -> None:
    kernels = Kernels(NoKernels(), ((OVERLAY / KERNELS / "GridSampler.h").read_bytes(),))
    for shape in SHAPES[sampler.dims][-3:]:
        tensors = random_tensors(shape, torch.float16, MODE)
        outputs = HostBackward(kernels).run(tensors, MODE, mask=(True, True))
        assert outputs.grad_input is not None
        assert outputs.grad_input.shape == tensors.input.shape
        assert torch.equal(outputs.grad_grid, torch.zeros_like(tensors.grid))
        assert HostForward(kernels).run(tensors, MODE).shape == tensors.grad_output.shape


def test_the_forward_before_the_stack_is_found_under_its_old_and_under_its_new_name(kernels: Kernels) -> None:
    mode = Mode(Interpolation.BILINEAR, Padding.BORDER, False)
    tensors = random_tensors(SHAPES[3][1], torch.float16, mode)
    old, new = (HostForward(one).run(tensors, mode) for one in (kernels_before(), kernels))
    assert torch.equal(old, new)


def test_what_no_family_of_kernels_has_is_named(kernels: Kernels) -> None:
    tensors = random_tensors(SHAPES[2][1], torch.float32, MODE)
    with pytest.raises(LookupError, match="no kernels of grid_sampler_2d or its backward"):
        HostForward(kernels).run(tensors, MODE)
    tensors = random_tensors(SHAPES[3][1], torch.float32, MODE)
    with pytest.raises(LookupError, match="no kernel grid_sampler_3d_zeros_float for nearest"):
        HostForward(kernels_before()).run(tensors, MODE)
