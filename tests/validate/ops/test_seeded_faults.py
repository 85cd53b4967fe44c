"""Every kind of mistake that the proofs are there for, made once in the kernels, has to be found."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from overlay_kernels import changed_source, sampler_proof, source_before
from patchstack.cache import cache_dir
from stackproof.engines.pool.tasks import Died, run_tasks
from stackproof.gates.metal_run.spec import PLAIN
from stackproof.gates.metal_run.worker import Done, Setup, Task
from stackproof.ops import WorkUnit

FORWARD_3D, BACKWARD_2D, BACKWARD_3D = "grid_sampler_3d", "grid_sampler_2d_backward", "grid_sampler_3d_backward"


@dataclass(frozen=True)
class Fault:
    """A text of the overlay, another one in its place, and where and how that has to show.

    Attributes:
        old: must be there.
        new: what it becomes.
        where: kind or shape of the units that show it, and how their interpolation and padding begin.
        says: part of what a unit has to say.
        op: whose units.
    """

    old: str
    new: str
    where: tuple[str, str, str]
    says: str
    op: str = BACKWARD_2D

    def units(self, dtype: str = "float32") -> list[WorkUnit]:
        """Units of the full matrix."""
        kind, interpolation, padding = self.where
        found = [
            unit
            for unit in sampler_proof(self.op).units(full=True)
            if (unit.key.kind == kind or (unit.key.shape is not None and unit.key.shape.name == kind))
            and unit.key.dtype == dtype
            and unit.key.mode.interpolation.name.lower().startswith(interpolation)
            and unit.key.mode.padding.name.lower().startswith(padding)
        ]
        assert found
        return found


def seen(
    folder: Path, fault: Fault, units: list[WorkUnit], *, run_mode: str = PLAIN, metal: str = "float", jobs: int = 0
) -> str:
    """Everything that running ``units`` with the fault has to say, as one text.

    Args:
        folder: an empty folder.
        fault: to be made.
        units: to be run.
        run_mode: key of ``RUN_MODES``.
        metal: the Metal type that is instantiated.
        jobs: processes that run them; in this one if 0. What a faulty kernel reads may not be mapped.
    """
    source = changed_source(folder, fault.old, fault.new, dtype=metal, op=fault.op)
    work = Setup({fault.op: replace(source, before=source_before())}, cache_dir())
    tasks = [Task(fault.op, run_mode, unit) for unit in units]
    answers = (answer for _, answer in run_tasks(tasks, work, jobs=jobs)) if jobs else map(work, tasks)
    return "\n".join(line for answer in answers for line in lines_of(answer))


def lines_of(answer: Done | Died) -> list[str]:
    if isinstance(answer, Died):
        return [answer.reason]
    problems = [problem for result in answer.results for problem in result.problems]
    return problems + [f"{finding.rule}: {finding.message} at line {finding.line}" for finding in answer.findings]


TIES = ("rint(pixel.position)", "floor(pixel.position + 0.5f)", ("on the lattice", "nearest", ""))
COORDINATES = (
    "coords[(D - 1 - axis) * coordinate_stride]",
    "coords[axis * coordinate_stride]",
    ("odd sizes", "bilinear", "zeros"),
)
LAUNCH = (
    "params.first_position + static_cast<idx_t>(tid)",
    "0 * params.first_position + static_cast<idx_t>(tid)",
    ("several launches", "bilinear", "zeros"),
)
NAN_EDGE = ("bits <= 0x7f800000u", "bits <= 0x7fffffffu", ("non-finite coordinates", "bilinear", "border"))
WRONG_VALUES = {
    "ties round up instead of to even": Fault(*TIES, "grad_input is off"),
    "the edge keeps its gradient": Fault(
        "if (!(pixel.position < last)) {\n    return {last, 0.0f};",
        "if (!(pixel.position < last)) {\n    return {last, pixel.derivative};",
        ("on the lattice", "bilinear", "border"),
        "grad_grid is off",
    ),
    "a mirrored sample keeps the sign of its gradient": Fault(
        "derivative = -derivative;", "", ("odd sizes", "bilinear", "reflection"), "grad_grid is off"
    ),
    "another cubic": Fault("A = -0.75f", "A = -0.5f", ("odd sizes", "bicubic", "zeros"), "grad_input is off"),
    "a stride is taken for 1": Fault(
        "coords[(D - 1 - axis) * coordinate_stride]",
        "coords[D - 1 - axis]",
        ("two samples", "bilinear", "zeros"),
        "grad_grid is off",
    ),
    "NaN goes to the far edge": Fault(*NAN_EDGE, "grad_input is off"),
    "the mask is not looked at": Fault(
        "if (compute_grad_input)", "if (true)", ("one pixel", "nearest", "border"), "although the mask leaves it out"
    ),
    "a launch starts from the first position again": Fault(*LAUNCH, "grad_grid is off by inf"),
    "3D: coordinates are in the order of the axes": Fault(*COORDINATES, "grad_input is off", BACKWARD_3D),
    "3D: gradients are in the order of the axes": Fault(
        "grad_grid[D * position + (D - 1 - axis)]",
        "grad_grid[D * position + axis]",
        ("odd sizes", "bilinear", "border"),
        "grad_grid is off",
        BACKWARD_3D,
    ),
    "3D: a slope leaves out the weight of the first axis": Fault(
        "other == axis ? 1.0f",
        "other == axis || other + 3 == D ? 1.0f",
        ("odd sizes", "bilinear", "zeros"),
        "grad_grid is off",
        BACKWARD_3D,
    ),
    "3D: a window is one pixel short": Fault(
        "1 << (digit_bits * D);", "(1 << (digit_bits * D)) - 1;", ("odd sizes", "bilinear", ""), "is off", BACKWARD_3D
    ),
    "3D: NaN goes to the far edge": Fault(*NAN_EDGE, "grad_input is off", BACKWARD_3D),
    "3D: a launch starts from the first position again": Fault(*LAUNCH, "is off by inf", BACKWARD_3D),
    "forward: ties round up instead of to even": Fault(*TIES, "output is off", FORWARD_3D),
    "forward: coordinates are in the order of the axes": Fault(*COORDINATES, "output is off", FORWARD_3D),
    "forward: a launch starts from the first position again": Fault(*LAUNCH, "output is off by inf", FORWARD_3D),
    "forward: NaN goes to the far edge": Fault(*NAN_EDGE, "output is off", FORWARD_3D),
    "forward: the output's channel stride is taken for 1": Fault(
        "output_offset += params.output_strides[1];",
        "output_offset += 1;",
        ("odd sizes", "nearest", "zeros"),
        "output is off by inf",
        FORWARD_3D,
    ),
    "forward: the last slice is left out": Fault(
        "return index >= 0 && index < size ? index : -1;",
        "return index >= 0 && index < size && index != 3 ? index : -1;",
        ("odd sizes", "nearest", "zeros"),
        "output is off",
        FORWARD_3D,
    ),
}


@pytest.mark.parametrize("fault", WRONG_VALUES)
def test_a_wrong_value_is_found(fault: str, tmp_path: Path) -> None:
    seeded = WRONG_VALUES[fault]
    assert seeded.says in seen(tmp_path, seeded, seeded.units())


@pytest.mark.parametrize("op", [BACKWARD_2D, BACKWARD_3D])
def test_sums_in_16_bits_are_found(op: str, tmp_path: Path) -> None:
    old, new = "window.weight(pixel) * grad)", "static_cast<float>(static_cast<T>(window.weight(pixel))) * grad)"
    fault = Fault(old, new, ("odd sizes", "bilinear", "zeros"), "units of float16's epsilon", op)
    assert fault.says in seen(tmp_path, fault, fault.units("float16"), metal="half")


WITHIN_A_SAMPLE = "idx_t offset = 0;\n    for (int32_t axis = 0; axis < D; ++axis) {\n      const idx_t index"
NARROW = {
    "2D backward": (BACKWARD_2D, "const idx_t grad_output_start =", "const int32_t grad_output_start ="),
    "3D backward": (BACKWARD_3D, "const idx_t input_start =", "const int32_t input_start ="),
    "3D forward": (FORWARD_3D, "idx_t output_offset = where", "int32_t output_offset = where"),
    "within a sample": (FORWARD_3D, WITHIN_A_SAMPLE, WITHIN_A_SAMPLE.replace("idx_t offset", "int32_t offset")),
}


@pytest.mark.parametrize("name", NARROW)
def test_32_bit_offsets_in_a_64_bit_kernel_are_found(name: str, tmp_path: Path) -> None:
    op, *change = NARROW[name]
    interpolation = "bilinear" if op == BACKWARD_3D else "nearest"  # whose gradients do not depend on the input
    fault = Fault(*change, ("strides beyond 2**31", interpolation, "zeros"), " is off", op)
    said = seen(tmp_path, fault, fault.units()[:1], jobs=1)
    assert "killed by SIG" in said or fault.says in said


def test_a_comparison_with_nan_is_found_by_fast_math(tmp_path: Path) -> None:
    old = "(bits & 0x7fffffffu) > ::metal::as_type<uint32_t>(GRID_COORD_LIMIT)"
    new = "!(::metal::fabs(coord) <= GRID_COORD_LIMIT)"
    fault = Fault(old, new, ("non-finite coordinates", "bicubic", ""), "is off")
    assert seen(tmp_path / "safe", fault, fault.units()) == ""
    said = seen(tmp_path / "fast", fault, fault.units(), run_mode="fast math", jobs=1)
    assert "killed by SIG" in said or fault.says in said


def test_another_order_of_additions_in_the_forward_is_as_good_as_the_one_before_the_stack(tmp_path: Path) -> None:
    old = "for (int32_t pixel = 0; pixel < Window::pixels_count; ++pixel) {\n      if (window.is_inside(pixel)) {"
    new = old.replace("pixel = 0", "pixel = Window::pixels_count - 1").replace(
        "pixel < Window::pixels_count", "pixel >= 0"
    )
    where = ("as before the stack, two samples", "bilinear", "")
    other = Fault(old, new.replace("++pixel", "--pixel"), where, "", FORWARD_3D)
    assert seen(tmp_path, other, other.units()) == ""


INDEX = ("return index >= 0 && index < size ? index : -1;", "return index >= -4096 ? index : -1;")
CONVERSION = ("return ::metal::fabs(position) < 2.0f * size + 4.0f;", "return true;")
DETECTED = {
    "an unchecked conversion": Fault(*CONVERSION, ("non-finite coordinates", "bilinear", "zeros"), "undefined: "),
    "an index that is not checked": Fault(*INDEX, ("far outside", "nearest", "zeros"), "out-of-bounds: "),
    "an addition that is not atomic": Fault(
        "AtomicType<float>::atomic_add(",
        "[](device atomic<float>* p, idx_t at, float v) { reinterpret_cast<device float*>(p)[at] += v; }(",
        ("many samples per pixel", "nearest", "zeros"),
        "race: ",
    ),
    "part of grad_grid is not written": Fault(
        "grad_grid[D * position + (D - 1 - axis)] =",
        "if (axis > 0) grad_grid[D * position + (D - 1 - axis)] =",
        ("odd sizes", "nearest", "zeros"),
        "unwritten: ",
    ),
    "part of the output is not written": Fault(
        "output[output_offset] = static_cast<T>(sum);",
        "if (c > 0) output[output_offset] = static_cast<T>(sum);",
        ("odd sizes", "nearest", "zeros"),
        "unwritten: ",
        FORWARD_3D,
    ),
}
for _name in ("an index that is not checked", "an addition that is not atomic", "part of grad_grid is not written"):
    DETECTED[f"3D: {_name}"] = replace(DETECTED[_name], op=BACKWARD_3D)
for _name in ("an unchecked conversion", "an index that is not checked"):
    DETECTED[f"forward: {_name}"] = replace(DETECTED[_name], op=FORWARD_3D)


@pytest.mark.parametrize("fault", DETECTED)
def test_a_detector_finds_what_values_may_not_show(fault: str, tmp_path: Path) -> None:
    seeded = DETECTED[fault]
    assert seeded.says in seen(tmp_path, seeded, seeded.units()[:1], run_mode="detectors")


@pytest.mark.parametrize("op", [BACKWARD_2D, FORWARD_3D])
def test_a_header_that_changed_is_noticed(op: str, tmp_path: Path) -> None:
    old, new = "  bool align_corners;\n", "  bool align_corners;\n  bool added;\n"
    fault = Fault(old, new, ("odd sizes", "bilinear", "zeros"), "the struct does not have the fields", op)
    assert fault.says in seen(tmp_path, fault, fault.units()[:1])
