"""Each run mode catches its seeded fault, at the right line, and says nothing about correct kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from metal_kernels import library, marked_lines
from stackproof.engines.metal import (
    ALL_DETECTORS,
    MetalLibrary,
    Report,
    ReportKind,
    RunMode,
    fast_math_sensitivity,
    order_dependence,
)
from stackproof.engines.metal.toolchain import find_toolchain


def zeros(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.zeros(shape, dtype=dtype)


def ints(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


I32 = torch.int32
# Kernel, its mode, its arguments, threads, threads per group.
FAULTS: dict[str, tuple[RunMode, Callable[[], tuple[Any, ...]], int, int]] = {
    "read_past_end": (RunMode.BOUNDS, lambda: (zeros(64), zeros(64)), 64, 64),
    "write_before_begin": (RunMode.BOUNDS, lambda: (zeros(64),), 64, 64),
    "write_between_elements": (RunMode.BOUNDS, lambda: (zeros(32, 2)[:, 0],), 4, 4),
    "read_past_constants": (RunMode.BOUNDS, lambda: ([1, 2, 3, 4], zeros(8, dtype=I32)), 8, 8),
    "write_read_only": (RunMode.BOUNDS, lambda: (zeros(8),), 8, 8),
    "past_threadgroup_array": (RunMode.BOUNDS, lambda: (zeros(16),), 16, 16),
    "past_private_array": (RunMode.UNDEFINED, lambda: (zeros(4, dtype=I32), 2), 4, 4),
    "past_private_pointer": (RunMode.UNDEFINED, lambda: (zeros(4, dtype=I32), 6), 4, 4),
    "coordinate_cast": (RunMode.UNDEFINED, lambda: (torch.full((4,), 3e38), zeros(4, dtype=I32)), 4, 4),
    "signed_overflow": (RunMode.UNDEFINED, lambda: (ints(1, 70000), zeros(2, dtype=I32)), 2, 2),
    "through_null": (RunMode.UNDEFINED, lambda: (zeros(1, dtype=torch.int64), zeros(2, dtype=I32)), 2, 2),
    "divide_by_zero": (RunMode.UNDEFINED, lambda: (ints(3, 0), zeros(2, dtype=I32)), 2, 2),
    "misaligned": (RunMode.UNDEFINED, lambda: (zeros(64, dtype=torch.int8), zeros(4, dtype=I32)), 4, 4),
    "not_a_bool": (RunMode.UNDEFINED, lambda: (torch.full((4,), 7, dtype=torch.uint8), zeros(4, dtype=I32)), 4, 4),
    "missing_barrier": (RunMode.RACE, lambda: (zeros(64),), 64, 64),
    "race_between_groups": (RunMode.RACE, lambda: (zeros(1, dtype=I32),), 2, 1),
    "atomic_and_plain": (RunMode.RACE, lambda: (zeros(1, dtype=I32), zeros(8, dtype=I32)), 8, 8),
    "wrong_barrier_flags": (RunMode.RACE, lambda: (zeros(64), zeros(64)), 64, 64),
    "barrier_missing_in_loop": (RunMode.RACE, lambda: (zeros(1),), 64, 64),
    "unwritten_threadgroup": (RunMode.UNINITIALISED, lambda: (zeros(64),), 64, 64),
    "read_unwritten_output": (RunMode.UNINITIALISED, lambda: (zeros(8),), 8, 8),
    "forgets_the_last": (RunMode.UNINITIALISED, lambda: (zeros(8), 8), 8, 8),
    "some_have_left": (RunMode.BOUNDS, lambda: (zeros(64), 40), 64, 64),
    "two_barriers": (RunMode.BOUNDS, lambda: (zeros(64),), 64, 64),
    "lane_that_has_left": (RunMode.UNINITIALISED, lambda: (zeros(32),), 32, 32),
    "sum_of_some": (RunMode.DIVERGENCE, lambda: (zeros(64),), 64, 64),
    "behind_and": (RunMode.DIVERGENCE, lambda: (zeros(32),), 32, 32),
    "loops_apart": (RunMode.DIVERGENCE, lambda: (zeros(64),), 64, 64),
    "quad_apart": (RunMode.DIVERGENCE, lambda: (zeros(32),), 32, 32),
}


if find_toolchain().major < 20:
    del FAULTS["past_private_pointer"]  # not watched for by older compilers


def run_fault(kernel: str, mode: RunMode) -> list[Report]:
    _mode, arguments, threads, group = FAULTS[kernel]
    compiled = library("faults.metal", ALL_DETECTORS)
    compiled.mode = mode
    compiled.clear_reports()
    args = arguments()
    if kernel in ("read_unwritten_output", "forgets_the_last"):
        compiled.mark_undefined(args[0])
    compiled.kernel(kernel)(*args, threads=threads, group_size=group)
    return compiled.reports()


@pytest.mark.parametrize("kernel", FAULTS)
def test_a_seeded_fault_is_reported_once_at_its_line(kernel: str) -> None:
    kind, line, other = marked_lines("faults.metal")[kernel]
    reports = run_fault(kernel, FAULTS[kernel][0])
    assert [(r.kind, r.kernel) for r in reports] == [(ReportKind(kind), kernel)], reports
    assert reports[0].file.endswith("faults.metal")
    places = [reports[0].line, reports[0].other_line]
    # Which access of a race comes second is up to the schedule.
    assert (sorted(places) == sorted((line, other))) if other else (places[0] == line)


@pytest.mark.parametrize("kernel", FAULTS)
def test_all_modes_together_find_the_same_fault(kernel: str) -> None:
    kind, line, other = marked_lines("faults.metal")[kernel]
    found = [(r.kind, r.line) for r in run_fault(kernel, ALL_DETECTORS)]
    assert (ReportKind(kind), line) in found or (ReportKind(kind), other) in found


def test_every_marked_kernel_has_a_test() -> None:
    assert set(marked_lines("faults.metal")) == {*FAULTS, "last_one_wins", "asks_for_nan", "past_private_pointer"}


def test_a_result_that_depends_on_the_schedule_is_reported() -> None:
    compiled = library("faults.metal")
    kind, line, _other = marked_lines("faults.metal")["last_one_wins"]
    reports = order_dependence(compiled, "last_one_wins", (zeros(64, dtype=I32), zeros(1, dtype=I32)), threads=64)
    assert [(r.kind, r.line) for r in reports] == [(ReportKind(kind), line)]


def test_a_result_that_fast_math_changes_is_reported() -> None:
    kind, line, _other = marked_lines("faults.metal")["asks_for_nan"]
    precise, fast = library("faults.metal"), library("faults.metal", RunMode.FAST_MATH)
    args = (torch.tensor([1.0, float("nan")]), zeros(2))
    reports = fast_math_sensitivity(precise, fast, "asks_for_nan", args, threads=2)
    assert [(r.kind, r.line) for r in reports] == [(ReportKind(kind), line)]
    assert not args[1].any()


def test_a_wild_access_ends_the_thread_and_not_the_process() -> None:
    compiled = library("faults.metal", ALL_DETECTORS)
    compiled.mode = RunMode.BOUNDS
    compiled.clear_reports()
    out = zeros(4, dtype=I32)
    compiled.kernel("read_past_constants")([1, 2], out, threads=4, group_size=4)
    assert out.tolist() == [1, 2, 0, 0]


def test_a_fault_outside_the_watched_kinds_is_not_reported() -> None:
    assert run_fault("missing_barrier", RunMode.BOUNDS) == []
    assert run_fault("unwritten_threadgroup", RunMode.RACE) == []


def clean_calls(compiled: MetalLibrary) -> None:
    """Every correct kernel once."""
    values = torch.arange(600, dtype=torch.float32)
    compiled.kernel("group_sum")(values, zeros(3), 600, threads=600, group_size=256)
    compiled.kernel("simdgroup_sum_float")(values, zeros(24), zeros(24), threads=600, group_size=75)
    compiled.kernel("simdgroup_sum_int")(values.int(), zeros(20).int(), zeros(20).int(), threads=150, group_size=75)
    counters = (zeros(1), *(zeros(1, dtype=I32) for _ in range(3)))
    compiled.kernel("contended")(*counters, threads=200, group_size=64)
    compiled.kernel("histogram")(values.int(), zeros(16).int(), threads=600, group_size=100)
    compiled.kernel("rotate_in_loop")(values[:70].int(), 5, threads=70, group_size=70)
    compiled.kernel("passed_memory")(values[:64], zeros(64), threads=64, threadgroup_memory={0: 256})
    compiled.kernel("lanes")(torch.arange(32, dtype=I32), zeros(32, 12).int(), threads=32)
    compiled.kernel("tile_product")(zeros(8, 8).half(), zeros(8, 8), zeros(8, 8), threads=32)
    compiled.kernel("apart_on_purpose")(zeros(96), threads=96)
    halves = torch.tensor([0.5, 3.0]).half()
    compiled.kernel("rounding")(halves, zeros(2).half(), zeros(2).bfloat16(), threads=2)


def test_no_mode_reports_anything_about_correct_kernels() -> None:
    compiled = library("clean.metal", ALL_DETECTORS)
    for mode in (ALL_DETECTORS, ALL_DETECTORS | RunMode.PERMUTED):
        compiled.mode = mode
        clean_calls(compiled)
        assert compiled.reports() == []
    plain = library("clean.metal")
    clean_calls(plain)
    assert plain.reports() == []
