"""An op of every dtype, one byte wide included: what op-run says of ``take``, a small op that a test series brings."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stack_lab import StackLab, applied
from stackproof.gates.op_run.spec import SPEC as OP_RUN
from stackproof.model import Verdict

HOST_FILE = "aten/src/ATen/native/mps/operations/Take.mm"


@pytest.fixture(scope="module")
def take(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StackLab]:
    """The series metal_ops on the 2.11 tree, which gets ``take`` of it."""
    with applied("2.11", tmp_path_factory.mktemp("take") / "tree", series="metal_ops") as lab:
        yield lab


@pytest.mark.needs_reference
@pytest.mark.usefixtures("compiler")
def test_neighbouring_bytes_are_no_race_and_overlaps_reach_the_device(take: StackLab) -> None:
    result = take.judge(OP_RUN, ops=["take"], kinds=["under the detectors", "error inputs"])
    assert [finding.message for finding in result.findings if finding.fails] == []
    assert result.verdict is Verdict.PASSED
    ran = {(row["kind"], row["dtype"]) for row in result.details["scenarios"] if row["launches"]}
    assert ("under the detectors", "bool") in ran


@pytest.mark.needs_reference
@pytest.mark.usefixtures("compiler")
def test_an_overlap_that_the_host_function_does_not_refuse_fails(take: StackLab) -> None:
    head = take.replaced("  at::assert_no_overlap(out, self);\n", "", HOST_FILE)
    result = take.judge(OP_RUN, head, ops=["take"], kinds=["error inputs"])
    assert [finding.rule for finding in result.findings if finding.fails] == ["behaviour"]
