"""The gate on the host: counts both commits of small repositories, and finds what makes kernels dearer."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from bench_trees import OP, context_of, texts
from gate_contexts import run_gate
from kernel_trees import commit, commit_kernels
from patchstack.tree.git import Repository
from stackproof.gates.bench.count_gate import count_on_host
from stackproof.gates.bench.spec import SPEC as BENCH
from stackproof.model import GateResult, Verdict
from stackproof.ops.grid_sampler.bench.rows import Row, quick_rows

ROW = quick_rows()[0]
ATOMIC = "window.weight(pixel) * grad);\n"
LOAD = "input[input_channel + window.offset(pixel, params.input_strides)]);"
POSITION = "params.first_position + static_cast<idx_t>(tid);"


def counted(root: Path, *trees: dict[str, str], rows: list[Row]) -> GateResult:
    """The gate's result on a repository with a commit for each tree, from the first to the last."""
    commits = [commit_kernels(root, tree) for tree in trees]
    with Repository.open(root) as repository:
        return count_on_host(context_of(repository, commits[0], commits[-1]), rows)


def test_the_overlays_kernels_pass_and_their_table_and_limits_are_said(tmp_path: Path) -> None:
    result = counted(tmp_path, texts(), rows=[ROW])
    assert [finding.message for finding in result.findings] == []
    assert result.verdict is Verdict.PASSED
    assert result.cases == 1
    assert result.details["device"] == "host"
    assert "kernels: a thread per position" in result.details["text"]
    assert "PR 179756, bilinear, contiguous, random" in result.details["text"]
    assert "| bilinear | float32 | (1, 32, 64, 64) | contiguous | (1, 32, 32, 32) |" in result.details["markdown"]
    assert "nothing ran on a GPU" in " ".join(result.details["markdown"].split())
    assert result.details["plot"].startswith("<svg")
    assert [row["launch"] for row in result.details["launches"]] == ["aten::zero_", f"{OP}_bilinear_zeros_float"]
    assert tuple(result.limits) == BENCH.limits


@pytest.mark.parametrize(
    ("old", "new", "grown"),
    [
        (ATOMIC, f"0.0f * grad);\n AtomicType<float>::atomic_add(grad_input, grad_input_channel, {ATOMIC}", "atomics"),
        (LOAD, f"{LOAD[:-2]} + 0.0f * input[input_channel]);", "loads"),
        (POSITION, "(static_cast<idx_t>(tid) % 32) * 32 + static_cast<idx_t>(tid) / 32;", "sectors"),
    ],
    ids=["an atomic more", "a load more", "neighbours that lie apart"],
)
def test_a_seeded_fault_is_found_beside_the_base_commit_and_beside_the_record(
    old: str, new: str, grown: str, tmp_path: Path
) -> None:
    result = counted(tmp_path, texts(), texts(old, new), rows=[ROW])
    found = [finding for finding in result.findings if f"more {grown} " in finding.message]
    assert result.verdict is Verdict.FAILED
    assert result.failed == 1
    assert [finding.rule for finding in found] == ["more-traffic"] * 2
    assert [finding.message.rpartition(" than ")[2] for finding in found] == [
        "the base commit's kernels", "is recorded for these kernels"
    ]  # fmt: skip
    assert " > " in result.details["text"]
    assert "| before, MB | after, MB |" in result.details["markdown"]
    assert result.details["rows"][0]["head_sectors_per_element"] > result.details["rows"][0]["base_sectors_per_element"]


def test_a_row_that_cannot_be_run_is_a_failure_and_the_others_are_counted(tmp_path: Path) -> None:
    half = next(row for row in quick_rows() if row.dtype is torch.float16)
    result = counted(tmp_path, texts(), rows=[ROW, half])
    assert result.verdict is Verdict.FAILED
    assert (result.cases, result.failed) == (2, 1)
    assert [finding.rule for finding in result.findings] == ["not-counted"]
    assert half.label in result.findings[0].message


def test_kernels_that_do_not_compile_are_a_failure(tmp_path: Path) -> None:
    result = counted(tmp_path, texts(LOAD, f"undeclared + {LOAD}"), rows=[ROW])
    assert result.verdict is Verdict.FAILED
    assert [finding.rule for finding in result.findings] == ["compile"]
    assert "undeclared" in result.findings[0].message


def test_a_tree_without_the_kernels_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "README").write_text("nothing else")
    head = commit(tmp_path, "tree")
    with Repository.open(tmp_path) as repository:
        result = run_gate(BENCH, context_of(repository, head, head), ops=[OP], device="host")
    assert result.verdict is Verdict.NOT_RUN
    assert "the tree does not have this file" in result.reason


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"device": "cuda"}, "needs an NVIDIA GPU"),
        ({"device": "mps"}, "validate-stack bench --print-bench-script"),
        ({"device": "host", "ops": ["some_op"]}, "no rows are known for some_op"),
    ],
    ids=["cuda", "mps", "no rows"],
)
def test_what_cannot_be_measured_here_is_not_run_and_says_why(
    options: dict[str, object], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    (tmp_path / "README").write_text("nothing else")
    head = commit(tmp_path, "tree")
    with Repository.open(tmp_path) as repository:
        result = run_gate(BENCH, context_of(repository, head, head), **{"ops": [OP], **options})
    assert result.verdict is Verdict.NOT_RUN
    assert reason in result.reason


def test_times_of_the_cpu_are_not_taken_for_those_of_an_apple_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    from stackproof.gates.bench.devices import available, why_not

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setenv("PYTORCH_ENABLE_MPS_FALLBACK", "1")
    assert available() == "mps"
    assert "unset PYTORCH_ENABLE_MPS_FALLBACK" in why_not("mps")
