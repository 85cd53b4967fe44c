"""Our Metal headers agree with Apple's on the real kernels, and a fault seeded into them is caught."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from apple_release import require_release
from metal_kernels import cache
from patchstack.cache import cache_dir
from references import require_reference
from skips import cannot, require_packages
from stackproof.engines.apple.container import Metallib
from stackproof.engines.apple.fidelity import compare_operators, distances
from stackproof.engines.apple.operators import OPERATORS, Operator
from stackproof.engines.apple.reductions import compare_reductions
from stackproof.engines.apple.struct_check import compare_structs, differences
from stackproof.engines.apple.structs import KernelStruct, StructBatch, structs_of
from stackproof.engines.metal.struct_layout import Field, StructLayout
from stackproof.engines.metal.toolchain import INCLUDE
from stackproof.gates.apple_kernels.gate import fidelity_table
from stackproof.gates.apple_kernels.spec import SPEC as APPLE_KERNELS

HEADERS = Path(torch.__file__).parent / "include"
pytestmark = pytest.mark.skipif(
    not (HEADERS / "c10/metal/special_math.h").exists(), reason=cannot("the installed torch has no c10/metal headers")
)
Seed = Callable[[str, str, str], None]
GRID_SAMPLER = "GridSampler.h"
SHAPES = """#pragma once
#include <c10/metal/common.h>
template <unsigned N = 5, typename I = int>
struct GridSamplerParams {
  int sampler_dims;
  ::metal::array<I, N> output_sizes;
  ::metal::array<I, N> output_strides;
  ::metal::array<I, N> input_sizes;
  ::metal::array<I, N> input_strides;
  ::metal::array<I, N> grid_sizes;
  ::metal::array<I, N> grid_strides;
  bool align_corners;
};
"""


@pytest.fixture(scope="module")
def release() -> Metallib:
    return require_release("2.13")


@pytest.fixture
def seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Seed:
    """Replaces text in a copy of our Metal headers, which the rest of the test compiles with."""
    copy = tmp_path / "include"
    shutil.copytree(INCLUDE, copy)
    monkeypatch.setattr("stackproof.engines.metal.build.INCLUDE", copy)

    def change(file: str, old: str, new: str) -> None:
        text = (copy / file).read_text()
        assert text.count(old) == 1
        (copy / file).write_text(text.replace(old, new))

    return change


def operators(*names: str) -> list[Operator]:
    return [one for one in OPERATORS if one.name in names]


def failing(release: Metallib, *names: str) -> set[tuple[str, str]]:
    """Operator and operand type of what is too far off."""
    rows = compare_operators(operators(*names), release, [HEADERS], cache())
    assert rows
    return {(row.operator, row.operand) for row in rows if row.fails}


SAMPLE = (
    "sqrt",
    "round",
    "hardswish",
    "mul",
    "i0",
    "sinc",
    "entr",
    "lgamma",
    "div_floor",
    "remainder",
    "lt",
    "nextafter",
)


def test_a_sample_of_operators_agrees_in_every_type(release: Metallib) -> None:
    assert failing(release, *SAMPLE) == set()


def test_the_table_has_more_than_150_rows_of_functions_and_types(release: Metallib) -> None:
    names = [f"{one.name}_dense_{r}_{t}" for one in OPERATORS for r, t in one.types]
    assert len({one.name for one in OPERATORS}) > 90
    assert sum(name in release.by_name for name in names) > 600


def test_reductions_of_a_simdgroup_agree(release: Metallib) -> None:
    rows = compare_reductions(release, [HEADERS], cache())
    assert len(rows) == 23
    assert [row for row in rows if row.fails] == []


def test_a_wrong_rounding_to_bfloat_is_caught(release: Metallib, seed: Seed) -> None:
    seed("__metal_bfloat", "ushort((u + 0x7fffu + ((u >> 16) & 1)) >> 16)", "ushort(u >> 16)")
    assert failing(release, "mul") == {("mul", "bfloat")}


def test_a_wrong_rounding_to_half_is_caught(release: Metallib, seed: Seed) -> None:
    # To bfloat first: the second rounding sees a value that is a little off.
    seed("metal_math", "half h) { float x = float(h); return half(EXPRESSION); }",
         "half h) { float x = float(h); return half(float(bfloat(EXPRESSION))); }")  # fmt: skip
    assert ("entr", "half") in failing(release, "entr")


def test_rint_that_rounds_ties_away_is_caught(release: Metallib, seed: Seed) -> None:
    seed("metal_math", "__METAL_HOST_UNARY_MATH(rint, __builtin_rintf(x))",
         "__METAL_HOST_UNARY_MATH(rint, __builtin_roundf(x))")  # fmt: skip
    assert failing(release, "round") == {("round", "float"), ("round", "half"), ("round", "bfloat")}


def test_a_missing_saturation_is_caught(release: Metallib, seed: Seed) -> None:
    seed("metal_math", "__METAL_HOST_BINARY_MATH(fmin, __builtin_fminf(x, y))", "__METAL_HOST_BINARY_MATH(fmin, x)")
    assert len(failing(release, "hardswish")) == 3


def test_a_swapped_shuffle_direction_is_caught(release: Metallib, seed: Seed) -> None:
    seed(
        "metal_simdgroup",
        "  int from = self + int(delta);\n  // The filled",
        "  int from = self - int(delta);\n  // The filled",
    )
    failed = {(row.operator, row.operand) for row in compare_reductions(release, [HEADERS], cache()) if row.fails}
    assert ("sum of a simdgroup", "long") in failed
    assert ("max of a simdgroup", "long") in failed


def test_an_overload_for_bfloat_that_apple_does_not_have_is_caught(release: Metallib, seed: Seed) -> None:
    overload = "inline bfloat log(bfloat x) { return bfloat(log(float(x))); }\n"
    seed("metal_math", "__METAL_HOST_UNARY_MATH(log2,", f"{overload}__METAL_HOST_UNARY_MATH(log2,")
    assert failing(release, "entr") == {("entr", "bfloat")}


def _structs(release: Metallib) -> tuple[KernelStruct, ...]:
    del release
    kernels = ("grid_sampler_2d_bilinear_zeros_i32_float", "grid_sampler_3d_bilinear_zeros_i64_float")
    return structs_of(StructBatch("2.13", "metal_basic", cache_dir(), kernels))


def _compared(release: Metallib, folder: Path, text: str = SHAPES) -> list[tuple[str, tuple[str, ...]]]:
    (folder / GRID_SAMPLER).write_text(text)
    found = compare_structs({GRID_SAMPLER: text.encode()}, folder, [HEADERS], _structs(release), cache())
    assert all(one.readers for one in found)
    return [(one.spelling, one.differences) for one in found]


def test_structs_have_the_layout_that_apple_gave_them(release: Metallib, tmp_path: Path) -> None:
    assert _compared(release, tmp_path) == [("GridSamplerParams<4, int>", ()), ("GridSamplerParams<5, long>", ())]


def test_a_padded_array_in_our_headers_is_caught(release: Metallib, tmp_path: Path, seed: Seed) -> None:
    seed("metal_array", "  T __elements[N];\n", "  T __elements[N];\n  T __padding;\n")
    (_first, texts), _second = _compared(release, tmp_path)
    assert any("metal: output_strides at byte 24 of 20, Apple's at 20 of 16" in text for text in texts)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("  bool align_corners;\n", "  int extra;\n  bool align_corners;\n", "extra is not in Apple's"),
        ("grid_strides;", "grid_strydes;", "no field grid_strides"),
        ("  int sampler_dims;\n", "  long sampler_dims;\n", "output_sizes at byte 8 x4, Apple's at 4 x4"),
    ],
)
def test_a_field_too_many_renamed_or_widened_is_caught(
    release: Metallib, tmp_path: Path, old: str, new: str, sentence: str
) -> None:
    (_first, texts), _second = _compared(release, tmp_path, SHAPES.replace(old, new))
    assert any(sentence in text for text in texts)


def test_distances_are_units_in_the_last_place_across_zero() -> None:
    tiny = torch.finfo(torch.float32).smallest_normal * torch.finfo(torch.float32).eps
    ours = torch.tensor([1.0, tiny, float("nan"), float("nan"), 0.0])
    theirs = torch.tensor([1.0 + 2.0**-23, -tiny, float("nan"), 1.0, -0.0])
    assert distances(ours, theirs).tolist() == [1.0, 2.0, 0.0, float("inf"), 0.0]


def test_layouts_of_different_sizes_differ() -> None:
    fields = (Field("a", 0, "i", 1),)
    texts = differences(StructLayout("S", 8, 4, fields), StructLayout("S", 4, 4, fields), "python")
    assert texts == ["python: 4 bytes, Apple's has 8"]


def test_the_gate_judges_what_it_is_asked_for(release: Metallib) -> None:
    from gate_contexts import own_context, run_gate

    require_reference("2.13")
    result = run_gate(APPLE_KERNELS, own_context(), match="reductions")
    assert (result.verdict.value, result.cases, result.failed) == ("passed", 23, 0)
    assert len(fidelity_table(())) == 2
    assert len(result.details["fidelity_table"]) == 2 + 3


def test_the_gate_is_not_run_without_the_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gate_contexts import own_context, run_gate

    require_packages("lief", "llvmlite")
    monkeypatch.setenv("PATCHSTACK_CACHE", str(tmp_path))
    result = run_gate(APPLE_KERNELS, own_context())
    assert result.verdict.value == "not run"
    assert "(next: python -m patchstack.reference --wheel 2.13)" in result.reason
