"""Layouts keep values and poison the gaps, virtual tensors cost nothing, random samples stay off the jumps."""

from __future__ import annotations

import pytest
import torch

from stackproof.ops.grid_sampler_2d_backward.modes import ALL_MODES
from stackproof.ops.grid_sampler_2d_backward.table import (
    DTYPES,
    MASKS,
    OPINFO,
    RANDOM,
    SHAPES,
    SPECIAL,
    full_batches,
    small_batches,
)
from stackproof.ops.grid_sampler_2d_backward.values import moved_off_jumps, near_jump, random_tensors
from stackproof.ops.layouts import LAYOUTS, at_odd_offset, sliced, virtual_tensor


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "expanded grad_output"])
def test_a_layout_keeps_the_values(layout: str) -> None:
    tensors = random_tensors(SHAPES[1], torch.float16, ALL_MODES[0])
    arranged = LAYOUTS[layout](tensors)
    for name in ("grad_output", "input", "grid"):
        assert torch.equal(getattr(arranged, name), getattr(tensors, name))


def test_an_expanded_grad_output_has_only_zero_strides() -> None:
    arranged = LAYOUTS["expanded grad_output"](random_tensors(SHAPES[1], torch.float32, ALL_MODES[0]))
    assert arranged.grad_output.stride() == (0, 0, 0, 0)


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


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_random_samples_keep_off_the_jumps(dtype: torch.dtype) -> None:
    for mode in ALL_MODES:
        for shape in SHAPES:
            grid = random_tensors(shape, dtype, mode).grid
            close = near_jump(grid, *shape.input[2:], mode.align_corners)
            assert bool(close.any()) == (shape.on_lattice and grid.numel() > 0)


def test_a_sample_on_an_edge_is_moved_off_it() -> None:
    grid = torch.tensor([[[[-1.0, 1.0]]]])
    moved = moved_off_jumps(grid, 5, 7, align_corners=True)
    assert not near_jump(moved, 5, 7, align_corners=True).any()
    assert (moved - grid).abs().max() < 0.05


def test_random_inputs_are_the_same_on_every_call() -> None:
    first, second = (random_tensors(SHAPES[0], torch.float32, ALL_MODES[3]) for _ in range(2))
    assert torch.equal(first.grid, second.grid)
    assert torch.equal(first.input, second.input)


def test_the_matrix_has_every_mode_dtype_layout_and_mask() -> None:
    batches = list(full_batches())
    random = [batch for batch in batches if batch.kind == RANDOM]
    assert {(batch.mode, batch.dtype) for batch in random} == {(mode, dtype) for mode in ALL_MODES for dtype in DTYPES}
    assert {name for batch in random if batch.dtype == "float16" for name in batch.layouts} == set(LAYOUTS)
    assert {batch.masks for batch in random} == {MASKS}
    assert {batch.kind for batch in batches} == {RANDOM, OPINFO, *SPECIAL}
    assert len({batch.label for batch in batches}) == len(batches)


def test_the_small_matrix_still_reaches_every_kernel_in_both_index_widths() -> None:
    for kind in (RANDOM, "int64 kernels"):
        reached = {(batch.mode, batch.dtype) for batch in small_batches() if batch.kind == kind}
        assert len(reached) == len(ALL_MODES) * len(DTYPES)
