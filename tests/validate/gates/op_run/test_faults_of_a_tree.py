"""A fault of PyTorch 2.6 itself, digamma ignores strides (upstream issue 175187): a note on a stack that does not touch
the function, and a failure on one that does.

The kernels of digamma are a text in the host file, compiled while a confined process runs.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stack_lab import StackLab, applied
from stackproof.gates.op_run.spec import SPEC as OP_RUN
from stackproof.model import GateResult, Verdict

GAMMA = "aten/src/ATen/native/mps/operations/Gamma.mm"
pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.slow,
    pytest.mark.needs_reference,
    pytest.mark.usefixtures("compiler"),
]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StackLab]:
    """The 2.6 tree."""
    with applied("2.6", tmp_path_factory.mktemp("gamma") / "tree", series="metal_ops") as lab:
        yield lab


def judged(tree: StackLab, function: str) -> GateResult:
    """What op-run says of a stack that rewrites a statement of this function."""
    old = f"MPS does not support {function} op with scalar type"
    return tree.judge(OP_RUN, tree.replaced(old, old.replace("does not", "cannot"), GAMMA), ops=[], kinds=["values"])


def about_digamma(result: GateResult) -> set[bool]:
    """Whether what was found of digamma's layouts fails."""
    found = [one for one in result.findings if "digamma" in one.message and "non-contiguous" in one.message]
    assert found, [str(one) for one in result.findings]
    return {one.fails for one in found}


def test_a_fault_of_the_tree_fails_on_a_stack_that_touches_its_function(tree: StackLab) -> None:
    result = judged(tree, "digamma_out")
    assert result.verdict is Verdict.FAILED
    assert True in about_digamma(result)


def test_it_is_a_note_on_a_stack_that_touches_another_function_of_the_file(tree: StackLab) -> None:
    assert about_digamma(judged(tree, "lgamma_out")) == {False}
