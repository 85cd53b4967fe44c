"""Functions that the lanes of a simdgroup take part in together, barriers and threadgroup memory, in Apple's form."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache

import pytest
import torch

import air_modules
from stackproof.engines.metal import ReportKind, RunMode

air_modules.require_llvmlite()

_TYPES = {
    "f32": ("float", torch.float32),
    "f16": ("half", torch.float16),
    "s.i8": ("i8", torch.int8),
    "s.i16": ("i16", torch.int16),
    "s.i32": ("i32", torch.int32),
    "u.i8": ("i8", torch.uint8),
    "u.i16": ("i16", torch.uint16),
    "u.i32": ("i32", torch.uint32),
}
Fold = Callable[[Sequence[float]], float]
_FOLDS: dict[str, Fold] = {"sum": sum, "product": math.prod, "max": max, "min": min}
REDUCTIONS = [(name, type_) for name in _FOLDS for type_ in _TYPES]
BITWISE = [(name, "u.i32") for name in ("and", "or", "xor")]
SCANS = [
    (f"prefix_{kind}_{name}", type_)
    for kind in ("inclusive", "exclusive")
    for name in ("sum", "product")
    for type_ in ("f32", "s.i32", "u.i32")
]
MOVES: dict[str, Callable[[int, int], int]] = {
    "shuffle": lambda lane, n: n,
    "broadcast": lambda lane, n: n,
    "shuffle_xor": lambda lane, n: lane ^ n,
    "shuffle_up": lambda lane, n: lane - n if lane >= n else lane,
    "shuffle_down": lambda lane, n: lane + n if lane + n < 32 else lane,
}
_MOVED = {**_TYPES, "v2f32": ("<2 x float>", torch.float32), "u.v2i32": ("<2 x i32>", torch.uint32)}
MOVED = [(name, type_) for name in MOVES for type_ in ("f32", "u.i8", "s.i16", "s.i32", "v2f32", "u.v2i32")]
FILLS = [(f"shuffle_and_fill_{way}", type_) for way in ("up", "down") for type_ in ("f32", "s.i32", "s.i8", "v2f32")]
FAMILIES = {
    *(f"simd_{name}" for name, _type in (*REDUCTIONS, *BITWISE, *SCANS, *MOVED, *FILLS)),
    *("simd_any", "simd_all", "wg", "simdgroup", "get_simdgroup_size"),
    *(f"simdgroup_matrix_8x8_{name}" for name in ("init_filled", "init_diag", "load", "store", "multiply_accumulate")),
}
DELTAS = (0, 1, 3, 16, 31)


def _name(function: str, type_: str, *more: object) -> str:
    return "_".join(map(str, (function, type_.replace(".", ""), *more)))


@cache
def _sources() -> tuple[air_modules.AirSource, ...]:
    found = []
    for name, type_ in (*REDUCTIONS, *BITWISE, *SCANS):
        ir = _TYPES[type_][0]
        found.append(air_modules.call_module(_name(name, type_), f"air.simd_{name}.{type_}", ir, [ir]))
    for name, type_ in MOVED:
        ir = _MOVED[type_][0]
        for n in DELTAS:
            function = f"air.simd_{name}.{type_}"
            found.append(air_modules.call_module(_name(name, type_, n), function, ir, [ir], f"i16 {n}"))
    for name, type_ in FILLS:
        ir = _MOVED[type_][0]
        for n, modulo in ((1, 32), (3, 32), (2, 8)):
            constants = f"i16 {n}, i16 {modulo}"
            function = f"air.simd_{name}.{type_}"
            found.append(air_modules.call_module(_name(name, type_, n, modulo), function, ir, [ir, ir], constants))
    for name in ("any", "all"):
        found.append(air_modules.call_module(name, f"air.simd_{name}", "i1", ["i1"]))
    found.append(air_modules.call_module("width", "air.get_simdgroup_size.i16", "i16", []))
    return tuple(found)


def _values(type_: str, count: int) -> torch.Tensor:
    """Small whole numbers, so that sums and products in any order are exact."""
    return torch.tensor([(7 * i) % 3 + (1 if i % 5 else 2) for i in range(count)]).clamp(1, 2).to(_MOVED[type_][1])


@pytest.mark.parametrize(("name", "type_"), REDUCTIONS, ids=[f"air.simd_{n}.{t}" for n, t in REDUCTIONS])
@pytest.mark.parametrize("threads", [32, 45], ids=["whole", "with a partial simdgroup"])
def test_a_reduction_folds_the_lanes_that_take_part(name: str, type_: str, threads: int) -> None:
    ir, dtype = _TYPES[type_]
    del ir
    given = torch.arange(threads).sub(6 if dtype.is_signed else 0).mul(2 if name != "product" else 0).add(1)
    if name == "sum" and type_.endswith("i8"):
        given = given.remainder(3)
    held = given.to(dtype)
    out = torch.zeros_like(held)
    air_modules.compiled(_sources()).kernel(_name(name, type_))(out, held, threads=threads, group_size=threads)
    lanes = held.tolist()
    wanted = [_FOLDS[name](lanes[i // 32 * 32 : i // 32 * 32 + 32]) for i in range(threads)]
    assert out.tolist() == wanted


@pytest.mark.parametrize(("name", "type_"), BITWISE)
def test_a_bitwise_reduction_folds_every_bit(name: str, type_: str) -> None:
    values = [0xF0F0F0F0 | 1 << i for i in range(32)]
    held = torch.tensor(values, dtype=torch.uint32)
    out = torch.zeros_like(held)
    air_modules.compiled(_sources()).kernel(_name(name, type_))(out, held, threads=32)
    wanted = values[0]
    for one in values[1:]:
        wanted = {"and": wanted & one, "or": wanted | one, "xor": wanted ^ one}[name]
    assert out.tolist() == [wanted] * 32


@pytest.mark.parametrize(("name", "type_"), SCANS, ids=[f"air.simd_{n}.{t}" for n, t in SCANS])
def test_a_scan_folds_the_lanes_before(name: str, type_: str) -> None:
    held = _values(type_, 40)
    out = torch.zeros_like(held)
    air_modules.compiled(_sources()).kernel(_name(name, type_))(out, held, threads=40, group_size=40)
    lanes, more = held.tolist(), int("inclusive" in name)
    fold = _FOLDS[name.rpartition("_")[2]]
    assert out.tolist() == [fold(lanes[i // 32 * 32 : i + more]) for i in range(40)]


def _rows(type_: str, count: int, start: int = 0) -> torch.Tensor:
    width = 2 if "v2" in type_ else 1
    return (torch.arange(count * width) + start).reshape(count, width).to(_MOVED[type_][1])


@pytest.mark.parametrize(("name", "type_"), MOVED, ids=[f"air.simd_{n}.{t}" for n, t in MOVED])
@pytest.mark.parametrize("delta", DELTAS)
def test_a_shuffle_takes_the_value_of_the_right_lane(name: str, type_: str, delta: int) -> None:
    held = _rows(type_, 64)
    out = torch.zeros_like(held)
    air_modules.compiled(_sources()).kernel(_name(name, type_, delta))(out, held, threads=64, group_size=64)
    sources = [i // 32 * 32 + MOVES[name](i % 32, delta) for i in range(64)]
    assert out.tolist() == [held[i].tolist() for i in sources]


@pytest.mark.parametrize(("name", "type_"), FILLS, ids=[f"air.simd_{n}.{t}" for n, t in FILLS])
@pytest.mark.parametrize(("delta", "modulo"), [(1, 32), (3, 32), (2, 8)])
def test_a_filling_shuffle_brings_in_the_other_operand(name: str, type_: str, delta: int, modulo: int) -> None:
    held, fill = _rows(type_, 32), _rows(type_, 32, start=64)
    out = torch.zeros_like(held)
    air_modules.compiled(_sources()).kernel(_name(name, type_, delta, modulo))(out, held, fill, threads=32)
    wanted = []
    for lane in range(32):
        within = lane % modulo + (-delta if name.endswith("up") else delta)
        source = lane - lane % modulo + within % modulo
        wanted.append((held if 0 <= within < modulo else fill)[source].tolist())
    assert out.tolist() == wanted


def test_votes_count_only_the_lanes_that_are_there() -> None:
    library = air_modules.compiled(_sources())
    for bits, some, every in (([1] * 7, 1, 1), ([0] * 7, 0, 0), ([0, 0, 1, 0, 0, 0, 0], 1, 0)):
        out = torch.full((7,), 9, dtype=torch.uint8)
        library.any(out, torch.tensor(bits, dtype=torch.uint8), threads=7, group_size=7)
        assert out.tolist() == [some] * 7
        library.all(out, torch.tensor(bits, dtype=torch.uint8), threads=7, group_size=7)
        assert out.tolist() == [every] * 7


def test_a_simdgroup_has_32_lanes() -> None:
    out = torch.zeros(3, dtype=torch.int16)
    air_modules.compiled(_sources()).width(out, threads=3)
    assert out.tolist() == [32] * 3


def test_lanes_in_different_branches_do_not_see_each_other() -> None:
    body = """  %low = icmp ult i64 %i, 8
  br i1 %low, label %first, label %second

first:
  %a = tail call i32 @air.simd_sum.s.i32(i32 1) #1
  br label %end

second:
  %b = tail call i32 @air.simd_sum.s.i32(i32 1) #1
  br label %end

end:
  %sum = phi i32 [ %a, %first ], [ %b, %second ]
  %to = getelementptr i32, ptr addrspace(1) %0, i64 %i
  store i32 %sum, ptr addrspace(1) %to, align 4
"""
    buffers = [air_modules.Buffer("out", "i32", writable=True)]
    source = air_modules.kernel_module("branches", buffers, body, ["i32 @air.simd_sum.s.i32(i32)"])
    out = torch.zeros(32, dtype=torch.int32)
    air_modules.compiled((source,)).branches(out, threads=32)
    assert out.tolist() == [8] * 8 + [24] * 24


def test_reading_a_lane_that_takes_no_part_is_reported() -> None:
    source = air_modules.call_module("missing", "air.simd_shuffle.f32", "float", ["float"], "i16 20")
    library = air_modules.compiled((source,), RunMode.UNINITIALISED)
    library.missing(torch.zeros(8), torch.ones(8), threads=8)
    assert {report.kind for report in library.reports()} == {ReportKind.INACTIVE_LANE}
    library.clear_reports()


_LOCAL = "@local = internal unnamed_addr addrspace(3) global [64 x i32] undef, align 4\n"
_ATTRIBUTES = [("thread_position_in_grid", "uint"), ("thread_position_in_threadgroup", "uint")]


def _exchange(barrier: bool) -> air_modules.AirSource:
    """Each thread writes its place in threadgroup memory and reads another thread's."""
    name = "exchanged" if barrier else "hurried"
    call = "  tail call void @air.wg.barrier(i32 2, i32 1) #1\n" if barrier else ""
    body = f"""  %own = getelementptr inbounds [64 x i32], ptr addrspace(3) @local, i64 0, i32 %2
  store i32 %2, ptr addrspace(3) %own, align 4
{call}  %other = xor i32 %2, 33
  %there = getelementptr inbounds [64 x i32], ptr addrspace(3) @local, i64 0, i32 %other
  %x = load i32, ptr addrspace(3) %there, align 4
  %first = load i32, ptr addrspace(3) getelementptr inbounds ([64 x i32], ptr addrspace(3) @local, i64 0, i64 1)
  %both = add i32 %x, %first
  %to = getelementptr i32, ptr addrspace(1) %0, i64 %i
  store i32 %both, ptr addrspace(1) %to, align 4
"""
    buffers = [air_modules.Buffer("out", "i32", writable=True)]
    declared = ["void @air.wg.barrier(i32, i32)"]
    return air_modules.kernel_module(name, buffers, body, declared, attributes=_ATTRIBUTES, globals_=_LOCAL)


@pytest.mark.parametrize("mode", [RunMode.PLAIN, RunMode.BOUNDS | RunMode.RACE | RunMode.UNINITIALISED])
def test_threadgroup_variables_are_shared_behind_a_barrier(mode: RunMode) -> None:
    library = air_modules.compiled((_exchange(True),), mode)
    out = torch.zeros(128, dtype=torch.int32)
    library.exchanged(out, threads=128, group_size=64)
    assert out.tolist() == [(i % 64 ^ 33) + 1 for i in range(128)]
    assert library.reports() == []


def test_a_missing_barrier_is_a_race_with_both_lines() -> None:
    source = _exchange(False)
    library = air_modules.compiled((source,), RunMode.RACE | RunMode.UNINITIALISED)
    library.hurried(torch.zeros(64, dtype=torch.int32), threads=64, group_size=64)
    found = {report.kind: report for report in library.reports()}
    library.clear_reports()
    assert set(found) == {ReportKind.RACE, ReportKind.UNINITIALISED}
    lines = source.text.split("\n")
    race = found[ReportKind.RACE]

    assert "addrspace(3)" in lines[race.line - 1]
    assert "addrspace(3)" in lines[race.other_line - 1]


def test_a_barrier_that_some_threads_skip_is_reported() -> None:
    body = """  %low = icmp ult i64 %i, 8
  br i1 %low, label %wait, label %end

wait:
  tail call void @air.wg.barrier(i32 2, i32 1) #1
  br label %end

end:
"""
    buffers = [air_modules.Buffer("out", "i32", writable=True)]
    source = air_modules.kernel_module("skipped", buffers, body, ["void @air.wg.barrier(i32, i32)"])
    library = air_modules.compiled((source,))
    library.skipped(torch.zeros(1, dtype=torch.int32), threads=64, group_size=64)
    assert [report.kind for report in library.reports()] == [ReportKind.BARRIER_DIVERGENCE]
    library.clear_reports()


def test_a_simdgroup_barrier_orders_memory_between_lanes() -> None:
    text = _exchange(True).text.replace("@air.wg.barrier", "@air.simdgroup.barrier").replace("%2, 33", "%2, 1")
    source = air_modules.AirSource.of_text("exchanged", text)
    library = air_modules.compiled((source,), RunMode.RACE)
    out = torch.zeros(32, dtype=torch.int32)
    library.exchanged(out, threads=32, group_size=32)
    assert out.tolist() == [(i ^ 1) + 1 for i in range(32)]
    assert library.reports() == []


_MATRIX = {"f32": "float", "f16": "half", "bf16": "bfloat"}
_DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


def _multiply(left: str, right: str, transposed: bool) -> air_modules.AirSource:
    """``out = a * b + 2 * identity``, with ``a`` at row 1, column 2 of rows of 16, and ``b`` perhaps transposed."""
    prefix = "air.simdgroup_matrix_8x8"

    def load(n: int, t: str, origin: str, flip: str) -> str:
        pointer = f"ptr addrspace(1) %{n}, i64 {16 if n == 1 else 8}, <2 x i64> {origin}, i1 {flip}"
        return f"  %m{n} = call <64 x {_MATRIX[t]}> @{prefix}_load.v64{t}.p1{t}({pointer})\n"

    product = f"{prefix}_multiply_accumulate.v64f32.v64{left}.v64{right}.v64f32"
    types = f"<64 x {_MATRIX[left]}>", f"<64 x {_MATRIX[right]}>", "<64 x float>"
    body = (
        load(1, left, "<i64 2, i64 1>", "false")
        + load(2, right, "zeroinitializer", str(transposed).lower())
        + f"  %two = call <64 x float> @{prefix}_init_diag.v64f32.f32(float 2.0)\n"
        + f"  %r = call <64 x float> @{product}({types[0]} %m1, {types[1]} %m2, {types[2]} %two)\n"
        + f"  call void @{prefix}_store.v64f32.p1f32(<64 x float> %r, ptr addrspace(1) %0, i64 8,"
        + " <2 x i64> zeroinitializer, i1 false)\n"
    )
    declared = {
        *(
            f"<64 x {_MATRIX[t]}> @{prefix}_load.v64{t}.p1{t}(ptr addrspace(1), i64, <2 x i64>, i1)"
            for t in (left, right)
        ),
        f"<64 x float> @{product}({', '.join(types)})",
        f"<64 x float> @{prefix}_init_diag.v64f32.f32(float)",
        f"void @{prefix}_store.v64f32.p1f32(<64 x float>, ptr addrspace(1), i64, <2 x i64>, i1)",
    }
    buffers = [
        air_modules.Buffer("out", "float", writable=True),
        *(air_modules.Buffer(name, _MATRIX[t]) for name, t in (("a", left), ("b", right))),
    ]
    name = f"multiply_{left}_{right}_{'t' if transposed else 'n'}"
    return air_modules.kernel_module(name, buffers, body, sorted(declared))


@pytest.mark.parametrize(("left", "right"), [("f32", "f32"), ("f16", "f16"), ("f32", "f16"), ("bf16", "f16")])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("mode", [RunMode.PLAIN, RunMode.BOUNDS | RunMode.UNINITIALISED])
def test_matrices_of_a_simdgroup_multiply(left: str, right: str, transposed: bool, mode: RunMode) -> None:
    a, b = torch.randint(-4, 5, (10, 16)).to(_DTYPES[left]), torch.randint(-4, 5, (8, 8)).to(_DTYPES[right])
    out = torch.zeros(8, 8)
    source = _multiply(left, right, transposed)
    library = air_modules.compiled((source,), mode)
    library.kernel(source.name)(out, a, b, threads=32)
    wanted = a[1:9, 2:10].double() @ (b.T if transposed else b).double() + 2 * torch.eye(8)
    assert torch.equal(out.double(), wanted)
    assert library.reports() == []


def test_a_filled_matrix_has_one_value_everywhere() -> None:
    prefix = "air.simdgroup_matrix_8x8"
    body = f"""  %m = call <64 x float> @{prefix}_init_filled.v64f32.f32(float 3.5)
  call void @{prefix}_store.v64f32.p1f32(<64 x float> %m, ptr addrspace(1) %0, i64 8, <2 x i64> <i64 0, i64 0>, i1 0)
"""
    declared = [
        f"<64 x float> @{prefix}_init_filled.v64f32.f32(float)",
        f"void @{prefix}_store.v64f32.p1f32(<64 x float>, ptr addrspace(1), i64, <2 x i64>, i1)",
    ]
    source = air_modules.kernel_module("filled", [air_modules.Buffer("out", "float", writable=True)], body, declared)
    out = torch.zeros(64)
    air_modules.compiled((source,)).filled(out, threads=32)
    assert out.tolist() == [3.5] * 64


def test_a_matrix_load_outside_the_buffer_is_reported() -> None:
    library = air_modules.compiled((_multiply("f32", "f32", False),), RunMode.BOUNDS)
    library.multiply_f32_f32_n(torch.zeros(8, 8), torch.zeros(5, 16), torch.zeros(8, 8), threads=32)
    assert {report.kind for report in library.reports()} == {ReportKind.OUT_OF_BOUNDS}
    library.clear_reports()
