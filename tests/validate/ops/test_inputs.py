"""Layouts keep values and poison the gaps, virtual tensors cost nothing, random samples stay off the jumps."""

from __future__ import annotations

import pytest
import torch

from overlay_kernels import OPS, sampler_proof
from stackproof.ops.grid_sampler.modes import SAMPLER_2D, SAMPLER_3D, Sampler
from stackproof.ops.grid_sampler.opinfo import opinfo_samples
from stackproof.ops.grid_sampler.table import DTYPES, OPINFO, RANDOM, SHAPES
from stackproof.ops.grid_sampler.tensors import EXPANDED_GRAD_OUTPUT, EXPANDED_INPUT, KEEPING, LAYOUTS
from stackproof.ops.grid_sampler.values import moved_off_jumps, near_jump, random_tensors
from stackproof.ops.layouts import at_odd_offset, channels_last, sliced, virtual_tensor

SAMPLERS = pytest.mark.parametrize("sampler", [SAMPLER_2D, SAMPLER_3D], ids=str)


@SAMPLERS
@pytest.mark.parametrize("layout", KEEPING)
def test_a_layout_keeps_the_values(layout: str, sampler: Sampler) -> None:
    tensors = random_tensors(SHAPES[sampler.dims][1], torch.float16, sampler.modes[0])
    arranged = LAYOUTS[layout](tensors)
    for name in ("grad_output", "input", "grid"):
        assert torch.equal(getattr(arranged, name), getattr(tensors, name))


@SAMPLERS
def test_expanded_tensors_have_zero_strides_and_their_shape(sampler: Sampler) -> None:
    tensors = random_tensors(SHAPES[sampler.dims][1], torch.float32, sampler.modes[0])
    arranged = LAYOUTS[EXPANDED_GRAD_OUTPUT](tensors)
    assert set(arranged.grad_output.stride()) == {0}
    assert arranged.grad_output.shape == tensors.grad_output.shape
    arranged = LAYOUTS[EXPANDED_INPUT](tensors)
    assert (arranged.input.stride(0), arranged.grid.stride(0)) == (0, 0)
    assert (arranged.input.shape, arranged.grid.shape) == (tensors.input.shape, tensors.grid.shape)


def test_channels_last_is_pytorchs_own_in_two_and_in_three_dimensions() -> None:
    image, volume = torch.rand(2, 3, 4, 5), torch.rand(2, 3, 4, 5, 6)
    assert channels_last(image).is_contiguous(memory_format=torch.channels_last)
    assert channels_last(volume).is_contiguous(memory_format=torch.channels_last_3d)
    assert torch.equal(channels_last(volume), volume)


def test_a_slice_starts_inside_its_storage_and_has_nan_around_it() -> None:
    view = sliced(torch.arange(24.0).view(1, 2, 3, 4))
    assert view.storage_offset() > 0
    assert view.stride(-1) == 2
    storage = torch.as_strided(view, (view.untyped_storage().nbytes() // 4,), (1,), 0)
    assert int(storage.isnan().sum()) == storage.numel() - view.numel()


def test_an_odd_offset_leaves_16_bit_data_aligned_to_two_bytes_only() -> None:
    assert at_odd_offset(torch.ones(4, 4, dtype=torch.float16)).data_ptr() % 4 == 2


def test_a_virtual_tensor_reaches_beyond_32_bits() -> None:
    tensor = virtual_tensor((2, 3), (2**31 + 3, 1), torch.float32)
    tensor[1] = 5
    assert tensor.untyped_storage().nbytes() > 2**33
    assert tensor.tolist() == [[0, 0, 0], [5, 5, 5]]


@SAMPLERS
@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_random_samples_keep_off_the_jumps(dtype: torch.dtype, sampler: Sampler) -> None:
    for mode in sampler.modes:
        for shape in SHAPES[sampler.dims]:
            grid = random_tensors(shape, dtype, mode).grid
            close = near_jump(grid, shape.input[2:], mode.align_corners)
            assert bool(close.any()) == (shape.on_lattice and grid.numel() > 0)


def test_the_first_coordinate_belongs_to_the_last_axis() -> None:
    # 0.5 is a jump of the axis with 2 pixels only
    close = near_jump(torch.tensor([[0.5, 0.5, 0.5]]), (7, 5, 2), align_corners=False)
    assert close.tolist() == [[True, False, False]]


def test_a_sample_on_an_edge_is_moved_off_it() -> None:
    grid = torch.tensor([[[[-1.0, 1.0]]]])
    moved = moved_off_jumps(grid, (5, 7), align_corners=True)
    assert not near_jump(moved, (5, 7), align_corners=True).any()
    assert (moved - grid).abs().max() < 0.05


def test_random_inputs_are_the_same_on_every_call() -> None:
    first, second = (random_tensors(SHAPES[2][0], torch.float32, SAMPLER_2D.modes[3]) for _ in range(2))
    assert torch.equal(first.grid, second.grid)
    assert torch.equal(first.input, second.input)


def test_large_batches_of_opinfo_are_cut_to_whole_images() -> None:
    sizes = {tuple(tensors.input.shape) for _, _, tensors in opinfo_samples(SAMPLER_3D, torch.float16)}
    assert (2, 21, 22, 23, 24) in sizes
    assert (2, 3, 5, 20, 20) in sizes


@pytest.mark.parametrize("op", OPS)
def test_the_matrix_has_every_mode_dtype_layout_and_mask(op: str) -> None:
    proof = sampler_proof(op)
    batches = list(proof.matrix.full())
    random = [batch for batch in batches if batch.kind == RANDOM]
    modes = proof.sampler.modes
    assert {(batch.mode, batch.dtype) for batch in random} == {(mode, dtype) for mode in modes for dtype in DTYPES}
    assert {name for batch in random if batch.dtype == "float16" for name in batch.layouts} == set(proof.layouts)
    assert {batch.masks for batch in random} == {proof.masks}
    assert {batch.kind for batch in batches} == {RANDOM, OPINFO, *proof.special}
    assert len({batch.label for batch in batches}) == len(batches)


def test_every_axis_of_a_volume_is_of_size_one_in_some_shape() -> None:
    for axis in (2, 3, 4):
        assert any(shape.input[axis] == 1 and max(shape.input[2:]) > 1 for shape in SHAPES[3])


@pytest.mark.parametrize("op", OPS)
def test_the_small_matrix_still_reaches_every_kernel_in_both_index_widths(op: str) -> None:
    proof = sampler_proof(op)
    for kind in (RANDOM, "int64 kernels"):
        reached = {(batch.mode, batch.dtype) for batch in proof.matrix.small() if batch.kind == kind}
        assert len(reached) == len(proof.sampler.modes) * len(DTYPES)
