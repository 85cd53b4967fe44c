"""The library functions compute what the Metal specification says."""

from __future__ import annotations

import math
import struct

import pytest
import torch

from metal_kernels import library


def test_float_functions() -> None:
    x = torch.tensor([-2.5, -0.3, 0.0, 0.5, 0.75, 1.5, 3.25])
    out = torch.zeros(len(x), 16)
    library("functions.metal").float_functions(x, out, threads=len(x))
    mantissa, exponent = torch.frexp(x)
    t = ((x + 1) / 2).clamp(0, 1)
    expected = [
        x.round(),
        x - x.floor(),
        x.clamp(0, 1),
        x.sign(),
        (x.abs() + 1).rsqrt(),
        (x.double() * math.pi).sin(),
        x + (2 - x) * 0.25,
        t * t * (3 - 2 * t),
        x.frac() + 10 * x.trunc(),
        x.sin() + 10 * x.cos(),
        mantissa + 10 * exponent,
        x * 8,
        (x >= 0.5).float(),
        x.clamp(-1, 1.5),
        torch.zeros_like(x),
        x.clamp(0, 1),
    ]
    torch.testing.assert_close(out, torch.stack([e.float() for e in expected], 1), rtol=1e-6, atol=1e-6)


def signed(value: int) -> int:
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def test_integer_functions() -> None:
    given = [0, 1, -1, 12345, -98765, 2147483647, -2147483648]
    out = torch.zeros(len(given), 14, dtype=torch.int32)
    library("functions.metal").integer_functions(torch.tensor(given, dtype=torch.int32), out, threads=len(given))
    for x, row in zip(given, out.tolist(), strict=True):
        u = x % (1 << 32)
        bits = f"{u:032b}"
        assert row == [
            signed(abs(x)),
            len(bits) - len(bits.lstrip("0")),
            len(bits) - len(bits.rstrip("0")),
            bits.count("1"),
            signed(int(bits[::-1], 2)),
            signed((u << 5 | u >> 27) % (1 << 32)),
            min(x + 2147483000, 2147483647),
            max(x - 2147483000, -2147483648),
            (x << 20) >> 32,
            (x + 7) >> 1,
            signed(abs(x + 9)),
            u >> 3 & 63,
            signed(u & ~(7 << 4) | 5 << 4),
            min(max(x, -3), 3),
        ]


def test_classification_looks_at_the_bits() -> None:
    x = torch.tensor([1.0, -2.0, 0.0, math.inf, -math.inf, math.nan, 1e-45, 1e10])
    out = torch.zeros(8, dtype=torch.int32)
    compiled = library("functions.metal")
    compiled.flush_denormals = False
    compiled.classification(x, out, threads=8)
    assert out.tolist() == [12, 28, 4, 66, 82, 33, 4, 76]


def test_vector_functions() -> None:
    v = torch.tensor([[1.0, -2.0, 3.0, 4.0], [0.5, 0.5, 0.5, 0.5]])
    out = torch.zeros(2, 12)
    library("functions.metal").vector_functions(v, out, threads=2)
    for (x, y, z, w), row in zip(v.tolist(), out, strict=True):
        length = math.sqrt(x * x + y * y + z * z + w * w)
        expected = [
            2 * (x * w + y * z),
            math.sqrt(x * x + y * y + z * z),
            max(y, 0),
            float(x > w or y > z or z > y or w > x) + 2,
            max(x, w),
            min(max(z, -1), 1),
            y * y - z * z,
            w / length,
            int(x) + 4,
            -x,
            (x + 3 * y) + (3 * x + 4 * y),
            (x + 1) + 2 * (y + 1) + 7 * w,
        ]
        torch.testing.assert_close(row, torch.tensor(expected))


def test_limits_literals_and_traits() -> None:
    out = torch.zeros(8)
    library("functions.metal").limits(out, threads=1)
    floats, halves = torch.finfo(torch.float32), torch.finfo(torch.float16)
    assert out[:3].tolist() == [floats.max, halves.max, torch.finfo(torch.bfloat16).eps]
    assert out[3:6].tolist() == [-(2.0**31), math.inf, 1.0]
    assert out[6].item() == torch.tensor(0.1).item()
    assert out[7].item() == 1.5 + 256.0


def test_what_clang_does_not_have_is_rewritten() -> None:
    pairs = struct.pack("=2fi4x2fi4x", 1.0, 2.0, 3, 4.0, 5.0, 6)
    out, kept = torch.zeros(2), torch.zeros(4, dtype=torch.float32)
    library("functions.metal").dialect(out, pairs, kept, threads=2)
    assert out.tolist() == [6 + 1 + 10 - 2, 6 + 2 + 70 + 7]
    assert kept[:2].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("name", ["flush_denormals"])
def test_small_results_become_zero_as_on_the_gpu(name: str) -> None:
    compiled = library("functions.metal")
    x = torch.tensor([1e-38])
    out = torch.zeros(1, 16)
    for flush, expected in ((True, 0.0), (False, 1e-38 * 0.75)):
        setattr(compiled, name, flush)
        compiled.float_functions(x / 1, out, threads=1)
        assert (out[0, 8].item() == 0.0) == flush or out[0, 8].item() == pytest.approx(expected)
    compiled.flush_denormals = True
