"""The gate "test-mps" on the stand-in device: the stack's own tests pass, stale lists and failing tests are named."""

from __future__ import annotations

from typing import Any

import pytest

from patchstack.tree.native_functions import FUNCTIONS_PATH
from stack_lab import METAL_FILE
from stackproof.gates.test_mps.child import FALLBACK, TEST_FILE
from stackproof.gates.test_mps.gate import no_worse, select_patterns
from stackproof.gates.test_mps.spec import SPEC as TEST_MPS
from stackproof.model import Verdict

LISTS = "torch/testing/_internal/common_mps.py"
PATTERNS = ["test_output_grad_match_grid_sampler_2d"]
ENTRY = '"grid_sampler_2d": [torch.float16],'


def test_the_selection_follows_from_the_ops_and_from_the_changed_tests(stack: Any) -> None:
    patterns = select_patterns(["grid_sampler_2d_backward"], stack.tree(stack.base), stack.tree())
    assert "grid_sampler_2d" in patterns
    assert "test_grid_sample_2d_autograd" in patterns
    assert "test_grid_sample_2d_forward" not in patterns


def test_the_selection_has_the_ops_whose_expected_failures_the_stack_changes(stack: Any) -> None:
    patterns = select_patterns(["grid_sampler_3d_backward"], stack.tree(stack.base), stack.tree())
    assert {"grid_sampler_2d", "grid_sampler_3d", "nn_functional_grid_sample"} <= set(patterns)
    assert len(patterns) < 60


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.usefixtures("compiler")
def test_the_stacks_own_tests_and_the_consistency_tests_pass(stack: Any) -> None:
    result = stack.judge(TEST_MPS)
    assert [finding.message for finding in result.findings if finding.fails] == []
    assert result.verdict is Verdict.PASSED
    assert result.cases > 50
    assert result.details["device"] == "stand-in"
    assert result.details["xfail"] == 5  # gradients in float16, and nn.functional.grid_sample in both 16-bit dtypes
    assert tuple(result.limits) == TEST_MPS.limits
    seen = result.details["kernels"]
    assert seen["launches"] > 500
    assert all("on the CPU" not in endings for endings in seen["calls"].values())
    # What only tensors of more than 2^31 elements need, the tests do not reach.
    assert {kernel.rpartition("_")[2] for kernel in seen["never_launched"]} == {"int64"}


@pytest.mark.slow
@pytest.mark.usefixtures("compiler")
def test_what_passes_on_the_cpu_because_the_dispatch_entry_is_missing_fails(stack: Any) -> None:
    head = stack.replaced("    MPS: grid_sampler_2d_backward_mps\n", "", FUNCTIONS_PATH)
    result = stack.judge(TEST_MPS, head, tests=["test_grid_sample_2d_autograd"])
    assert (result.details["passed"], result.details["failed"]) == (9, 0)
    assert result.verdict is Verdict.FAILED
    (finding,) = [finding for finding in result.findings if finding.fails]
    assert finding.rule == "cpu-fallback"
    assert finding.message.startswith("grid_sampler_2d_backward: ")
    assert "calls ended in the CPU fallback" in finding.message
    assert not any("2d_backward" in kernel for kernel in result.details["kernels"]["launched"])


@pytest.mark.slow
@pytest.mark.usefixtures("compiler")
def test_a_stale_entry_of_the_expected_failures_is_named(stack: Any) -> None:
    head = stack.replaced(ENTRY, '"grid_sampler_2d": [torch.float16, torch.float32],', LISTS)
    result = stack.judge(TEST_MPS, head, tests=PATTERNS)
    assert result.verdict is Verdict.FAILED
    stale = [finding.message for finding in result.findings if finding.rule == "stale-xfail"]
    assert len(stale) == 1
    assert "test_output_grad_match_grid_sampler_2d" in stale[0]


@pytest.mark.slow
@pytest.mark.usefixtures("compiler")
def test_a_list_that_still_expects_success_of_what_fails_is_named(stack: Any) -> None:
    text = stack.text(LISTS)
    line = next(line for line in text.splitlines(keepends=True) if ENTRY in line)
    head = stack.changed({LISTS: text.replace(line, "")})
    result = stack.judge(TEST_MPS, head, tests=PATTERNS)
    assert result.verdict is Verdict.FAILED
    failed = [finding.message for finding in result.findings if finding.rule == "test-failed"]
    assert any("test_output_grad_match_grid_sampler_2d" in message and "float16" in message for message in failed)


@pytest.mark.slow
@pytest.mark.usefixtures("compiler")
def test_a_test_file_that_cannot_be_loaded_is_a_finding(stack: Any) -> None:
    head = stack.changed({TEST_FILE: "import no_such_module\n" + stack.text(TEST_FILE)})
    result = stack.judge(TEST_MPS, head, tests=PATTERNS)
    assert result.verdict is Verdict.FAILED
    assert "no_such_module" in result.findings[0].message


def test_the_fallback_to_the_cpu_is_refused(stack: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FALLBACK, "1")
    result = stack.judge(TEST_MPS)
    assert result.verdict is Verdict.NOT_RUN
    assert FALLBACK in result.reason


@pytest.mark.parametrize(
    ("now", "excused"),
    [
        ("not close! Mismatched elements: 20 / 780 (2.6%)", True),
        ("not close! Mismatched elements: 3 / 780 (0.4%)", True),
        ("not close! Mismatched elements: 21 / 780 (2.7%)", False),
        ("no such kernel", False),
    ],
)
def test_a_failure_is_that_of_the_tree_below_only_if_it_is_no_worse(now: str, excused: bool) -> None:
    assert no_worse(now, "not close! Mismatched elements: 20 / 780 (2.6%)") is excused


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.usefixtures("compiler")
def test_the_tests_pass_on_a_tree_of_after_or_fail_below_the_stack_too(stack_of_after: Any) -> None:
    result = stack_of_after.judge(TEST_MPS, tests=PATTERNS)
    assert [finding.message for finding in result.findings if finding.fails] == []
    assert result.verdict is Verdict.PASSED
    notes = [finding.message for finding in result.findings if finding.rule == "fails-below"]
    assert sorted(note.partition(":")[0] for note in notes) == result.details["failing_below"]


@pytest.mark.slow
@pytest.mark.usefixtures("compiler")
def test_a_test_that_fails_worse_than_below_the_stack_is_the_stacks_fault(stack_of_after: Any) -> None:
    slope = "static_cast<T>(window.axes[axis].derivative"
    head = stack_of_after.replaced(slope, slope.replace("(window", "(-window"), METAL_FILE)
    result = stack_of_after.judge(TEST_MPS, head, tests=PATTERNS)
    assert result.verdict is Verdict.FAILED
    failed = {finding.message.partition(":")[0].rpartition("_")[2] for finding in result.findings if finding.fails}
    assert failed >= {"float16", "float32"}
    assert result.details["failing_below"] == []
