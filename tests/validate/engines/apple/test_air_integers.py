"""Conversions, integer functions and atomics of Apple's compiler, against definitions on Python integers."""

from __future__ import annotations

import math
from functools import cache

import pytest
import torch

import air_modules
from stackproof.engines.metal import ReportKind, RunMode

air_modules.require_llvmlite()

_FLOATS = {"f32": ("float", torch.float32), "f16": ("half", torch.float16), "bf16": ("bfloat", torch.bfloat16)}
_SIGNED = {"i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64}
_UNSIGNED = {"i8": torch.uint8, "i16": torch.uint16, "i32": torch.uint32, "i64": torch.uint64}
_INTEGERS = {"s": _SIGNED, "u": _UNSIGNED}


def _range(sign: str, type_: str) -> tuple[int, int]:
    bits = int(type_[1:])
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if sign == "s" else (0, 2**bits - 1)


def _samples(sign: str, type_: str) -> list[int]:
    low, high = _range(sign, type_)
    return [low, low + 1, low // 3, *(n for n in (-5, -1) if low < 0), 0, 1, 2, 7, 100, high // 3, high - 1, high]


TO_INTEGER = [(f"convert.{sign}.{to}.f.{f}", sign, to, f) for sign in "su" for to in _SIGNED for f in _FLOATS]
FROM_INTEGER = [(f"convert.f.{f}.{sign}.{t}", f, sign, t) for f in _FLOATS for sign in "su" for t in _SIGNED]
FROM_BOOL = [(f"convert.f.{f}.u.i1", f) for f in _FLOATS]
TO_BOOL = [(f"convert.u.i1.f.{f}", f) for f in _FLOATS]
BETWEEN = [(f"convert.f.{to}.f.{given}", to, given) for to in _FLOATS for given in _FLOATS if to != given]
WIDEN = [
    ("convert.s.i64.u.i32", "s", "i64", "u", "i32"),
    ("convert.s.i64.s.i32", "s", "i64", "s", "i32"),
    ("convert.u.i16.u.i32", "u", "i16", "u", "i32"),
    ("convert.u.i64.u.i8", "u", "i64", "u", "i8"),
]
TWO = [(f"{name}.{sign}.{type_}", name, sign, type_) for name in ("max", "min") for sign in "su" for type_ in _SIGNED]
CLAMP = [(f"clamp.{sign}.{type_}", sign, type_) for sign in "su" for type_ in _SIGNED]
ABS = [(f"abs.s.{type_}", type_) for type_ in _SIGNED]
VOTES = [(name, lanes) for name in ("all", "any") for lanes in (2, 3, 4)]


FAMILIES = {"abs", "all", "any", "atomic", "clamp", "convert", "max", "min"}


@cache
def _sources() -> tuple[air_modules.AirSource, ...]:
    def module(name: str, result: str, arguments: list[str]) -> air_modules.AirSource:
        return air_modules.call_module(name.replace(".", "_"), f"air.{name}", result, arguments)

    return (
        *(module(name, to, [_FLOATS[f][0]]) for name, _sign, to, f in TO_INTEGER),
        *(module(name, _FLOATS[f][0], [t]) for name, f, _sign, t in FROM_INTEGER),
        *(module(name, _FLOATS[f][0], ["i1"]) for name, f in FROM_BOOL),
        *(module(name, "i1", [_FLOATS[f][0]]) for name, f in TO_BOOL),
        *(module(name, _FLOATS[to][0], [_FLOATS[given][0]]) for name, to, given in BETWEEN),
        *(module(name, to, [given]) for name, _sign, to, _from, given in WIDEN),
        *(module(name, type_, [type_] * 2) for name, _name, _sign, type_ in TWO),
        *(module(name, type_, [type_] * 3) for name, _sign, type_ in CLAMP),
        *(module(name, type_, [type_]) for name, type_ in ABS),
        *(module(f"{name}.v{lanes}i1", "i1", [f"<{lanes} x i1>"]) for name, lanes in VOTES),
        module("convert.s.v2i64.u.v2i32", "<2 x i64>", ["<2 x i32>"]),
        module("convert.f.v4f32.f.v4bf16", "<4 x float>", ["<4 x bfloat>"]),
        module("convert.f.v2f16.f.v2f32", "<2 x half>", ["<2 x float>"]),
    )


def _run(name: str, out: torch.Tensor, *given: torch.Tensor) -> torch.Tensor:
    air_modules.compiled(_sources()).kernel(name.replace(".", "_"))(out, *given, threads=len(out))
    return out


@pytest.mark.parametrize(("name", "sign", "to", "given"), TO_INTEGER, ids=[case[0] for case in TO_INTEGER])
def test_a_conversion_to_an_integer_cuts_off_and_saturates(name: str, sign: str, to: str, given: str) -> None:
    numbers = [0.0, 0.75, -0.75, 1.5, -1.5, 100.0, 127.0, -129.0, 255.0, 300.0, 65000.0, -1e30, 1e30, 4e9, 2.0**40]
    values = torch.tensor([*numbers, math.inf, -math.inf, math.nan], dtype=_FLOATS[given][1])
    low, high = _range(sign, to)
    wanted = [
        0 if math.isnan(v) else high if v >= high else low if v <= low else math.trunc(v)
        for v in values.double().tolist()
    ]
    assert _run(name, torch.zeros(len(values), dtype=_INTEGERS[sign][to]), values).tolist() == wanted


@pytest.mark.parametrize(("name", "to", "sign", "given"), FROM_INTEGER, ids=[case[0] for case in FROM_INTEGER])
def test_a_conversion_from_an_integer_rounds_to_nearest(name: str, to: str, sign: str, given: str) -> None:
    values = _samples(sign, given)
    held = torch.tensor(values, dtype=_INTEGERS[sign][given])
    found = _run(name, torch.zeros(len(values), dtype=_FLOATS[to][1]), held)
    # Through float first, as every conversion to a 16-bit format here goes.
    through = torch.tensor([_nearest_float(v) for v in values], dtype=torch.float32)
    assert torch.equal(found, through.to(_FLOATS[to][1]))


def _nearest_float(value: int) -> float:
    """To nearest, ties to even, without the double that Python's own conversion would go through."""
    bits = abs(value).bit_length()
    if bits <= 24:
        return float(value)
    shift = bits - 24
    kept, lost = abs(value) >> shift, abs(value) & ((1 << shift) - 1)
    middle = 1 << (shift - 1)
    kept += lost > middle or (lost == middle and kept & 1)
    return math.copysign(float(kept << shift), value)


@pytest.mark.parametrize(("name", "to"), FROM_BOOL, ids=[case[0] for case in FROM_BOOL])
def test_a_bool_becomes_zero_or_one(name: str, to: str) -> None:
    bits = torch.tensor([0, 1], dtype=torch.uint8)
    assert _run(name, torch.full((2,), 9, dtype=_FLOATS[to][1]), bits).tolist() == [0.0, 1.0]


@pytest.mark.parametrize(("name", "given"), TO_BOOL, ids=[case[0] for case in TO_BOOL])
def test_everything_but_zero_becomes_true(name: str, given: str) -> None:
    values = torch.tensor([0.0, -0.0, 0.25, -3.0, math.inf, math.nan], dtype=_FLOATS[given][1])
    assert _run(name, torch.zeros(6, dtype=torch.uint8), values).tolist() == [0, 0, 1, 1, 1, 1]


@pytest.mark.parametrize(("name", "to", "given"), BETWEEN, ids=[case[0] for case in BETWEEN])
def test_a_conversion_between_formats_rounds_ties_to_even(name: str, to: str, given: str) -> None:
    ties = [1 + n * 2.0**-12 for n in range(16)] + [1 + n * 2.0**-9 for n in range(8)]
    values = torch.tensor([*ties, -0.0, 3e38, 65520.0, 6e-8, math.inf, -math.inf], dtype=_FLOATS[given][1])
    assert torch.equal(_run(name, torch.zeros(len(values), dtype=_FLOATS[to][1]), values), values.to(_FLOATS[to][1]))


@pytest.mark.parametrize(("name", "sign", "to", "from_", "given"), WIDEN, ids=[case[0] for case in WIDEN])
def test_an_integer_conversion_keeps_the_value_or_its_low_bits(
    name: str, sign: str, to: str, from_: str, given: str
) -> None:
    values = _samples(from_, given)
    low, _high = _range(sign, to)
    wanted = [(v - low) % 2 ** int(to[1:]) + low for v in values]
    given_tensor = torch.tensor(values, dtype=_INTEGERS[from_][given])
    assert _run(name, torch.zeros(len(values), dtype=_INTEGERS[sign][to]), given_tensor).tolist() == wanted


@pytest.mark.parametrize(("name", "which", "sign", "type_"), TWO, ids=[case[0] for case in TWO])
def test_the_larger_and_the_smaller_of_two_integers(name: str, which: str, sign: str, type_: str) -> None:
    pairs = [(a, b) for a in _samples(sign, type_) for b in _samples(sign, type_)]
    a, b = (torch.tensor(one, dtype=_INTEGERS[sign][type_]) for one in zip(*pairs, strict=True))
    found = _run(name, torch.zeros(len(pairs), dtype=_INTEGERS[sign][type_]), a, b)
    assert found.tolist() == [(max if which == "max" else min)(pair) for pair in pairs]


@pytest.mark.parametrize(("name", "sign", "type_"), CLAMP, ids=[case[0] for case in CLAMP])
def test_an_integer_is_clamped(name: str, sign: str, type_: str) -> None:
    values = _samples(sign, type_)
    dtype = _INTEGERS[sign][type_]
    bounds = [torch.full((len(values),), bound, dtype=dtype) for bound in (1, 50)]
    found = _run(name, torch.zeros(len(values), dtype=dtype), torch.tensor(values, dtype=dtype), *bounds)
    assert found.tolist() == [min(max(v, 1), 50) for v in values]


@pytest.mark.parametrize(("name", "type_"), ABS, ids=[case[0] for case in ABS])
def test_the_magnitude_of_the_least_integer_wraps_around(name: str, type_: str) -> None:
    values = _samples("s", type_)
    low, _high = _range("s", type_)
    found = _run(name, torch.zeros(len(values), dtype=_SIGNED[type_]), torch.tensor(values, dtype=_SIGNED[type_]))
    assert found.tolist() == [v if v == low else abs(v) for v in values]


@pytest.mark.parametrize(("name", "lanes"), VOTES, ids=[f"{name}.v{lanes}i1" for name, lanes in VOTES])
def test_all_and_any_of_a_vector(name: str, lanes: int) -> None:
    pitch = 4 if lanes == 3 else lanes
    rows = [[i >> k & 1 for k in range(pitch)] for i in range(2**pitch)]
    # A vector of three bits takes the memory of four.
    found = _run(f"{name}.v{lanes}i1", torch.zeros(len(rows), dtype=torch.uint8), torch.tensor(rows, dtype=torch.uint8))
    assert found.tolist() == [int((all if name == "all" else any)(row[:lanes])) for row in rows]


def test_vectors_convert_lane_by_lane() -> None:
    whole = torch.tensor([[1, 2**31], [2**32 - 1, 0]], dtype=torch.uint32)
    assert _run("convert.s.v2i64.u.v2i32", torch.zeros(2, 2, dtype=torch.int64), whole).tolist() == whole.tolist()
    small = torch.randn(5, 4).bfloat16()
    assert torch.equal(_run("convert.f.v4f32.f.v4bf16", torch.zeros(5, 4), small), small.float())
    wide = torch.randn(5, 2)
    assert torch.equal(_run("convert.f.v2f16.f.v2f32", torch.zeros(5, 2).half(), wide), wide.half())


def test_a_watched_conversion_out_of_range_is_reported_and_one_in_range_is_not() -> None:
    library = air_modules.compiled((_sources()[2],), RunMode.UNDEFINED)  # to a signed 32-bit integer, from float
    (name,) = library.kernel_names
    out = torch.zeros(2, dtype=_SIGNED[TO_INTEGER[2][2]])
    library.kernel(name)(out, torch.tensor([3.0, -4.0]).to(_FLOATS[TO_INTEGER[2][3]][1]), threads=2)
    assert library.reports() == []
    library.kernel(name)(out, torch.tensor([3.0, math.nan]).to(_FLOATS[TO_INTEGER[2][3]][1]), threads=2)
    assert [report.kind for report in library.reports()] == [ReportKind.UNDEFINED]
    library.clear_reports()


MODIFIES = [
    ("add", "s", "i32", torch.int32, sum),
    ("add", "u", "i32", torch.uint32, sum),
    ("sub", "s", "i32", torch.int32, lambda v: -sum(v)),
    ("max", "s", "i32", torch.int32, lambda v: max(0, *v)),
    ("min", "s", "i32", torch.int32, lambda v: min(0, *v)),
    ("max", "u", "i32", torch.uint32, max),
    ("or", "u", "i32", torch.uint32, lambda v: max(v) | 63),
    ("max", "u", "i64", torch.uint64, max),
]


def _atomic_kernel(name: str, body: str, type_: str, declarations: list[str]) -> air_modules.AirSource:
    buffers = [air_modules.Buffer("total", type_, writable=True), air_modules.Buffer("given", type_)]
    load = f"""  %at = getelementptr {type_}, ptr addrspace(1) %1, i64 %i
  %x = load {type_}, ptr addrspace(1) %at, align 4
"""
    return air_modules.kernel_module(name, buffers, load + body, declarations)


def _modify_source(operation: str, sign: str, type_: str) -> air_modules.AirSource:
    result = "void" if type_ == "i64" else type_
    function = f"air.atomic.global.{operation}.{sign}.{type_}"
    body = f"  call {result} @{function}(ptr addrspace(1) %0, {type_} %x, i32 0, i32 2, i1 true) #1\n"
    named = body if result == "void" else body.replace("  call", "  %old = call")
    declared = [f"{result} @{function}(ptr addrspace(1) captures(none), {type_}, i32, i32, i1)"]
    return _atomic_kernel(f"{operation}_{sign}_{type_}", named, type_, declared)


@pytest.mark.parametrize(("operation", "sign", "type_", "dtype", "fold"), MODIFIES)
def test_an_atomic_of_all_threads_folds_every_value(
    operation: str, sign: str, type_: str, dtype: torch.dtype, fold: object
) -> None:
    values = [*range(1, 64), 77] if sign == "u" else [*range(-20, 60)]
    total = torch.zeros(1, dtype=dtype)
    library = air_modules.compiled((_modify_source(operation, sign, type_),))
    library.kernel(f"{operation}_{sign}_{type_}")(total, torch.tensor(values, dtype=dtype), threads=len(values))
    assert callable(fold)
    wanted = fold(values)
    assert total.tolist() == [wanted]


def test_a_float_atomic_adds_and_returns_what_was_there() -> None:
    function = "air.atomic.global.add.f32"
    body = f"""  %old = tail call float @{function}(ptr addrspace(1) %0, float %x, i32 0, i32 2, i1 true) #1
  %n = add i64 %i, 1
  %to = getelementptr float, ptr addrspace(1) %0, i64 %n
  store float %old, ptr addrspace(1) %to, align 4
"""
    source = _atomic_kernel("add_f32", body, "float", [f"float @{function}(ptr addrspace(1), float, i32, i32, i1)"])
    out = torch.zeros(5)
    air_modules.compiled((source,)).add_f32(out, torch.tensor([1.0, 2.0, 4.0, 8.0]), threads=4)
    assert out.tolist() == [15.0, 0.0, 1.0, 3.0, 7.0]


def _exchange_source(type_: str, name: str) -> air_modules.AirSource:
    """Adds by compare and exchange, as 16-bit atomics are made; also loads and stores atomically."""
    load, swap, store = (f"air.atomic.global.{one}.{name}" for one in ("load", "cmpxchg.weak", "store"))
    add = "add" if type_ == "i32" else "fadd"
    body = f"""  %expected = alloca {type_}, align 4
  %first = call {type_} @{load}(ptr addrspace(1) %0, i32 0, i32 2, i1 true)
  store {type_} %first, ptr %expected, align 4
  br label %again

again:
  %before = load {type_}, ptr %expected, align 4
  %sum = {add} {type_} %before, %x
  %seen = call {type_} @{swap}(ptr addrspace(1) %0, ptr %expected, {type_} %sum, i32 0, i32 0, i32 2, i1 true)
  %bits = bitcast {type_} %seen to i32
  %wanted = bitcast {type_} %before to i32
  %done = icmp eq i32 %bits, %wanted
  br i1 %done, label %end, label %again

end:
  %n = add i64 %i, 1
  %to = getelementptr {type_}, ptr addrspace(1) %0, i64 %n
  call void @{store}(ptr addrspace(1) %to, {type_} %seen, i32 0, i32 2, i1 true)
"""
    declared = [
        f"{type_} @{load}(ptr addrspace(1), i32, i32, i1)",
        f"{type_} @{swap}(ptr addrspace(1), ptr, {type_}, i32, i32, i32, i1)",
        f"void @{store}(ptr addrspace(1), {type_}, i32, i32, i1)",
    ]
    return _atomic_kernel(f"exchange_{name}", body, type_, declared)


@pytest.mark.parametrize(("type_", "name", "dtype"), [("i32", "i32", torch.int32), ("float", "f32", torch.float32)])
def test_compare_and_exchange_returns_the_old_value_and_replaces_the_expected_one(
    type_: str, name: str, dtype: torch.dtype
) -> None:
    out = torch.zeros(5, dtype=dtype)
    library = air_modules.compiled((_exchange_source(type_, name),))
    library.kernel(f"exchange_{name}")(out, torch.tensor([1, 2, 4, 8], dtype=dtype), threads=4)
    assert out.tolist() == [15, 0, 1, 3, 7]


def test_watched_atomics_are_counted_and_do_not_race() -> None:
    library = air_modules.compiled((_exchange_source("i32", "i32"),), RunMode.RACE | RunMode.BOUNDS | RunMode.TRAFFIC)
    out = torch.zeros(5, dtype=torch.int32)
    library.kernel("exchange_i32")(out, torch.tensor([1, 2, 4, 8], dtype=torch.int32), threads=4)
    assert library.reports() == []
    assert library.traffic["atomics"] == 12
    assert library.traffic["loads"] == 4


def test_an_atomic_outside_the_buffer_is_reported() -> None:
    library = air_modules.compiled((_exchange_source("i32", "i32"),), RunMode.BOUNDS)
    library.kernel("exchange_i32")(torch.zeros(3, dtype=torch.int32), torch.ones(4, dtype=torch.int32), threads=4)
    reports = library.reports()
    library.clear_reports()
    assert {report.kind for report in reports} == {ReportKind.OUT_OF_BOUNDS}
    assert reports[0].file == "exchange_i32.ll"
    assert reports[0].line > 1
