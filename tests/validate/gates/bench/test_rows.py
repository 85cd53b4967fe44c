"""The table's rows, and the small stand-ins that are counted in their place."""

from __future__ import annotations

import pytest
import torch

from stackproof.ops.grid_sampler.bench.rows import (
    ATTENTION_SHAPES,
    LAYOUTS,
    Row,
    all_rows,
    necessary_bytes,
    pr_rows,
    quick_rows,
)
from stackproof.ops.grid_sampler.bench.stand_ins import elements, exact_noise, stand_in, stand_in_case


def test_the_first_rows_are_those_of_the_pull_request() -> None:
    rows = pr_rows()
    assert len(rows) == 32
    assert all_rows()[:32] == rows
    assert {row.layout for row in rows} == set(LAYOUTS[:2])
    assert all(row.grid == "random" and row.output == row.shape[2:] for row in rows)


def test_the_table_has_what_the_pull_request_leaves_out() -> None:
    rows = all_rows()
    assert {row.grid for row in rows} == {"random", "affine", "flow", "one pixel", "attention"}
    assert {row.interpolation for row in rows} == {"bilinear", "bicubic", "nearest"}
    assert {1, 3} <= {row.shape[1] for row in rows}
    assert {row.op for row in rows} == {"grid_sampler_2d_backward", "grid_sampler_3d_backward"}
    assert any(row.layout == LAYOUTS[2] for row in rows)
    assert len({row.label for row in rows}) == len(rows)


def test_the_quick_table_is_a_part_of_the_whole_with_a_row_of_each_group() -> None:
    quick, rows = quick_rows(), all_rows()
    assert set(quick) <= set(rows)
    assert {row.group for row in quick} == {row.group for row in rows} - {"deformable attention"}


def test_the_bytes_that_must_move_are_each_tensor_once_and_grad_input_twice() -> None:
    row = Row("", (1, 8, 4, 4), (4, 4), "bilinear", torch.float32, LAYOUTS[0], "random")
    assert necessary_bytes(row) == 4 * (128 + 3 * 128 + 2 * 32)
    nearest = Row("", (1, 8, 4, 4), (4, 4), "nearest", torch.float16, LAYOUTS[0], "random")
    assert necessary_bytes(nearest) == 2 * (128 + 2 * 128 + 2 * 32)


@pytest.mark.parametrize("row", [quick_rows()[2], quick_rows()[3], quick_rows()[8]], ids=lambda row: row.label)
def test_tensors_have_the_shape_and_layout_that_the_row_says(row: Row) -> None:
    grad_output, inputs, grid = row.tensors("meta")
    last = torch.channels_last if row.dimensions == 2 else torch.channels_last_3d
    assert inputs.shape == row.shape
    assert grad_output.shape == (*row.shape[:2], *row.output)
    assert grid.shape == (row.shape[0], *row.output, row.dimensions)
    assert inputs.is_contiguous(memory_format=last) == (row.layout != LAYOUTS[0])
    assert grad_output.is_contiguous(memory_format=last) == (row.layout == LAYOUTS[2])


def test_a_stand_in_keeps_channels_and_the_ratio_of_positions_to_pixels() -> None:
    for row in all_rows():
        small = stand_in(row)
        pixels = [torch.Size(one.shape[2:]).numel() for one in (row, small)]
        positions = [torch.Size(one.output).numel() for one in (row, small)]
        assert small.shape[:2] == (1, row.shape[1])
        assert positions[0] * pixels[1] == positions[1] * pixels[0], row.label
        assert 64 <= positions[1] <= 1024
        assert elements(small) < elements(row)


def test_all_levels_of_deformable_attention_are_reduced_exactly() -> None:
    reduced = [stand_in(row) for row in all_rows() if row.grid == "attention"]
    assert len(reduced) == 2 * len(ATTENTION_SHAPES)


def test_coordinates_of_a_stand_in_are_the_same_on_every_machine() -> None:
    noise = exact_noise((3, 1000), device="cpu")
    assert torch.equal(noise, (noise * 4096).round() / 4096)
    assert noise.mean().abs() < 0.1
    assert (noise.std() - 1).abs() < 0.1
    for row in quick_rows():
        one, other = stand_in_case(row), stand_in_case(row)
        assert torch.equal(one.grid, other.grid)
        assert one.grid.float().frac().mul(1 << 24).frac().abs().max() == 0
