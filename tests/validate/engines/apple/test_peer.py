"""The overlay's backward beside upstream's: same inputs, same counters, and a worse kernel is noticed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from apple_release import require_release
from metal_kernels import cache
from overlay_kernels import overlay_kernels
from stackproof.engines.apple.build import AirSource, compile_kernels
from stackproof.engines.metal import ALL_DETECTORS, MetalLibrary, RunMode
from stackproof.ops.grid_sampler.apple.peer import (
    COLLISIONS,
    KINDS,
    PeerRow,
    compare_backward,
    peer_table,
    upstream_kernels,
)

MODE = ALL_DETECTORS | RunMode.TRAFFIC


@pytest.fixture(scope="module")
def rows() -> list[PeerRow]:
    library = require_release("2.13")
    ours = overlay_kernels(MODE)
    assert isinstance(ours.library, MetalLibrary)
    kernels = upstream_kernels(library, 2, "half")
    sources = [AirSource.of(library, kernel.name) for kernel in kernels]
    layouts = {one.name: one.kernel().struct("params") for one in sources}
    upstream = compile_kernels(sources, MODE, cache())
    return list(compare_backward(ours, ours.library, upstream, kernels, layouts))


def test_every_interpolation_meets_every_kind_of_inputs(rows: list[PeerRow]) -> None:
    assert [(row.interpolation, row.inputs) for row in rows] == [
        (interpolation, kind) for interpolation in ("bilinear", "nearest", "bicubic") for kind in KINDS
    ]
    assert [text for row in rows for text in row.problems()] == []


def test_both_sides_are_counted_and_16_bit_atomics_cost_twice(rows: list[PeerRow]) -> None:
    for row in rows:
        assert row.upstream.traffic["atomics"] == 2 * row.ours.traffic["atomics"] > 0
        assert row.ours.traffic["loads"] <= row.upstream.traffic["loads"]


def test_adding_up_in_float_is_what_many_samples_per_pixel_show(rows: list[PeerRow]) -> None:
    (row,) = (one for one in rows if one.interpolation == "bilinear" and one.inputs == COLLISIONS)
    assert row.ours.errors["grad_input"] < 0.6
    assert row.upstream.errors["grad_input"] > 10


def test_a_worse_kernel_and_a_report_are_problems(rows: list[PeerRow]) -> None:
    worse = replace(rows[0].ours, errors={"grad_input": 99.0, "grad_grid": float("nan")}, reports=("race",))
    problems = replace(rows[0], ours=worse).problems()
    assert problems[0] == "race"
    assert problems[1].startswith("grad_input is 99 epsilons off, upstream's ")
    assert problems[2].startswith("grad_grid is nan epsilons off")


def test_the_table_has_both_sides_in_every_cell(rows: list[PeerRow]) -> None:
    lines = peer_table(rows)
    assert len(lines) == 2 + len(rows)
    assert all(line.count(" / ") == 5 for line in lines[2:])
