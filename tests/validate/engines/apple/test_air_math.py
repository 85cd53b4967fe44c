"""Each floating-point function of Apple's compiler does what Metal's specification says, in every type it comes in.

The definition is written here with torch in float64, apart from the translation. A float result may be two units in the
last place off (the host's libm), a half or bfloat result one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import pytest
import torch

import air_modules

air_modules.require_llvmlite()

Tensor = torch.Tensor
_DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
_IR = {"f32": "float", "f16": "half", "bf16": "bfloat"}
_ULPS = {"f32": 2, "f16": 1, "bf16": 1}
ANY = (-7.5, -3.0, -2.5, -1.5, -1.0, -0.75, -0.5, -0.25, 0.0, 0.125, 0.5, 0.8125, 1.0, 1.5, 2.5, 3.0, 6.28125, 11.0)
UNIT = tuple(x / 16 for x in range(-16, 17))
POSITIVE = (2.0**-14, 0.125, 0.3125, 0.5, 1.0, 1.5, 2.0, 3.0, 10.0, 100.0, 1024.0)


@dataclass(frozen=True)
class Function:
    """A function of ``arity`` arguments, its definition on float64, where to try it, and its types."""

    definition: Callable[..., Tensor]
    domain: tuple[float, ...] = ANY
    arity: int = 1
    types: tuple[str, ...] = ("f32", "f16", "bf16")
    exact: bool = False


def _fract(x: Tensor) -> Tensor:
    return x - x.floor()


def _fmod(x: Tensor, y: Tensor) -> Tensor:
    return torch.where(y == 0, torch.nan, x - y * (x / y).trunc())


FUNCTIONS: dict[str, Function] = {
    "acos": Function(torch.acos, UNIT),
    "asin": Function(torch.asin, UNIT),
    "atan": Function(torch.atan),
    "ceil": Function(torch.ceil, exact=True),
    "cos": Function(torch.cos),
    "cosh": Function(torch.cosh),
    "exp": Function(torch.exp),
    "exp10": Function(lambda x: 10.0**x, UNIT),
    "exp2": Function(torch.exp2),
    "fabs": Function(torch.abs, exact=True),
    "floor": Function(torch.floor, exact=True),
    "log": Function(torch.log, POSITIVE),
    "log10": Function(torch.log10, POSITIVE),
    "log2": Function(torch.log2, POSITIVE),
    "rint": Function(torch.round, exact=True),
    "round": Function(lambda x: x.sign() * (x.abs() + 0.5).floor(), exact=True),
    "rsqrt": Function(torch.rsqrt, POSITIVE),
    "sin": Function(torch.sin),
    "sinh": Function(torch.sinh),
    "sinpi": Function(lambda x: torch.where(x == x.round(), 0.0, torch.sin(math.pi * x))),
    "sqrt": Function(torch.sqrt, POSITIVE),
    "tan": Function(torch.tan),
    "tanh": Function(torch.tanh),
    "trunc": Function(torch.trunc, exact=True),
    "fract": Function(_fract),
    "atan2": Function(torch.atan2, arity=2),
    "copysign": Function(torch.copysign, arity=2, exact=True),
    "fmax": Function(torch.fmax, arity=2, exact=True),
    "fmin": Function(torch.fmin, arity=2, exact=True),
    "fmod": Function(_fmod, arity=2),
    "pow": Function(torch.pow, POSITIVE[:8], arity=2),
    "powr": Function(torch.pow, POSITIVE[:8], arity=2),
    "fma": Function(lambda x, y, z: x * y + z, arity=3),
    "clamp": Function(lambda x, y, z: torch.minimum(torch.maximum(x, y), z), arity=3, exact=True),
}
_FAST = set(FUNCTIONS) - {"fract", "fma"}
FUNCTIONS |= {f"fast_{name}": replace(FUNCTIONS[name], types=("f32",)) for name in sorted(_FAST)}
FAMILIES = {*FUNCTIONS, "dot", "ldexp", "nextafter", "sincos", "fast_sincos"}
CASES = [(name, type_) for name, function in FUNCTIONS.items() for type_ in function.types]
VECTORS = [
    ("fabs", 2, "f32"),
    ("fmax", 2, "f32"),
    ("fract", 3, "f32"),
    ("fma", 4, "f32"),
    ("floor", 2, "f16"),
    ("sin", 4, "f16"),
]


@cache
def _sources() -> tuple[air_modules.AirSource, ...]:
    found = []
    for name, type_ in CASES:
        arguments = [_IR[type_]] * FUNCTIONS[name].arity
        found.append(air_modules.call_module(f"{name}_{type_}", f"air.{name}.{type_}", _IR[type_], arguments))
    for name, lanes, type_ in VECTORS:
        vector = f"<{lanes} x {_IR[type_]}>"
        arguments = [vector] * FUNCTIONS[name].arity
        found.append(air_modules.call_module(f"{name}_v{lanes}", f"air.{name}.v{lanes}{type_}", vector, arguments))
    return tuple(found)


def _arguments(function: Function, dtype: torch.dtype) -> list[Tensor]:
    """Every combination of values of the domain."""
    values = torch.tensor(function.domain, dtype=dtype)
    grid = torch.meshgrid(*[values] * function.arity, indexing="ij")
    return [axis.flatten().contiguous() for axis in grid]


def assert_close(found: Tensor, exact: Tensor, ulps: int) -> None:
    """Within so many units in the last place of the result's type, NaN and infinity in the same places."""
    wanted = exact.to(found.dtype)
    assert torch.equal(torch.isnan(found), torch.isnan(wanted))
    digits = -int(math.log2(torch.finfo(found.dtype).eps))
    mantissa, exponent = torch.frexp(wanted.double().abs().clamp(min=torch.finfo(found.dtype).tiny))
    unit = torch.ldexp(torch.ones_like(mantissa), exponent - 1 - digits)
    finite = torch.isfinite(wanted)
    assert torch.equal(found[~finite & ~torch.isnan(wanted)], wanted[~finite & ~torch.isnan(wanted)])
    distance = ((found.double() - wanted.double()).abs() / unit)[finite]
    assert float(distance.max()) <= ulps, f"{float(distance.max())} units in the last place"


@pytest.mark.parametrize(("name", "type_"), CASES, ids=[f"air.{name}.{type_}" for name, type_ in CASES])
def test_a_function_agrees_with_its_definition(name: str, type_: str) -> None:
    function = FUNCTIONS[name]
    given = _arguments(function, _DTYPES[type_])
    out = torch.full_like(given[0], torch.nan)
    air_modules.compiled(_sources()).kernel(f"{name}_{type_}")(out, *given, threads=out.numel())
    assert_close(out, function.definition(*(one.double() for one in given)), 0 if function.exact else _ULPS[type_])


@pytest.mark.parametrize(("name", "lanes", "type_"), VECTORS, ids=[f"air.{n}.v{k}{t}" for n, k, t in VECTORS])
def test_a_vector_function_works_lane_by_lane(name: str, lanes: int, type_: str) -> None:
    function = FUNCTIONS[name]
    pitch = 4 if lanes == 3 else lanes
    given = [one[: one.numel() // pitch * pitch].reshape(-1, pitch) for one in _arguments(function, _DTYPES[type_])]
    out = torch.zeros_like(given[0])
    air_modules.compiled(_sources()).kernel(f"{name}_v{lanes}")(out, *given, threads=len(out))
    exact = function.definition(*(one.double() for one in given))
    assert_close(out[:, :lanes].flatten(), exact[:, :lanes].flatten(), 0 if function.exact else _ULPS[type_])


def test_a_minimum_of_a_number_and_nan_is_the_number() -> None:
    numbers, nan = torch.tensor([1.0, torch.nan]), torch.tensor([torch.nan, 2.0])
    out = torch.zeros(2)
    air_modules.compiled(_sources()).fmin_f32(out, numbers, nan, threads=2)
    assert out.tolist() == [1.0, 2.0]


def test_a_fraction_is_never_rounded_up_to_one() -> None:
    library = air_modules.compiled(_sources())
    for type_, dtype in _DTYPES.items():
        out = torch.zeros(1, dtype=dtype)
        library.kernel(f"fract_{type_}")(
            out, torch.tensor([-6e-8 if type_ == "f16" else -1e-9], dtype=dtype), threads=1
        )
        assert float(out) == 1 - torch.finfo(dtype).eps / 2


def test_half_a_turn_of_a_whole_number_is_exactly_zero() -> None:
    whole = torch.tensor([1.0, 2.0, -3.0, 1001.0, 2.0**23])
    out = torch.ones(5)
    air_modules.compiled(_sources()).sinpi_f32(out, whole, threads=5)
    assert out.abs().tolist() == [0.0] * 5


@cache
def _dot_sources() -> tuple[air_modules.AirSource, ...]:
    shapes = [("f32", 2), ("f32", 3), ("f32", 4), ("f16", 2)]
    return tuple(
        air_modules.call_module(f"dot_v{n}{t}", f"air.dot.v{n}{t}", _IR[t], [f"<{n} x {_IR[t]}>"] * 2)
        for t, n in shapes
    )


@pytest.mark.parametrize(("type_", "lanes"), [("f32", 2), ("f32", 3), ("f32", 4), ("f16", 2)])
def test_a_dot_product_adds_the_products_of_all_lanes(type_: str, lanes: int) -> None:
    pitch = 4 if lanes == 3 else lanes
    a, b = (torch.randint(-9, 9, (20, pitch)).to(_DTYPES[type_]) for _ in range(2))
    out = torch.zeros(20, dtype=_DTYPES[type_])
    air_modules.compiled(_dot_sources()).kernel(f"dot_v{lanes}{type_}")(out, a, b, threads=20)
    assert torch.equal(out.double(), (a.double() * b.double())[:, :lanes].sum(1))


@cache
def _exponent_sources() -> tuple[air_modules.AirSource, ...]:
    return tuple(
        air_modules.call_module(f"ldexp_{t}", f"air.ldexp.{t}", _IR[t], [_IR[t], "i32"]) for t in ("f32", "f16")
    )


@pytest.mark.parametrize("type_", ["f32", "f16"])
def test_ldexp_scales_by_a_power_of_two(type_: str) -> None:
    x, e = (
        torch.tensor([1.5, -3.0, 0.0, 1.25], dtype=_DTYPES[type_]),
        torch.tensor([3, -4, 100, 200], dtype=torch.int32),
    )
    out = torch.zeros_like(x)
    air_modules.compiled(_exponent_sources()).kernel(f"ldexp_{type_}")(out, x, e, threads=4)
    assert torch.equal(out, torch.ldexp(x.double(), e).to(out.dtype))


@cache
def _neighbour_sources() -> tuple[air_modules.AirSource, ...]:
    return tuple(air_modules.call_module(f"nextafter_{t}", f"air.nextafter.{t}", _IR[t], [_IR[t]] * 2) for t in _DTYPES)


@pytest.mark.parametrize("type_", ["f32", "f16", "bf16"])
def test_nextafter_is_the_neighbour_in_the_format(type_: str) -> None:
    dtype = _DTYPES[type_]
    info = torch.finfo(dtype)
    x = torch.tensor([1.0, 1.0, -1.0, -1.0, 2.0, 0.0, -0.0, info.max, 1.0, torch.nan], dtype=dtype)
    y = torch.tensor([2.0, 0.0, 0.0, -2.0, 0.0, 1.0, -1.0, torch.inf, 1.0, 0.0], dtype=dtype)
    out = torch.zeros_like(x)
    library = air_modules.compiled(_neighbour_sources())
    library.kernel(f"nextafter_{type_}")(out, x, y, threads=10)
    eps, least = info.eps, info.smallest_normal * info.eps
    wanted = [1 + eps, 1 - eps / 2, -1 + eps / 2, -1 - eps, 2 - eps, least, -least, torch.inf, 1.0]
    assert out[:9].double().tolist() == wanted
    assert torch.isnan(out[9])


@pytest.mark.parametrize("name", ["sincos", "fast_sincos"])
def test_sincos_gives_both(name: str) -> None:
    buffers = [air_modules.Buffer("out", "float", writable=True), air_modules.Buffer("x", "float")]
    body = f"""  %at = getelementptr float, ptr addrspace(1) %1, i64 %i
  %x = load float, ptr addrspace(1) %at, align 4
  %c = alloca float, align 4
  %s = tail call float @air.{name}.f32(float %x, ptr captures(none) %c)
  %cosine = load float, ptr %c, align 4
  %n = mul i64 %i, 2
  %to = getelementptr float, ptr addrspace(1) %0, i64 %n
  store float %s, ptr addrspace(1) %to, align 4
  %next = getelementptr float, ptr addrspace(1) %to, i64 1
  store float %cosine, ptr addrspace(1) %next, align 4
"""
    source = air_modules.kernel_module("both", buffers, body, [f"float @air.{name}.f32(float, ptr captures(none))"])
    x = torch.tensor(ANY)
    out = torch.zeros(len(x), 2)
    air_modules.compiled((source,)).both(out, x, threads=len(x))
    assert_close(out[:, 0], torch.sin(x.double()), 2)
    assert_close(out[:, 1], torch.cos(x.double()), 2)
