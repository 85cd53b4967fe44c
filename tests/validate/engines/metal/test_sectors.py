"""Sectors: what the lanes of a simdgroup access together, counted in pieces of 32 bytes."""

from __future__ import annotations

import pytest
import torch

from metal_kernels import library
from stackproof.engines.metal import RunMode


def sectors(kernel: str, *tensors: torch.Tensor, threads: int = 64, group_size: int = 64) -> tuple[int, int, int]:
    """Loaded, stored and atomic sectors of one dispatch."""
    compiled = library("sectors.metal", RunMode.TRAFFIC)
    compiled.kernel(kernel)(*tensors, threads=threads, group_size=group_size)
    traffic = compiled.traffic
    return traffic["load_sectors"], traffic["store_sectors"], traffic["atomic_sectors"]


def test_lanes_that_lie_beside_each_other_share_sectors() -> None:
    assert sectors("beside_each_other", torch.zeros(64), torch.zeros(64)) == (8, 8, 0)


def test_lanes_that_lie_apart_have_a_sector_each() -> None:
    assert sectors("apart", torch.zeros(64), torch.zeros(512)) == (64, 8, 0)


def test_lanes_of_one_simdgroup_on_one_address_touch_one_sector() -> None:
    assert sectors("all_the_same", torch.zeros(1)) == (0, 0, 2)


def test_an_instruction_that_comes_again_touches_its_sectors_again() -> None:
    assert sectors("again_and_again", torch.zeros(64), torch.zeros(8)) == (5 * 2, 8, 0)


def test_lanes_that_begin_inside_a_sector_touch_one_more() -> None:
    assert sectors("beside_each_other", torch.zeros(64), torch.zeros(80)[4:68]) == (2 * 5, 8, 0)


@pytest.mark.parametrize("group_size", [32, 64], ids=str)
def test_simdgroups_share_nothing(group_size: int) -> None:
    assert sectors("all_the_same", torch.zeros(1), threads=128, group_size=group_size) == (0, 0, 4)


def test_counts_do_not_depend_on_the_order_of_threads() -> None:
    compiled = library("sectors.metal", RunMode.TRAFFIC)
    plain = sectors("beside_each_other", torch.zeros(64), torch.zeros(64))
    try:
        compiled.mode = RunMode.TRAFFIC | RunMode.PERMUTED
        assert sectors("beside_each_other", torch.zeros(64), torch.zeros(64)) == plain
    finally:
        compiled.mode = RunMode.TRAFFIC
