"""What real kernels write that Clang's C++ for OpenCL would not take: it compiles, and means what it means in Metal."""

from __future__ import annotations

import struct

import pytest
import torch

from metal_kernels import library
from stackproof.engines.metal import ALL_DETECTORS, RunMode

MODES = pytest.mark.parametrize("mode", [RunMode.PLAIN, ALL_DETECTORS], ids=["plain", "watched"])


@MODES
def test_a_pointer_into_a_constant_array_fits_a_parameter_with_and_without_const(mode: RunMode) -> None:
    out = torch.zeros(2, dtype=torch.int32)
    library("dialect.metal", mode).constant_data(out, struct.pack("3i", 3, 4, 5), threads=2)
    assert out.tolist() == [12, 5]


@MODES
def test_an_integer_beside_a_bfloat_becomes_one_and_beside_others_stays_an_integer(mode: RunMode) -> None:
    values = torch.tensor([1.5, 2.5, 3.5, 4.5])
    out, other = torch.zeros(4).bfloat16(), torch.zeros(4)
    library("dialect.metal", mode).zero_or_number(values.bfloat16(), out, other, threads=4)
    assert out.tolist() == [4.5, 5.0, 9.0, 2.0]
    assert other.tolist() == [2.0, 5.5, 5.5, 1009.0]


@MODES
@pytest.mark.parametrize("count", [8, 4])
def test_threadgroup_memory_may_be_sized_by_a_conditional(mode: RunMode, count: int) -> None:
    out = torch.zeros(4)
    library("dialect.metal", mode).kernel(f"sized_{count}")(out, threads=4)
    factor = 3 if count == 8 else 1
    assert out.tolist() == [factor * neighbour + 4.0 * count for neighbour in (1, 0, 3, 2)]
