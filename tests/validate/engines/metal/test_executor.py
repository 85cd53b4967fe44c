"""Kernels compute what they would on a GPU: barriers, simdgroups, atomics, threadgroup memory, argument layout."""

from __future__ import annotations

import struct

import pytest
import torch

from metal_kernels import library
from stackproof.engines.metal import CallError, MetalLibrary, RunMode


@pytest.fixture(params=[RunMode.PLAIN, RunMode.BOUNDS | RunMode.PERMUTED], ids=["plain", "watched and permuted"])
def clean(request: pytest.FixtureRequest) -> MetalLibrary:
    mode: RunMode = request.param
    compiled = library("clean.metal", mode & ~RunMode.PERMUTED)
    compiled.mode = mode
    return compiled


def test_a_threadgroup_reduction_adds_every_element_once(clean: MetalLibrary) -> None:
    values = torch.randint(-50, 50, (1000,)).float()
    out = torch.zeros(4)
    clean.group_sum(values, out, 1000, threads=1000, group_size=256)
    assert out.tolist() == [chunk.sum().item() for chunk in values.split(256)]


@pytest.mark.parametrize("size", [1, 31, 32, 33, 75, 128])
def test_a_partial_last_simdgroup_reduces_its_own_lanes_only(clean: MetalLibrary, size: int) -> None:
    values = torch.randint(-50, 50, (size,), dtype=torch.int32)
    count = (size + 31) // 32
    sums, largest = torch.zeros(count, dtype=torch.int32), torch.zeros(count, dtype=torch.int32)
    clean.simdgroup_sum_int(values, sums, largest, threads=size, group_size=size)
    assert sums.tolist() == [part.sum().item() for part in values.split(32)]
    assert largest.tolist() == [part.max().item() for part in values.split(32)]


def test_contended_atomics_lose_no_update(clean: MetalLibrary) -> None:
    total, count = torch.zeros(1), torch.zeros(1, dtype=torch.int32)
    largest, bits = torch.zeros(1, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    clean.contended(total, count, largest, bits, threads=4096, group_size=256)
    assert (total.item(), count.item(), largest.item(), bits.item()) == (2048.0, 8192, 4095, -1)


def test_threadgroup_atomics_count_per_group(clean: MetalLibrary) -> None:
    values = torch.randint(0, 16, (600,), dtype=torch.int32)
    out = torch.zeros(16, dtype=torch.int32)
    clean.histogram(values, out, threads=600, group_size=100)
    assert out.tolist() == torch.bincount(values, minlength=16).tolist()


def test_a_barrier_in_a_loop_keeps_rounds_apart(clean: MetalLibrary) -> None:
    values = torch.arange(70, dtype=torch.int32)
    out = values.clone()
    clean.rotate_in_loop(out, 13, threads=70, group_size=70)
    assert torch.equal(out, values.roll(-13))


def test_threadgroup_memory_comes_as_a_parameter(clean: MetalLibrary) -> None:
    values, out = torch.randn(64), torch.zeros(64)
    clean.passed_memory(values, out, threads=64, threadgroup_memory={0: 256})
    assert torch.equal(out, values.flip(0))


def test_lanes_see_the_values_of_other_lanes(clean: MetalLibrary) -> None:
    v = torch.arange(32)
    out = torch.zeros(32, 12, dtype=torch.int32)
    clean.lanes(v.int(), out, threads=32)
    columns = [out[:, i].tolist() for i in range(12)]
    assert columns[0] == (v ^ 5).tolist()
    assert columns[1] == [i + 3 if i < 29 else i for i in range(32)]
    assert columns[2] == [i - 2 if i > 1 else i for i in range(32)]
    assert columns[3] == [7] * 32
    assert columns[4] == v.cumsum(0).tolist()
    assert columns[5] == (v.cumsum(0) - v).tolist()
    assert columns[6] == [0x55555555] * 32
    assert columns[7] == [i + 4 if i < 28 else -1 for i in range(32)]
    assert columns[8] == [sum(range(i // 4 * 4, i // 4 * 4 + 4)) for i in range(32)]
    assert columns[9] == [3] * 32
    assert columns[10] == [0] * 32
    assert columns[11] == v.roll(-30).tolist()


def test_a_simdgroup_multiplies_matrices(clean: MetalLibrary) -> None:
    a, b, out = torch.randn(8, 8).half(), torch.randn(8, 8), torch.zeros(8, 8)
    clean.tile_product(a, b, out, threads=32)
    torch.testing.assert_close(out, a.float() @ b.T + 1)


def test_structs_vectors_and_swizzles_keep_their_layout(clean: MetalLibrary) -> None:
    grid = (3, 2, 2)
    extents = struct.pack("=2i 3f 3f ? 7x", 4, 5, 0.5, 2.0, 8.0, 10.0, 20.0, 30.0, True)
    out = torch.zeros(12, 4)
    clean.structured(out, extents, [[1, 2], [3, 7]], threads=grid, group_size=(2, 2, 1))
    for z in range(2):
        for y in range(2):
            for x in range(3):
                expected = [z + 2 + 30 + 7, y * 4 + 20 + 7, x + 2 + 10 + 7, -5 + 7]
                assert out[(z * 2 + y) * 3 + x].tolist() == expected


def test_half_and_bfloat_round_after_every_operation(clean: MetalLibrary) -> None:
    given = torch.tensor([0.5, 3.0]).half()
    out, wide = torch.zeros(2).half(), torch.zeros(2).bfloat16()
    clean.rounding(given, out, wide, threads=2)
    assert out.tolist() == ((given + 2048.0) + 1.0).tolist()
    expected = given.bfloat16() + 256.0 + 1.0
    assert wide.tolist() == expected.tolist()


def test_storage_offsets_and_strides_of_tensors_are_honoured(clean: MetalLibrary) -> None:
    base = torch.arange(200).float()
    out = torch.zeros(10)
    clean.group_sum(base[100:164], out[7:], 64, threads=64, group_size=256)
    assert out.tolist() == [0.0] * 7 + [base[100:164].sum().item(), 0.0, 0.0]


def test_an_empty_grid_runs_nothing(clean: MetalLibrary) -> None:
    out = torch.zeros(1)
    clean.group_sum(torch.ones(4), out, 4, threads=0, group_size=256)
    assert out.item() == 0


def test_a_signature_names_buffers_and_attributes() -> None:
    signature = library("clean.metal").kernel("group_sum").signature
    assert [(p.name, p.kind.value, p.index) for p in signature.buffers] == [
        ("in", "device", 0),
        ("out", "device", 1),
        ("n", "constant", 2),
    ]
    assert [p.read_only for p in signature.buffers] == [True, False, True]
    assert signature.parameters[3].attribute == "thread_position_in_grid"
    assert signature.buffers[2].element is not None
    assert (signature.buffers[2].element.size, signature.buffers[2].element.number) == (4, "u")


def test_calls_that_do_not_fit_are_refused_with_the_reason() -> None:
    compiled = library("clean.metal")
    with pytest.raises(CallError, match="wrong number of arguments; expected 3"):
        compiled.group_sum(torch.zeros(1), threads=1)
    with pytest.raises(CallError, match="Metal takes 1 to 1024"):
        compiled.group_sum(torch.zeros(1), torch.zeros(1), 1, threads=2048, group_size=2048)
    with pytest.raises(CallError, match="Metal takes 1 to 1024"):
        compiled.group_sum(torch.zeros(1), torch.zeros(1), 1, threads=2048, group_size=0)
    with pytest.raises(CallError, match="no size for threadgroup memory 0"):
        compiled.passed_memory(torch.zeros(1), torch.zeros(1), threads=1)
    with pytest.raises(CallError, match="numbers cannot fill a struct"):
        compiled.structured(torch.zeros(4), 3, [1, 2, 3, 4], threads=1)
    with pytest.raises(CallError, match="too few bytes"):
        compiled.structured(torch.zeros(4), b"1234", [1, 2, 3, 4], threads=1)
    with pytest.raises(CallError, match="number out of range"):
        compiled.group_sum(torch.zeros(1), torch.zeros(1), -1, threads=1)
    with pytest.raises(AttributeError, match="no such kernel"):
        _ = compiled.absent


def test_overlapping_tensors_stay_one_memory_when_watched() -> None:
    compiled = library("clean.metal", RunMode.BOUNDS)
    compiled.mode = RunMode.BOUNDS
    base = torch.arange(64).float()
    compiled.passed_memory(base, base, threads=64, threadgroup_memory={0: 256})
    assert base.tolist() == list(range(63, -1, -1))


def test_traffic_is_counted_exactly() -> None:
    compiled = library("clean.metal", RunMode.BOUNDS)
    compiled.mode = RunMode.TRAFFIC
    compiled.simdgroup_sum_float(torch.ones(64), torch.zeros(2), torch.zeros(2), threads=64, group_size=64)
    assert compiled.traffic == {
        "loads": 128,
        "stores": 4,
        "atomics": 0,
        "loaded_bytes": 512,
        "stored_bytes": 16,
        "load_sectors": 16,
        "store_sectors": 4,
        "atomic_sectors": 0,
    }
    compiled.contended(torch.zeros(1), *(torch.zeros(1, dtype=torch.int32) for _ in range(3)), threads=10)
    assert compiled.traffic["atomics"] == 10 * 5
    compiled.mode = RunMode.BOUNDS
