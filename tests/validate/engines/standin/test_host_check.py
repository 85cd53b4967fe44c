"""The gate "host-check" on the stack of the reference tree: passes it, and names each fault put into its host file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from patchstack.errors import TreeError
from patchstack.tree.git import Repository, Tree
from references import require_reference
from stack_lab import StackLab
from stackproof.engines.standin.host_file import release_of
from stackproof.gates.host_check.spec import SPEC as HOST_CHECK
from stackproof.model import Verdict

pytestmark = [pytest.mark.usefixtures("compiler"), pytest.mark.slow]

HOST_FILE = "aten/src/ATen/native/mps/operations/GridSampler.mm"
SHARED_HEADER = "aten/src/ATen/native/mps/kernels/GridSampler.h"

PUBLIC = "grid_sampler_2d_backward_mps"
LIBRARY = "namespace at::native {\n\n#ifndef PYTORCH_JIT_COMPILE_SHADERS"
ARGUMENTS = "      mtl_setArgs(computeEncoder, output, input, grid, launch_params);"
FLAG, MASK = "bool align_corners,", "std::array<bool, 2> output_mask) {"
# What tells the 2D function from the 3D one.
BODY = "\n  check_grid_sampler_common(input, grid);\n  check_grid_sampler_2d(input, grid);\n  if (output_mask[0])"
INDENT = " " * len(f"std::tuple<Tensor, Tensor> {PUBLIC}(")
WAIT = "namespace at::mps {\nvoid wait_for_all();\n}\nstatic const bool waited = (at::mps::wait_for_all(), true);\n"


@dataclass(frozen=True)
class Fault:
    """What is replaced in the host file by what, the rule that must fail, and words of its message."""

    old: str
    new: str
    rule: str
    words: str


NO_PROTOTYPE = f"no previous prototype for function '{PUBLIC}'"
FAULTS = {
    "a wrong return type": Fault(
        f"std::tuple<Tensor, Tensor> {PUBLIC}(",
        f"std::pair<Tensor, Tensor> {PUBLIC}(",
        "syntax",
        "differ only in their return type",
    ),
    "a wrong parameter type": Fault(
        f"{FLAG}\n{INDENT}{MASK}{BODY}", f"int64_t align_corners,\n{INDENT}{MASK}{BODY}", "syntax", NO_PROTOTYPE
    ),
    "a missing op include": Fault(
        "#include <ATen/ops/grid_sampler_2d_backward_native.h>\n", "", "syntax", NO_PROTOTYPE
    ),
    "an unknown selector": Fault(
        ARGUMENTS, f"      [computeEncoder setPipeline:pso];\n{ARGUMENTS}", "syntax", "'-setPipeline:' not found"
    ),
    "a symbol that libtorch does not export": Fault(LIBRARY, WAIT + LIBRARY, "missing-symbol", "at::mps::wait_for_all"),
}


def test_the_stacks_host_file_passes_and_the_limits_are_said(stack: Any) -> None:
    result = stack.judge(HOST_CHECK)
    assert [finding.message for finding in result.findings if finding.fails] == []
    assert result.verdict is Verdict.PASSED
    assert result.details["files"] == [HOST_FILE, HOST_FILE.replace("GridSampler.mm", "GridSamplerLanes.mm")]
    assert tuple(result.limits) == HOST_CHECK.limits


def test_the_symbols_of_the_host_file_were_looked_up(stack: Any) -> None:
    assert stack.judge(HOST_CHECK).details["not_checked"] == []


@pytest.mark.parametrize("fault", FAULTS)
def test_a_seeded_fault_fails_and_is_named(stack: Any, fault: str) -> None:
    seeded = FAULTS[fault]
    result = stack.judge(HOST_CHECK, stack.replaced(seeded.old, seeded.new))
    assert result.verdict is Verdict.FAILED
    found = [finding for finding in result.findings if finding.fails and finding.rule == seeded.rule]
    assert any(seeded.words in finding.message for finding in found), [str(finding) for finding in result.findings]
    assert {finding.path for finding in found} == {HOST_FILE}


def test_a_params_struct_with_another_order_of_fields_in_the_kernel_is_named(stack_below: Any) -> None:
    text = stack_below.text(SHARED_HEADER)
    fields = "  idx_type_t first_position;\n  bool align_corners;\n"
    other = "#ifdef __METAL__\n  bool align_corners;\n  idx_type_t first_position;\n#else\n" + fields + "#endif\n"
    start = text.index("struct GridSamplerGradientParams")
    assert fields in text[start:]
    head = stack_below.changed({SHARED_HEADER: text[:start] + text[start:].replace(fields, other, 1)})
    result = stack_below.judge(HOST_CHECK, head)
    assert result.verdict is Verdict.FAILED
    messages = [finding.message for finding in result.findings if finding.rule == "struct-layout"]
    assert len(messages) == 4  # two numbers of dimensions, two index widths
    assert all("GridSamplerGradientParams" in message and "first_position" in message for message in messages)


FORWARD_2D = "  mps::grid_sampler_2d_mps_impl(output, input, grid, interpolation_mode, padding_mode, align_corners);\n"


def test_a_symbol_that_only_the_bases_own_function_wants_is_a_note(stack: Any) -> None:
    """One more use of it, in what the stack brings, is a failure."""
    used = "  at::mps::wait_for_all();\n"
    inside = "namespace at::native {\n\n#ifndef"
    declared = f"namespace at::mps {{\nvoid wait_for_all();\n}}\n\n{inside}"

    def with_use(text: str) -> str:
        assert text.count(FORWARD_2D) == text.count(inside) == 1
        return text.replace(inside, declared).replace(FORWARD_2D, used + FORWARD_2D)

    below = StackLab(stack.path, stack.repository, stack.base, stack.base)
    base = below.changed({HOST_FILE: with_use(below.text(HOST_FILE))})
    text = with_use(stack.text(HOST_FILE))
    lab = StackLab(stack.path, stack.repository, base, stack.changed({HOST_FILE: text}))
    result = lab.judge(HOST_CHECK)
    assert result.verdict is Verdict.PASSED
    (note,) = [finding for finding in result.findings if finding.rule == "missing-symbol"]
    assert "at::mps::wait_for_all" in note.message
    assert note.message.endswith("(as before the stack)")
    again = "  check_grid_sampler_gradient(op, grad_output, input, grid);\n"
    assert again in text
    result = lab.judge(HOST_CHECK, lab.changed({HOST_FILE: text.replace(again, again + used)}))
    assert result.verdict is Verdict.FAILED
    assert [finding.rule for finding in result.findings if finding.fails] == ["missing-symbol"]


def test_an_error_of_the_base_is_a_note_and_another_one_beside_it_fails(stack: Any) -> None:
    wrong = FORWARD_2D.replace("align_corners)", "align_corners, 7)")
    below = StackLab(stack.path, stack.repository, stack.base, stack.base)
    lab = StackLab(stack.path, stack.repository, below.replaced(FORWARD_2D, wrong), stack.replaced(FORWARD_2D, wrong))
    result = lab.judge(HOST_CHECK)
    assert result.verdict is Verdict.PASSED, "the stack's other file compiles"
    assert f"{HOST_FILE} does not compile, as before the stack" in result.details["not_checked"]
    assert [finding.fails for finding in result.findings if finding.rule == "syntax"] == [False]
    worse = lab.replaced(wrong, f"{wrong}  no_such_function();\n")
    result = lab.judge(HOST_CHECK, worse)
    assert result.verdict is Verdict.FAILED
    said = [(finding.fails, "no_such_function" in finding.message) for finding in result.findings]
    assert sorted(said) == [(False, False), (True, True)]


def test_a_stack_without_host_files_is_not_run(stack: Any) -> None:
    result = stack.judge(HOST_CHECK, stack.base)
    assert result.verdict is Verdict.NOT_RUN
    assert "touches no operations" in result.reason


def test_without_a_macos_release_the_rest_is_still_checked_and_that_is_said(
    stack: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_wheel(release: str) -> Path:
        raise TreeError(f"no macOS wheel of torch {release} is at hand")

    monkeypatch.setattr("patchstack.reference.reference_wheel", no_wheel)
    result = stack.judge(HOST_CHECK)
    assert result.verdict is Verdict.PASSED
    assert any("no macOS wheel of torch 2.11 is at hand" in text for text in result.details["not_checked"])


@pytest.mark.parametrize("release", ["2.11", "2.13"])
def test_symbols_are_looked_up_in_the_release_that_the_tree_is_of(release: str) -> None:
    tree = require_reference(release)
    with Repository.open(tree.path) as repository:
        assert release_of(Tree.at(repository, "main")) == release
