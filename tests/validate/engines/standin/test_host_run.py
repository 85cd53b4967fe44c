"""The gate "host-run" on the stack of the reference tree: the public interface works, each seeded fault is named."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from stack_lab import HOST_FILE, METAL_FILE, StackLab
from stackproof.gates.common.standin.collected import LIMITS
from stackproof.gates.host_run.spec import SPEC as HOST_RUN
from stackproof.model import Verdict

pytestmark = [pytest.mark.usefixtures("compiler"), pytest.mark.slow]

LANES_FILE = HOST_FILE.replace(".mm", "Lanes.mm")
COUNT = "std::min(positions - first, max_launch)"
BUFFERS = "{grad_input_slot, grad_grid, grad_output, input, grid}"
EACH_BUFFER = "      for (const auto slot : c10::irange(tensors.size())) {\n"
FIRST_IN_BLOCK = "      auto launch_params = params;"
BEFORE_BLOCK = "  constexpr int64_t max_launch = int64_t{1} << 30;"
FIRST_OF_FUNCTION = "  check_grid_sampler_gradient(op, grad_output, input, grid);\n"
FORWARD_3D, BACKWARD_2D, BACKWARD_3D = "grid_sampler_3d", "grid_sampler_2d_backward", "grid_sampler_3d_backward"
OPS = [BACKWARD_2D, FORWARD_3D, BACKWARD_3D]


@dataclass(frozen=True)
class Fault:
    """What is replaced in the host file by what; the rules of which one must fail, and words of its message."""

    old: str
    new: str
    rules: tuple[str, ...]
    words: str
    kind: str = "detectors"
    op: str = BACKWARD_2D
    path: str = HOST_FILE


FAULTS = {
    "swapped buffers": Fault(
        BUFFERS,
        BUFFERS.replace("input, grid", "grid, input"),
        ("out-of-bounds", "wrong-value"),
        "grid_sampler_2d_backward",
    ),
    "a missing zero fill": Fault(
        "grad_input = at::zeros(input.sizes(),",
        "grad_input = at::empty(input.sizes(),",
        ("uninitialised",),
        "read of grad_input",
    ),
    "a kernel name that does not exist": Fault(
        'fmt::format("{}_{}_{}_{}{}"',
        'fmt::format("{}s_{}_{}_{}{}"',
        ("no-such-kernel",),
        "grid_sampler_2d_backwards_",
    ),
    "too many threads": Fault(COUNT, f"{COUNT} + 7", ("out-of-bounds",), "grid_sampler_2d_backward"),
    "too few threads": Fault(COUNT, f"{COUNT} - 1", ("unwritten",), "were never written"),
    "a check inside the block": Fault(
        FIRST_IN_BLOCK,
        f'      TORCH_CHECK(positions < 0, "not today");\n{FIRST_IN_BLOCK}',
        ("check-inside-block",),
        "not today",
    ),
    "an encoder taken outside the block": Fault(
        BEFORE_BLOCK,
        f"  [[maybe_unused]] auto encoder = getCurrentMPSStream()->commandEncoder();\n{BEFORE_BLOCK}",
        ("encoder-outside-block",),
        "outside of its queue block",
    ),
    "an argument left from another kernel": Fault(
        EACH_BUFFER,
        f"{EACH_BUFFER}        if (slot == 3) continue;\n",
        ("stale-binding",),
        "argument 3 (input)",
    ),
    "a bad argument that is let through": Fault(
        "TORCH_CHECK(grad_output.sizes() == IntArrayRef(output_sizes),",
        "TORCH_CHECK(grad_output.dim() == 4,",
        ("behaviour",),
        "grad_output too small",
        "bad arguments",
    ),
    "3D: an alert that names another op": Fault(
        'alertNotDeterministic("grid_sampler_3d_backward_mps")',
        'alertNotDeterministic("grid_sampler_2d_backward_mps")',
        ("behaviour",),
        "the alert is missing",
        "deterministic algorithms",
        BACKWARD_3D,
    ),
    "3D: bicubic is refused in other words": Fault(
        "  check_grid_sampler_3d(input, grid, interpolation_mode);\n  if (output_mask[0]) {",
        '  TORCH_CHECK(interpolation_mode != 2, "no bicubic");\n'
        "  check_grid_sampler_3d(input, grid, 0);\n  if (output_mask[0]) {",
        ("behaviour",),
        "bicubic is refused as on the CPU",
        "bad arguments",
        BACKWARD_3D,
    ),
    "3D: gradients of another size": Fault(
        "std::make_tuple(std::move(grad_input), std::move(grad_grid))",
        "std::make_tuple(std::move(grad_input), grad_grid.mul(1.001))",
        ("behaviour",),
        "away from the CPU's in float64",
        "training",
        BACKWARD_3D,
    ),
    "forward: sizes for strides": Fault(
        "params.output_strides = grid_sampler_dims<5, idx_type_t>(output.strides());",
        "params.output_strides = grid_sampler_dims<5, idx_type_t>(output.sizes());",
        ("out-of-bounds", "unwritten", "wrong-value"),
        "grid_sampler_3d",
        op=FORWARD_3D,
    ),
    "forward: bicubic reaches the kernels": Fault(
        "  check_grid_sampler_3d(input, grid, interpolation_mode);\n  mps::check",
        "  check_grid_sampler_3d(input, grid, 0);\n  mps::check",
        ("behaviour",),
        "bicubic is refused as on the CPU",
        "bad arguments",
        FORWARD_3D,
    ),
}


FAULTS_OF_DIVISION = {
    "the stride of positions beside its place": Fault(
        "params.grad_output_strides[N - 1] = static_cast<int32_t>(position",
        "params.grad_output_strides[N] = static_cast<int32_t>(position",
        ("wrong-value",),
        "one column",
        kind="values",
        path=LANES_FILE,
    ),
    "sums that are not zeroed": Fault(
        "    if (call.compute_grad_input && !zeroes_sums) {\n      sums.zero_();\n    }\n",
        "",
        ("uninitialised",),
        "grid_sampler_2d_backward",
        path=LANES_FILE,
    ),
    "a threshold that the plan does not have": Fault(
        "LanesDivision{channels <= 32 ? 8 : 32, grad_output",
        "LanesDivision{channels <= 31 ? 8 : 32, grad_output",
        ("behaviour", "wrong-value"),
        "instead of",
        "launches",
        path=LANES_FILE,
    ),
}


@pytest.mark.exhaustive
def test_everything_works_through_the_public_interface(stack: Any) -> None:
    result = stack.judge(HOST_RUN, ops=OPS)
    assert [finding.message for finding in result.findings if finding.fails] == []
    assert result.verdict is Verdict.PASSED
    assert result.cases > 4000
    assert result.worst_error is not None
    assert result.worst_error < 4
    assert set(OPS) <= set(result.details["ops"])
    seen = result.details["kernels"]
    assert seen["brought"] == len(seen["launched"]) + len(seen["never_launched"])
    assert all(kernel.endswith("_int64") for kernel in seen["never_launched"])
    for op in OPS:
        assert seen["calls"][op]["by the stack's kernels"] > 1000
        assert seen["calls"][op]["raised"] > 10
    assert tuple(result.limits) == LIMITS
    assert {row["op"] for row in result.details["scenarios"]} == set(OPS)
    kinds = {row["kind"] for row in result.details["scenarios"] if row["op"] == BACKWARD_3D}
    assert kinds >= {"values", "detectors", "vmap over grad_output", "autocast", "dirty allocator", "training"}
    assert kinds >= {"bad arguments", "finite differences", "deterministic algorithms"}


def test_a_kernel_that_the_host_function_never_picks_fails_and_is_named(stack_below: Any) -> None:
    head = stack_below.replaced("scalarToMetalTypeString(grid)", 'std::string("float")')
    result = stack_below.judge(HOST_RUN, head, ops=[FORWARD_3D])
    (finding,) = [one for one in result.findings if one.rule == "never-launched" and one.fails]
    forward = {kernel for kernel in finding.details["kernels"] if kernel.startswith("grid_sampler_3d_bilinear")}
    assert forward == {
        f"grid_sampler_3d_bilinear_{padding}_{dtype}"
        for padding in ("zeros", "border", "reflection")
        for dtype in ("half", "bfloat")
    }


def assert_found(stack: Any, seeded: Fault) -> None:
    head = stack.replaced(seeded.old, seeded.new, seeded.path)
    result = stack.judge(HOST_RUN, head, kinds=[seeded.kind], ops=[seeded.op])
    assert result.verdict is Verdict.FAILED
    found = [finding for finding in result.findings if finding.fails and finding.rule in seeded.rules]
    assert any(seeded.words in finding.message for finding in found), [finding.message for finding in result.findings]


@pytest.mark.exhaustive
@pytest.mark.parametrize("fault", FAULTS)
def test_a_seeded_fault_fails_and_is_named(stack_below: Any, fault: str) -> None:
    assert_found(stack_below, FAULTS[fault])


@pytest.mark.parametrize("fault", FAULTS_OF_DIVISION)
def test_a_seeded_fault_of_the_divided_work_fails_and_is_named(stack: Any, fault: str) -> None:
    assert_found(stack, FAULTS_OF_DIVISION[fault])


def test_a_host_file_that_crashes_is_a_finding_and_not_the_end(stack: Any) -> None:
    crash = "  *reinterpret_cast<volatile int*>(8) = 1;\n"
    head = stack.replaced(FIRST_OF_FUNCTION, FIRST_OF_FUNCTION + crash)
    result = stack.judge(HOST_RUN, head, kinds=["only one gradient", "autocast"])
    assert result.verdict is Verdict.FAILED
    assert {finding.rule for finding in result.findings if finding.fails} == {"crash"}
    assert "SIGSEGV" in result.findings[0].message


def test_a_host_file_that_does_not_compile_fails_at_its_line(stack: Any) -> None:
    head = stack.replaced("      auto launch_params = params;", "      auto launch_params = no_such_name;")
    result = stack.judge(HOST_RUN, head, kinds=["autocast"])
    assert result.verdict is Verdict.FAILED
    assert "no_such_name" in result.findings[0].message
    assert result.findings[0].line > 0


def test_what_the_stand_in_device_does_not_have_is_not_run_rather_than_failed(stack: Any) -> None:
    call = "  getCurrentMPSStream()->checkLastError();\n"
    head = stack.replaced(FIRST_OF_FUNCTION, FIRST_OF_FUNCTION + call)
    result = stack.judge(HOST_RUN, head, kinds=["autocast"])
    assert result.verdict is Verdict.NOT_RUN
    assert "checkLastError" in result.reason


GUARD = "  if (threads == 0) {\n    return;\n  }\n"
LOOP_2D = "  for (int32_t c = 0; c < params.output_sizes[1]; ++c) {\n    Plane2D<T> plane = {"
ROW_CRASHES = f"  if (params.input_sizes[2] == 1) {{\n    *(device int*)16 = 1;\n  }}\n{LOOP_2D}"


def with_fault(stack: Any, old: str, new: str, path: str = HOST_FILE) -> Any:
    """The stack on a base with a fault in its own forward, which the stack leaves alone."""
    below = StackLab(stack.path, stack.repository, stack.base, stack.base)
    return StackLab(stack.path, stack.repository, below.replaced(old, new, path), stack.replaced(old, new, path))


@pytest.mark.exhaustive
def test_launches_of_no_threads_by_the_bases_own_forward_are_notes(stack: Any) -> None:
    lab = with_fault(stack, GUARD, "")
    result = lab.judge(HOST_RUN, kinds=["values"])
    assert [finding.message for finding in result.findings if finding.fails] == []
    assert result.verdict is Verdict.PASSED
    notes = {finding.rule: finding.message for finding in result.findings}
    assert "has no threads, which Metal refuses (as before the stack)" in notes["empty-grid"]
    own = stack.judge(HOST_RUN, lab.head, kinds=["values"])
    assert own.verdict is Verdict.FAILED
    assert "empty-grid" in {finding.rule for finding in own.findings if finding.fails}


@pytest.mark.exhaustive
def test_a_crash_of_the_bases_own_forward_costs_its_shape_and_no_more(stack: Any) -> None:
    lab = with_fault(stack, LOOP_2D, ROW_CRASHES, METAL_FILE)
    result = lab.judge(HOST_RUN, kinds=["values"])
    assert [finding.message for finding in result.findings if finding.fails] == []
    assert result.verdict is Verdict.PASSED
    (note,) = [finding for finding in result.findings if finding.rule == "crash"]
    assert "one row: killed by SIGSEGV in grid_sampler_2d_" in note.message
    modes = {row["scenario"]: row["cases"] for row in result.details["scenarios"]}
    assert min(modes.values()) > max(modes.values()) / 2


def test_an_op_without_scenarios_is_not_run(stack: Any) -> None:
    result = stack.judge(HOST_RUN, ops=["_fft_r2c"])
    assert result.verdict is Verdict.NOT_RUN
    assert "_fft_r2c" in result.reason
