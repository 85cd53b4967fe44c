"""Every kind of mistake that the proof is there for, made once in the kernels, has to be found."""

from __future__ import annotations

from pathlib import Path

import pytest

from overlay_kernels import backward_proof, changed_source
from patchstack.cache import cache_dir
from stackproof.metal_run.pool import Died, run_tasks
from stackproof.metal_run.worker import PLAIN, Done, Setup, Task
from stackproof.ops import WorkUnit

OP = "grid_sampler_2d_backward"


def units_of(kind: str, dtype: str, *, interpolation: str = "", padding: str = "") -> list[WorkUnit]:
    """Units of the full matrix by kind (or shape), dtype and parts of the mode."""
    return [
        unit
        for unit in backward_proof().units(full=True)
        if (unit.key.kind == kind or (unit.key.shape is not None and unit.key.shape.name == kind))
        and unit.key.dtype == dtype
        and unit.key.mode.interpolation.name.lower().startswith(interpolation)
        and unit.key.mode.padding.name.lower().startswith(padding)
    ]


def seen(
    folder: Path, old: str, new: str, units: list[WorkUnit], *, run_mode: str = PLAIN, metal: str = "float"
) -> str:
    """Everything that running ``units`` with the fault has to say, as one text."""
    assert units
    work = Setup({OP: changed_source(folder, old, new, dtypes=(metal,))}, cache_dir())
    return "\n".join(line for unit in units for line in lines_of(work(Task(OP, run_mode, unit))))


def lines_of(answer: Done | Died) -> list[str]:
    if isinstance(answer, Died):
        return [answer.reason]
    problems = [problem for result in answer.results for problem in result.problems]
    return problems + [f"{finding.rule}: {finding.message} at line {finding.line}" for finding in answer.findings]


WRONG_VALUES = {
    "ties round up instead of to even": (
        "rint(pixel.position)",
        "floor(pixel.position + 0.5f)",
        ("on the lattice", "nearest", ""),
        "grad_input is off",
    ),
    "the edge keeps its gradient": (
        "if (!(pixel.position < last)) {\n    return {last, 0.0f};",
        "if (!(pixel.position < last)) {\n    return {last, pixel.derivative};",
        ("on the lattice", "bilinear", "border"),
        "grad_grid is off",
    ),
    "a mirrored sample keeps the sign of its gradient": (
        "derivative = -derivative;",
        "",
        ("odd sizes", "bilinear", "reflection"),
        "grad_grid is off",
    ),
    "another cubic": (
        "A = -0.75f",
        "A = -0.5f",
        ("odd sizes", "bicubic", "zeros"),
        "grad_input is off",
    ),
    "a stride is taken for 1": (
        "coords[params.grid_strides[3]]",
        "coords[1]",
        ("two samples", "bilinear", "zeros"),
        "grad_grid is off",
    ),
    "NaN goes to the far edge": (
        "bits <= 0x7f800000u",
        "bits <= 0x7fffffffu",
        ("non-finite coordinates", "bilinear", "border"),
        "grad_input is off",
    ),
    "the mask is not looked at": (
        "if (compute_grad_input)",
        "if (true)",
        ("one pixel", "nearest", "border"),
        "although the mask leaves it out",
    ),
    "a launch starts from the first position again": (
        "params.first_position + static_cast",
        "0 * params.first_position + static_cast",
        ("several launches", "bilinear", "zeros"),
        "grad_grid is off by inf",
    ),
}


@pytest.mark.parametrize("fault", WRONG_VALUES)
def test_a_wrong_value_is_found(fault: str, tmp_path: Path) -> None:
    old, new, (kind, interpolation, padding), expected = WRONG_VALUES[fault]
    units = units_of(kind, "float32", interpolation=interpolation, padding=padding)
    assert expected in seen(tmp_path, old, new, units)


def test_sums_in_16_bits_are_found(tmp_path: Path) -> None:
    units = units_of("odd sizes", "float16", interpolation="bilinear", padding="zeros")
    old = "y.weight[i] * x.weight[j] * grad"
    new = "static_cast<float>(static_cast<T>(y.weight[i] * x.weight[j])) * grad"
    assert "units of float16's epsilon" in seen(tmp_path, old, new, units, metal="half")


def crashed_or_seen(folder: Path, old: str, new: str, units: list[WorkUnit], *, run_mode: str = PLAIN) -> str:
    """As :func:`seen`, in a process of its own: what the kernel reads may not be mapped."""
    work = Setup({OP: changed_source(folder, old, new, dtypes=("float",))}, cache_dir())
    answers = run_tasks([Task(OP, run_mode, unit) for unit in units], work, jobs=1)
    return "\n".join(line for _, answer in answers for line in lines_of(answer))


def test_32_bit_offsets_in_a_64_bit_kernel_are_found(tmp_path: Path) -> None:
    units = units_of("strides beyond 2**31", "float32", interpolation="nearest", padding="zeros")[:1]
    old, new = "const idx_t grad_output_start =", "const int32_t grad_output_start ="
    said = crashed_or_seen(tmp_path, old, new, units)
    assert "killed by SIG" in said or "grad_input is off" in said


def test_a_comparison_with_nan_is_found_by_fast_math(tmp_path: Path) -> None:
    units = units_of("non-finite coordinates", "float32", interpolation="bicubic")
    old, new = "(bits & 0x7fffffffu) > as_type<uint32_t>(GRID_COORD_LIMIT)", "!(fabs(coord) <= GRID_COORD_LIMIT)"
    assert seen(tmp_path / "safe", old, new, units) == ""
    said = crashed_or_seen(tmp_path / "fast", old, new, units, run_mode="fast math")
    assert "killed by SIG" in said or "is off" in said


DETECTED = {
    "an unchecked conversion": (
        "return fabs(position) < 2.0f * size + 4.0f;",
        "return true;",
        ("non-finite coordinates", "bilinear", "zeros"),
        "undefined: ",
    ),
    "an index that is not checked": (
        "return index >= 0 && index < size ? index : -1;",
        "return index >= -4096 ? index : -1;",
        ("far outside", "nearest", "zeros"),
        "out-of-bounds: ",
    ),
    "an addition that is not atomic": (
        "AtomicType<float>::atomic_add(",
        "[](device atomic<float>* p, idx_t at, float v) { reinterpret_cast<device float*>(p)[at] += v; }(",
        ("many samples per pixel", "nearest", "zeros"),
        "race: ",
    ),
    "half of grad_grid is not written": (
        "grad_grid[2 * position + 1] = static_cast<T>(y.derivative * grad_y);",
        "",
        ("odd sizes", "nearest", "zeros"),
        "unwritten: ",
    ),
}


@pytest.mark.parametrize("fault", DETECTED)
def test_a_detector_finds_what_values_may_not_show(fault: str, tmp_path: Path) -> None:
    old, new, (kind, interpolation, padding), expected = DETECTED[fault]
    units = units_of(kind, "float32", interpolation=interpolation, padding=padding)[:1]
    assert expected in seen(tmp_path, old, new, units, run_mode="detectors")


def test_a_header_that_changed_is_noticed(tmp_path: Path) -> None:
    units = units_of("odd sizes", "float32", interpolation="bilinear", padding="zeros")[:1]
    text = seen(tmp_path, "  bool align_corners;\n", "  bool align_corners;\n  bool added;\n", units)
    assert "the struct does not have the fields that the caller fills" in text
