"""What is counted and timed is the gradients: every family's pass against float64, run twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

import patchstack.reference
from metal_kernels import cache
from overlay_kernels import KERNELS, TORCH_HEADERS, overlay_kernels
from stackproof.engines.metal import MetalLibrary, compile_library
from stackproof.ops.grid_sampler.bench.passes import Kernels, scheme_of
from stackproof.ops.grid_sampler.bench.rows import LAYOUTS, Row, quick_rows
from stackproof.ops.grid_sampler.bench.stand_ins import stand_in_case

ALLOWED = {torch.float32: 5e-5, torch.float16: 5e-3}
STANDIN = Path(patchstack.reference.__file__).parent / "standins/2.13" / KERNELS / "GridSampler.metal"


def of_the_series() -> Kernels:
    """The first changes'."""
    compiled = overlay_kernels()
    assert isinstance(compiled.library, MetalLibrary)
    return Kernels(compiled.library, compiled.headers)


def of_after() -> Kernels:
    """A stand-in's for upstream's."""
    header = (TORCH_HEADERS / KERNELS.removeprefix("aten/src/") / "GridSampler.h").read_bytes()
    return Kernels(compile_library(STANDIN, [TORCH_HEADERS], cache=cache()), (header,))


FAMILIES = {"a thread per position": of_the_series, "upstream's kernels": of_after}


@pytest.fixture(scope="module", params=FAMILIES)
def family(request: pytest.FixtureRequest) -> tuple[str, Kernels]:
    """Name and kernels."""
    return request.param, FAMILIES[request.param]()


def rows() -> list[Row]:
    """The quick table, and 3D in channels last, which upstream copies."""
    return [*quick_rows(), replace(quick_rows()[-2], layout=LAYOUTS[2])]


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.label)
def test_a_pass_gives_the_gradients_each_time_that_it_is_run(row: Row, family: tuple[str, Kernels]) -> None:
    name, kernels = family
    scheme = scheme_of(kernels.library, row)
    assert scheme is not None
    assert scheme.name == name
    case = stand_in_case(row)
    work, right = scheme.prepare(kernels, row, case), case.reference(torch.float64)
    for _ in range(2):
        for found, expected in zip(work(), right, strict=True):
            error = float((found.double() - expected).abs().max() / expected.abs().max().clamp(min=1e-30))
            assert found.dtype is row.dtype
            assert error <= ALLOWED[row.dtype] or not expected.any()


def test_kernels_of_no_known_family_have_no_scheme() -> None:
    class Nothing:
        kernel_names = ("some_kernel", "grid_sampler_2d_bilinear_zeros_float")

        def kernel(self, name: str) -> None:
            raise AssertionError

    assert scheme_of(Nothing(), quick_rows()[0]) is None  # type: ignore[arg-type]
