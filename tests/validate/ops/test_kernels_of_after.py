"""The proofs on a tree of after April 2026: they find what upstream's kernels do wrong, and pass with the change.

The tree without the change is a stand-in with upstream's structure and its flaws, which are pinned on upstream's own
kernels in ``tests/validate/engines/apple/test_upstream_divergences.py``.
"""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import torch

from overlay_kernels import sampler_proof
from patchstack.cache import cache_dir
from stack_lab import METAL_FILE, StackLab, sampler_kernels, sampler_source
from stackproof.engines.kernels import Kernels
from stackproof.engines.metal import ALL_DETECTORS
from stackproof.engines.pool.tasks import Died, run_tasks
from stackproof.gates.metal_run.spec import PLAIN
from stackproof.gates.metal_run.worker import Setup, Task
from stackproof.ops import WorkUnit
from stackproof.ops.grid_sampler.checks import ExpectedSamples
from stackproof.ops.grid_sampler.families.upstream import forward_kernel, sums_in_float
from stackproof.ops.grid_sampler.host import HostForward
from stackproof.ops.grid_sampler.modes import SAMPLER_2D, Interpolation, Mode, Padding
from stackproof.ops.grid_sampler.special_backward import collisions
from stackproof.ops.grid_sampler.table import DTYPES, RANDOM, SHAPES
from stackproof.ops.grid_sampler.values import random_tensors
from stackproof.ops.sources import OpSource

OPS = ("grid_sampler_2d", "grid_sampler_2d_backward", "grid_sampler_3d", "grid_sampler_3d_backward")
BACKWARD = [op for op in OPS if op.endswith("backward")]
FORWARD = [op for op in OPS if not op.endswith("backward")]
ONE_COLUMN = "one column"
# Kind or shape, dtype, modes, and how it is run: where a tree without the change has nothing wrong, and where it has.
FAULTS = (
    ("odd sizes", "float32", "", PLAIN),
    ("odd sizes", "float16", "bilinear, border", PLAIN),
    ("odd sizes", "bfloat16", "bilinear, border", PLAIN),
    (ONE_COLUMN, "float32", "bilinear, reflection, align", PLAIN),
    ("non-finite coordinates", "float32", "bilinear", "detectors"),
)


@pytest.fixture(scope="module")
def kernels(stack_of_after: StackLab) -> Kernels:
    """Those of the change, beside those below it."""
    torch.set_num_threads(1)
    new = sampler_kernels(stack_of_after.tree())
    return Kernels(new.library, new.headers, before=sampler_kernels(stack_of_after.tree("main")))


def chosen(op: str, kind: str, dtype: str, modes: str = "", *, full: bool = True) -> list[WorkUnit]:
    """Units of an op by the kind of batch or the name of its shape, its dtype, and how its mode is called."""
    found = [
        unit
        for unit in sampler_proof(op).units(full=full)
        if kind in (unit.key.kind, unit.key.kind.partition(", ")[0], unit.key.shape.name if unit.key.shape else "")
        and unit.key.dtype == dtype
        and str(unit.key.mode).startswith(modes)
    ]
    assert found
    return found


def problems(op: str, units: list[WorkUnit], kernels: Kernels) -> list[str]:
    """What running units says; every announced case must be there."""
    results = [result for unit in units for result in sampler_proof(op).run(unit, kernels)]
    assert len(results) == sum(unit.cases for unit in units)
    return [problem for result in results for problem in result.problems]


Said = dict[tuple[str, str, str], list[str]]


@pytest.fixture(scope="module")
def below(stack_of_after: StackLab) -> Said:
    """What the faulty units say on the tree without the change, by op, kind and dtype, in processes that may die."""
    source = sampler_source(stack_of_after.tree("main"))
    work = Setup(dict.fromkeys(OPS, source), cache_dir())
    tasks = [
        Task(op, run_mode, unit)
        for op in OPS
        for kind, dtype, modes, run_mode in FAULTS
        if kind != ONE_COLUMN or op in FORWARD
        for unit in chosen(op, kind, dtype, modes)
    ]
    said: Said = {}
    for task, answer in run_tasks(tasks, work, jobs=1):
        assert task.unit is not None
        lines = said.setdefault((task.op, task.unit.key.kind, task.unit.key.dtype), [])
        if isinstance(answer, Died):
            lines.append(f"{task.unit.key.shape.name}: {answer.reason}")
        else:
            lines += [problem for result in answer.results for problem in result.problems]
            lines += [f"{finding.rule}: {finding.message}" for finding in answer.findings]
    return said


@pytest.mark.parametrize("op", OPS)
def test_with_the_change_nothing_of_that_is_said(op: str, kernels: Kernels) -> None:
    units = [unit for kind, dtype, modes, _ in FAULTS for unit in chosen(op, kind, dtype, modes)]
    assert problems(op, units, kernels) == []


@pytest.mark.parametrize("op", OPS)
def test_without_the_change_ordinary_coordinates_in_float32_are_right(op: str, below: Said) -> None:
    died = [f"{ONE_COLUMN}: killed by SIGFPE"] if op in FORWARD else []
    assert below[op, RANDOM, "float32"] == died  # on an axis of one pixel


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("op", BACKWARD)
def test_without_the_change_sums_in_16_bits_are_found(op: str, dtype: str, below: Said) -> None:
    assert below[op, RANDOM, dtype]
    assert all(text.startswith("grad_input is off by") for text in below[op, RANDOM, dtype])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("op", FORWARD)
def test_without_the_change_samples_in_16_bits_are_right(op: str, dtype: str, below: Said) -> None:
    assert below[op, RANDOM, dtype] == []


@pytest.mark.parametrize("op", OPS)
def test_without_the_change_extreme_coordinates_are_found(op: str, below: Said) -> None:
    said = below[op, "non-finite coordinates", "float32"]
    assert any(text.startswith("undefined: ") for text in said)
    assert any(" is off by " in text for text in said)


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", OPS)
def test_every_small_case_passes_with_the_change(op: str, dtype: str, kernels: Kernels) -> None:
    units = [unit for unit in sampler_proof(op).units(full=False) if unit.key.dtype == dtype]
    assert problems(op, units, kernels) == []


@pytest.mark.parametrize("op", OPS)
def test_special_cases_pass_with_the_change(op: str, kernels: Kernels) -> None:
    kinds = {kind for kind in sampler_proof(op).special if kind != "collisions" and not kind.startswith("as before")}
    units = [unit for kind in sorted(kinds) for unit in chosen(op, kind, "float16")]
    assert problems(op, units, kernels) == []


@pytest.mark.parametrize("op", BACKWARD)
def test_colliding_samples_sum_up_with_the_change(op: str, kernels: Kernels) -> None:
    sampler = sampler_proof(op).sampler
    for mode in sampler.modes:
        (result,) = collisions(kernels, sampler, mode, torch.bfloat16)
        assert result.problems == ()


@pytest.mark.parametrize("op", OPS)
def test_the_changes_kernels_are_clean_under_the_detectors(op: str, stack_of_after: StackLab) -> None:
    watched = sampler_kernels(stack_of_after.tree(), ALL_DETECTORS)
    units = [unit for unit in sampler_proof(op).units(full=False) if unit.key.dtype == "bfloat16"]
    assert problems(op, units, watched) == []
    assert watched.library.reports() == []


@pytest.mark.parametrize("name", ["two samples", "far outside", "on the lattice"])
@pytest.mark.parametrize("op", FORWARD)
def test_ordinary_samples_are_those_of_before_within_rounding(op: str, name: str, kernels: Kernels) -> None:
    for dtype in DTYPES:
        units = chosen(op, f"as before the stack, {name}", dtype, "bilinear, reflection")
        results = [result for unit in units for result in sampler_proof(op).run(unit, kernels)]
        assert len(results) == sum(unit.cases for unit in units)
        assert [(result.problems, result.skipped) for result in results] == [((), "")] * len(results)


@pytest.mark.parametrize("op", FORWARD)
def test_a_kernel_of_before_that_takes_its_process_down_costs_one_batch(op: str, stack_of_after: StackLab) -> None:
    new, old = (sampler_source(stack_of_after.tree(at)) for at in (None, "main"))
    work = Setup({op: replace(new, before=old)}, cache_dir())
    units = chosen(op, "as before the stack, one row", "float32", "bilinear, reflection, align")
    answers = [answer for _, answer in run_tasks([Task(op, PLAIN, unit) for unit in units], work, jobs=1)]
    assert [isinstance(answer, Died) and answer.reason for answer in answers] == ["killed by SIGFPE"] * len(units)


def test_samples_that_are_further_off_than_those_of_before_are_found(kernels: Kernels) -> None:
    swapped = Kernels(_Swapped(kernels.library), kernels.headers, before=kernels.before)
    units = chosen("grid_sampler_2d", "as before the stack, far outside", "float32", "bilinear, zeros, no")
    results = [result for unit in units for result in sampler_proof("grid_sampler_2d").run(unit, swapped)]
    assert all("where the kernels below the stack are off by 0" in text for one in results for text in one.problems)
    assert any(result.problems for result in results)


class _Swapped:
    """A library in which zeros and border padding changed places."""

    def __init__(self, library: object) -> None:
        self._library = library

    def __getattr__(self, name: str) -> object:
        return getattr(self._library, name.replace("zeros", "border"))

    def __dir__(self) -> list[str]:
        return list(dir(self._library))


@pytest.mark.parametrize("op", BACKWARD)
def test_the_type_of_the_sums_is_read_from_the_kernels(op: str, stack_of_after: StackLab, kernels: Kernels) -> None:
    sampler = sampler_proof(op).sampler
    assert sums_in_float(kernels.library, sampler)
    assert not sums_in_float(sampler_kernels(stack_of_after.tree("main")).library, sampler)


def test_a_field_that_nobody_fills_is_named(kernels: Kernels) -> None:
    header = kernels.headers[0].replace(b"  bool align_corners;", b"  bool align_corners;\n  bool added;", 1)
    mode = Mode(Interpolation.BILINEAR, Padding.ZEROS, align_corners=False)
    expected = ExpectedSamples.of(random_tensors(SHAPES[2][0], torch.float32, mode), mode)
    assert forward_kernel(SAMPLER_2D, mode, torch.float32, wide=False).name in dir(kernels.library)
    with pytest.raises(Exception, match="a field of the struct is not known"):
        expected.check(HostForward(Kernels(kernels.library, (header,))), "another header")


# By op: a text of the change, another one in its place, and what has to be said.
SEEDED = {
    "grid_sampler_2d": ("  input_offset += params.input_strides[1];", "  input_offset += 1;", "output is off"),
    "grid_sampler_3d": (
        "const idx_t c = where.index[0] - n * params.output_sizes[1];",
        "const idx_t c = 0;",
        "output is off",
    ),
    "grid_sampler_2d_backward": (
        "  grad_input_offset += params.grad_input_strides[1];",
        "  grad_input_offset += 1;",
        "grad_input is off",
    ),
    "grid_sampler_3d_backward": (
        "static_cast<T>(window.axes[axis].derivative",
        "static_cast<T>(-window.axes[axis].derivative",
        "grad_grid is off",
    ),
}
SIXTEEN_BITS = re.compile(r"^REGISTER_GRID_SAMPLER\w*\((half|bfloat)\);\n", re.MULTILINE)


@pytest.fixture(scope="module")
def faulty(stack_of_after: StackLab) -> OpSource:
    """All seeded faults at once, in float32 only to save time."""
    text = stack_of_after.text(METAL_FILE)
    for old, new, _ in SEEDED.values():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return sampler_source(stack_of_after.tree(stack_of_after.changed({METAL_FILE: SIXTEEN_BITS.sub("", text)})))


@pytest.mark.parametrize("op", SEEDED)
def test_a_fault_in_the_change_is_found(op: str, faulty: OpSource) -> None:
    work = Setup({op: faulty}, cache_dir())
    units = chosen(op, "three samples", "float32", "bilinear, zeros, align")
    said = [problem for unit in units for one in work(Task(op, PLAIN, unit)).results for problem in one.problems]
    assert any(text.startswith(SEEDED[op][2]) for text in said)
