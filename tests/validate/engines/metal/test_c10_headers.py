"""PyTorch's own Metal headers, as the installed torch has them, run here and agree with its CPU operators."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import pytest
import torch
from bench.metal_coverage import cover_headers

from metal_kernels import KERNELS, cache
from skips import cannot
from stackproof.engines.metal import ALL_DETECTORS, MetalLibrary, RunMode, compile_library

INCLUDE = Path(torch.__file__).parent / "include"
pytestmark = pytest.mark.skipif(
    not (INCLUDE / "c10/metal/special_math.h").exists(), reason=cannot("the installed torch has no c10/metal headers")
)
X = torch.linspace(-9, 9, 301)
ELEMENTWISE = {
    "erf": lambda x: torch.erf(x),
    "erfinv": lambda x: torch.erfinv(x * 0.1),
    "i0e": lambda x: torch.special.i0e(x),
    "lgamma": lambda x: torch.lgamma(x + 9.5),
    "digamma": lambda x: torch.digamma(x + 9.5),
    "zeta": lambda x: torch.special.zeta(torch.full_like(x, 2.5), x + 9.5),
    "trigamma": lambda x: torch.polygamma(1, x + 9.5),
    "sinc": lambda x: torch.sinc(x),
    "entr": lambda x: torch.special.entr(x),
    "bessel_j0": lambda x: torch.special.bessel_j0(x),
    "erfcx": lambda x: torch.special.erfcx(x * 0.2),
    "expm1": lambda x: torch.expm1(x),
    "gammainc": lambda x: torch.special.gammainc(torch.full_like(x, 2.5), x + 9.5),
    "hermite": lambda x: torch.special.hermite_polynomial_h(x, 4),
}


@lru_cache
def compiled(name: str, mode: RunMode = RunMode.PLAIN) -> MetalLibrary:
    return compile_library(KERNELS / name, [INCLUDE], cache=cache(), mode=mode)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_special_functions_agree_with_the_cpu(name: str) -> None:
    out = torch.empty_like(X)
    compiled("c10.metal").kernel(f"{name}_of")(X, out, threads=X.numel())
    expected = ELEMENTWISE[name](X.double()).float()
    torch.testing.assert_close(out, expected, rtol=2e-5, atol=2e-6, equal_nan=True)


@pytest.mark.parametrize("size", [32, 96, 1024])
def test_reductions_over_a_threadgroup(size: int) -> None:
    values = torch.randint(-1000, 1000, (size,)).float()
    values[size // 3] = 5000
    out, where = torch.zeros(2), torch.zeros(1, dtype=torch.int32)
    library = compiled("c10_groups.metal", ALL_DETECTORS)
    library.clear_reports()
    library.reductions(values, out, where, threads=size, group_size=size)
    assert out.tolist() == [values.sum().item(), 5000.0]
    assert where.item() == size // 3
    # What three simdgroups found is combined by three lanes of the first, while the others go to the next barrier.
    parted = {report.kind.value for report in library.reports()}
    assert parted == ({"divergent-simdgroup"} if size == 96 else set())
    assert all(report.file.endswith("c10/metal/reduction_utils.h") for report in library.reports())


def test_sixteen_bit_and_64_bit_atomics_under_contention() -> None:
    out, other = torch.zeros(4).half(), torch.zeros(2).bfloat16()
    whole = torch.zeros(1, dtype=torch.int64)
    library = compiled("c10_groups.metal", ALL_DETECTORS)
    library.clear_reports()
    library.half_contention(out, other, whole, threads=200)
    assert out.tolist() == [0.0, 200.0, 0.0, 0.0]
    assert other[0].item() == 200.0
    assert whole.item() == 200 * 0x80000001
    assert library.reports() == []


def test_random_numbers_are_uniform_and_repeatable() -> None:
    first, second = torch.zeros(4096), torch.zeros(4096)
    compiled("c10.metal").uniform(first, [7, 0], threads=4096)
    compiled("c10.metal").uniform(second, [7, 0], threads=4096)
    assert torch.equal(first, second)
    assert 0 <= first.min() <= first.max() < 1
    assert abs(first.mean().item() - 0.5) < 0.02


def test_registered_elementwise_kernels_run() -> None:
    library = compiled("c10.metal")
    for dtype, name in (
        (torch.float32, "float"),
        (torch.float16, "half"),
        (torch.bfloat16, "bfloat"),
        (torch.int64, "long"),
    ):
        x = torch.arange(11).to(dtype)
        out = torch.empty_like(x)
        kernel = library.kernel(f"twice_dense_{name}_{name}")
        arguments = (out, x, 11)[: len(kernel.signature.buffers)]
        kernel(*arguments, threads=11 if len(arguments) == 2 else 3)
        assert out.tolist() == (x + x).tolist()
    a, b = torch.arange(12).int(), torch.arange(12).int() * 3
    out = torch.empty_like(a)
    strided = [3, 4], [16, 4], [16, 4], [16, 4]
    library.kernel("plus_strided_int_int")(out, a, b, *strided, [2, 0, 0], threads=12)
    assert out.tolist() == [4 * i for i in range(12)]


@pytest.mark.parametrize("version", ["3.1"])
def test_every_header_compiles_in_a_probe_kernel(version: str) -> None:
    results = list(cover_headers(INCLUDE, versions=(version,)))
    assert len(results) >= 10
    assert [error for _name, _version, error in results] == [""] * len(results)
