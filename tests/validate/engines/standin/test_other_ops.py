"""A small series of another op: proved from its OpInfo on the stand-in device, on the real 2.6 tree."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stack_lab import StackLab, applied
from stackproof.gates.c_shim.spec import SPEC as C_SHIM
from stackproof.gates.fc_window.spec import SPEC as FC_WINDOW
from stackproof.gates.host_check.spec import SPEC as HOST_CHECK
from stackproof.gates.metal_check.spec import SPEC as METAL_CHECK
from stackproof.gates.op_run.spec import SPEC as OP_RUN
from stackproof.gates.spec import Spec
from stackproof.gates.test_mps.spec import SPEC as TEST_MPS
from stackproof.model import Verdict

HOST_FILE = "aten/src/ATen/native/mps/operations/RenormKernel.mm"
METAL_FILE = "aten/src/ATen/native/mps/kernels/RenormKernel.metal"
OPS = ["renorm"]


@pytest.fixture(scope="module")
def renorm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StackLab]:
    """The series metal_ops on the 2.6 tree."""
    with applied("2.6", tmp_path_factory.mktemp("renorm") / "tree", series="metal_ops") as lab:
        yield lab


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.needs_reference
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("gate", [METAL_CHECK, HOST_CHECK, OP_RUN, FC_WINDOW, C_SHIM])
def test_the_gates_pass_on_a_small_series_of_an_op_of_2_6(renorm: StackLab, gate: Spec) -> None:
    result = renorm.judge(gate, ops=OPS)
    assert [finding.message for finding in result.findings if finding.fails] == []
    assert result.verdict is Verdict.PASSED, result.reason
    if gate.name == "op-run":
        ran = {(row["kind"], row["dtype"]) for row in result.details["scenarios"] if row["launches"]}
        floats = ("float32", "float16", "bfloat16")
        assert {(kind, dtype) for kind in ("values", "out= and in place", "OpInfo") for dtype in floats} <= ran
        assert ("under the detectors", "float16") in ran


@pytest.mark.slow
@pytest.mark.needs_reference
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    ("path", "old", "new", "rule", "words"),
    [
        (METAL_FILE, "largest / (norm + 1e-7f)", "largest / (norm + 1e-2f)", "wrong-value", "epsilons off"),
        (METAL_FILE, "  factor[at] =", "  factor[at + 1] =", "out-of-bounds", "renorm_"),
        (HOST_FILE, "norms, factors, maxnorm", "factors, norms, maxnorm", "uninitialised", "renorm_"),
        (HOST_FILE, "encoder, pipeline, norms.numel()", "encoder, pipeline, 1", "wrong-value", "epsilons off"),
    ],
)
def test_a_fault_of_the_small_series_fails(
    renorm: StackLab, path: str, old: str, new: str, rule: str, words: str
) -> None:
    result = renorm.judge(OP_RUN, renorm.replaced(old, new, path), ops=OPS)
    assert result.verdict is Verdict.FAILED
    assert any(finding.rule == rule and words in finding.message for finding in result.findings if finding.fails)


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.needs_reference
@pytest.mark.usefixtures("compiler")
def test_selected_tests_run_from_the_real_test_file_of_2_6(renorm: StackLab) -> None:
    result = renorm.judge(TEST_MPS, ops=OPS, tests=["test_output_grad_match_renorm", "test_error_inputs_renorm"])
    assert result.verdict is Verdict.PASSED, [str(one) for one in result.findings]
    assert (result.cases, result.details["passed"]) == (3, 3)
    notes = [finding.message for finding in result.findings if finding.rule == "test-loading"]
    assert any("is imported here: tests that use it are skipped" in text for text in notes)


@pytest.mark.slow
@pytest.mark.needs_reference
@pytest.mark.usefixtures("compiler")
def test_a_test_file_that_the_stack_broke_fails_and_one_that_never_loaded_is_not_run(renorm: StackLab) -> None:
    text = renorm.text("test/test_mps.py")
    broken = renorm.changed({"test/test_mps.py": f"assert False, 'not here'\n{text}"})
    result = renorm.judge(TEST_MPS, broken, ops=OPS)
    assert result.verdict is Verdict.FAILED
    assert "test/test_mps.py:1: AssertionError: not here" in result.findings[0].message

    lab = StackLab(renorm.path, renorm.repository, broken, broken)
    result = lab.judge(TEST_MPS, ops=OPS, tests=["renorm"])
    assert result.verdict is Verdict.NOT_RUN
    assert "test/test_mps.py:1: AssertionError: not here" in result.reason
