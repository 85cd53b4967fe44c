"""A contributor's op without an OpInfo of its own: what is seeded into it is found with nothing written about it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stack_lab import StackLab, applied
from stackproof.gates.op_run.spec import SPEC as OP_RUN
from stackproof.model import Verdict

KERNELS = "aten/src/ATen/native/mps/kernels/CdistBackward.metal"
HOST = "aten/src/ATen/native/mps/operations/CdistBackward.mm"
pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.slow,
    pytest.mark.needs_reference,
    pytest.mark.usefixtures("compiler"),
]


@pytest.fixture(scope="module")
def cdist(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StackLab]:
    """The op on the 2.11 tree."""
    with applied("2.11", tmp_path_factory.mktemp("cdist") / "tree", "cdist_backward", series="cdist") as lab:
        yield lab


def test_an_op_that_only_a_backward_pass_calls_is_proved_from_the_samples_of_its_forward(cdist: StackLab) -> None:
    result = cdist.judge(OP_RUN, ops=[])
    assert [finding.message for finding in result.findings if finding.fails] == []
    assert result.verdict is Verdict.PASSED, result.reason
    kernels = result.details["kernels"]
    assert sorted(kernels["launched"]) == ["cdist_backward_bfloat", "cdist_backward_float", "cdist_backward_half"]
    ran = {(row["kind"], row["dtype"]) for row in result.details["scenarios"] if row["launches"]}
    assert ("under the detectors", "float16") in ran
    assert ("values", "bfloat16") in ran
    assert ("OpInfo", "float32") in ran


@pytest.mark.parametrize(
    ("path", "old", "new", "rule", "words"),
    [
        (KERNELS, "j < params.rows2", "j <= params.rows2", "out-of-bounds", "outside its elements"),
        (KERNELS, "if (lane == 0)", "if (lane <= 1)", "race", "no barrier between them"),
        (
            HOST,
            '"cdist_backward_" + scalarToMetalTypeString(first)',
            '"cdist_backward_float"',
            "argument-type",
            "float16",
        ),
        (KERNELS, "const ulong row = ulong(group.z)", "const uint row = uint(group.z)", "wraps", "unsigned overflow"),
        (KERNELS, "const ulong pair = row *", "const uint pair = uint(row) *", "wraps", "unsigned overflow"),
        (HOST, "zeros_like(x1)", "zeros_like(first)", "wrong-value", "where the CPU has"),
    ],
    ids=[
        "read-beyond-the-end",
        "two-lanes-write-one-element",
        "always-the-float-kernel",
        "uint-offset",
        "uint-offset-of-a-pair",
        "another-shape",
    ],
)
def test_a_seeded_fault_fails_with_its_rule(
    cdist: StackLab, path: str, old: str, new: str, rule: str, words: str
) -> None:
    result = cdist.judge(OP_RUN, cdist.replaced(old, new, path), ops=[])
    assert result.verdict is Verdict.FAILED
    found = [finding for finding in result.findings if finding.fails and finding.rule == rule]
    assert any(words in finding.message for finding in found), [str(one) for one in result.findings]


def test_a_kernel_that_no_sample_launches_fails(cdist: StackLab) -> None:
    always_float = cdist.replaced('"cdist_backward_" + scalarToMetalTypeString(first)', '"cdist_backward_float"', HOST)
    result = cdist.judge(OP_RUN, always_float, ops=[])
    missing = [finding for finding in result.findings if finding.rule == "never-launched"]
    assert [finding.fails for finding in missing] == [True]
    assert missing[0].details["kernels"] == ["cdist_backward_bfloat", "cdist_backward_half"]
