"""Exact counts of the overlay's kernels: against what the algorithm needs, and launch by launch against the record."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

import fast_kernels
from overlay_kernels import overlay_kernels
from stackproof.engines.metal import MetalLibrary, RunMode
from stackproof.gates.bench.count import Counted
from stackproof.gates.bench.counts import RowCount, as_record, recorded
from stackproof.gates.bench.record import merged, text
from stackproof.gates.bench.traffic import SECTOR_BYTES, CountedLibrary, Traffic, count, total
from stackproof.ops.grid_sampler.bench.passes import Kernels, scheme_of
from stackproof.ops.grid_sampler.bench.rows import Row, quick_rows
from stackproof.ops.grid_sampler.bench.stand_ins import elements, stand_in, stand_in_case

ROWS = pytest.mark.parametrize("row", quick_rows(), ids=lambda row: row.label)
TAPS = {"nearest": range(1), "bilinear": range(2), "bicubic": range(-1, 3)}


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    """The overlay's, compiled for counting."""
    compiled = overlay_kernels(RunMode.TRAFFIC)
    assert isinstance(compiled.library, MetalLibrary)
    return Kernels(CountedLibrary(compiled.library), compiled.headers)


def counted(kernels: Kernels, row: Row) -> Counted:
    """Of the row's stand-in."""
    scheme = scheme_of(kernels.library, row)
    assert scheme is not None
    assert isinstance(kernels.library, CountedLibrary)
    return Counted(scheme.name, count(kernels.library, scheme.prepare(kernels, row, stand_in_case(row))))


def taps_inside(row: Row) -> int:
    """How many pixels all samples of the stand-in touch, from the coordinates alone."""
    case = stand_in_case(row)
    inside = torch.ones(1, dtype=torch.int64)
    for axis, size in enumerate(reversed(case.input.shape[2:])):
        pixel = (case.grid[..., axis].float() + 1) / 2 * (size - 1)
        first = pixel.round() if row.interpolation == "nearest" else pixel.floor()
        inside = inside * sum(((first + k >= 0) & (first + k < size)).long() for k in TAPS[row.interpolation])
    return int(inside.sum())


@ROWS
def test_every_pixel_inside_is_added_to_and_read_once_a_channel(kernels: Kernels, row: Row) -> None:
    found = counted(kernels, row)
    channels, positions = row.shape[1], math.prod(stand_in(row).output)
    atomics = taps_inside(row) * channels
    kernel = next(step for step in found.steps if not step.name.startswith("aten::")).traffic
    reads = 0 if row.interpolation == "nearest" else atomics
    assert found.total.atomics == atomics
    assert kernel.loads == reads + positions * (channels + row.dimensions)
    assert kernel.stores == positions * row.dimensions


@ROWS
def test_the_counts_are_those_of_the_record_launch_by_launch(kernels: Kernels, row: Row) -> None:
    found = counted(kernels, row)
    new = as_record([RowCount(row, found)])
    assert new[found.scheme][row.label] == recorded()[found.scheme][row.label]


@pytest.mark.needs_reference
def test_the_counts_of_the_fast_backward_are_those_of_the_record(tmp_path: Path) -> None:
    compiled = fast_kernels.kernels_of(fast_kernels.FAST, tmp_path, mode=RunMode.TRAFFIC)
    assert isinstance(compiled.library, MetalLibrary)
    fast = Kernels(CountedLibrary(compiled.library), compiled.headers)
    rows = [row for row in quick_rows() if row.dtype is torch.float32]
    new = as_record(RowCount(row, counted(fast, row)) for row in rows)
    assert new.keys() == {"lanes share a position", "a thread per position"}
    assert new == {scheme: {label: recorded()[scheme][label] for label in of_rows} for scheme, of_rows in new.items()}


def test_a_count_comes_out_the_same_again_whatever_ran_before(kernels: Kernels) -> None:
    first, second = (counted(kernels, quick_rows()[0]) for _ in range(2))
    assert first == second


def test_bytes_and_sectors_follow_from_the_accesses(kernels: Kernels) -> None:
    for row in quick_rows():
        found = counted(kernels, row).total
        assert found.bytes >= row.dtype.itemsize * (found.loads + found.stores + 2 * found.atomics)
        assert found.sectors <= found.loads + found.stores + found.atomics
        assert SECTOR_BYTES * (found.load_sectors + found.store_sectors) * 4 >= found.loads + found.stores
        assert found.atomic_sectors > 0


def test_16_bit_gradients_are_zeroed_added_up_in_float_and_rounded_once(kernels: Kernels) -> None:
    row = next(row for row in quick_rows() if row.dtype is torch.float16)
    steps = counted(kernels, row).steps
    pixels = elements(stand_in(row))
    assert [step.name.partition("_backward")[0] for step in steps] == ["aten::zero_", "grid_sampler_2d", "aten::copy_"]
    assert steps[0].traffic == Traffic(stores=pixels, stored_bytes=4 * pixels, store_sectors=pixels // 8)
    assert steps[2].traffic == Traffic(pixels, pixels, 0, 4 * pixels, 2 * pixels, pixels // 8, pixels // 16)


def test_a_pass_of_no_steps_moves_nothing() -> None:
    assert total([]) == Traffic()


def test_new_counts_take_the_place_of_recorded_ones_and_others_stay() -> None:
    label = quick_rows()[0].label
    scheme = "a thread per position"
    new = {scheme: {label: {"kernel": [1] * 8}, "no row of the table": {}}, "upstream's kernels": {label: {}}}
    record = merged(recorded(), new)
    assert record[scheme][label] == {"kernel": [1] * 8}
    assert record[scheme].keys() == recorded()[scheme].keys()
    assert "upstream's kernels" not in record


def test_the_record_in_the_repository_is_as_it_is_written() -> None:
    import json

    from stackproof.gates.bench.counts import RECORD

    assert RECORD.read_text() == text(recorded())
    assert json.loads(text(recorded())) == recorded()
