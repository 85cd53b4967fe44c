"""The gate on small repositories: passes the overlay's kernels, and says what is wrong with others."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gate_contexts import run_gate
from kernel_trees import commit, commit_kernels, overlay_texts, replaced
from overlay_kernels import KERNELS, OPS, OVERLAY, STANDIN, TORCH_HEADERS
from patchstack.cache import cache_dir
from patchstack.tree.git import Repository
from stackproof.gates.metal_run.spec import SPEC as METAL_RUN
from stackproof.model import GateContext, GateResult, Verdict

OP = "grid_sampler_2d_backward"
SOURCE = f"{KERNELS}/GridSampler.metal"
WINDOW = f"{KERNELS}/GridSamplerWindow.h"


def small_tree(root: Path, changes: dict[str, tuple[str, str]]) -> None:
    """A commit with the overlay's kernels, texts replaced by file name, and the headers that they include."""
    texts = overlay_texts()
    for old, new in changes.values():
        texts = replaced(texts, old, new)
    commit_kernels(root, texts)


def judged(root: Path, changes: dict[str, tuple[str, str]] | None = None, **options: object) -> GateResult:
    """The gate's result for the repository at ``root``, which is made unless it is there."""
    if not root.exists():
        root.mkdir()
        commit(root, "nothing")
        small_tree(root, changes or {})
    with Repository.open(root) as repository:
        base, head = (repository.commit(name).hash for name in ("HEAD~1", "HEAD"))
        settings = {"ops": [OP], "run_modes": ["plain"], "small": True, **options}
        return run_gate(METAL_RUN, GateContext(repository, base, head, cache_dir()), **settings)


def test_the_overlays_kernels_pass_and_the_limits_are_said(tmp_path: Path) -> None:
    result = judged(tmp_path / "tree", match="bicubic, reflection, align")
    assert [finding.message for finding in result.findings] == []
    assert result.verdict is Verdict.PASSED
    assert result.cases == 3 * 22
    assert result.worst_error is not None
    assert result.worst_error < 4
    assert {row["dtype"] for row in result.details["table"]} == {"float32", "float16", "bfloat16"}
    assert "bicubic, reflection, align_corners" in result.details["text"]
    assert tuple(result.limits) == METAL_RUN.limits


def test_a_wrong_kernel_fails_with_the_mode_and_the_number_of_cases(tmp_path: Path) -> None:
    result = judged(
        tmp_path / "tree",
        {"GridSampler.metal": ("rint(pixel.position)", "floor(pixel.position + 0.5f)")},
        match="zeros",
    )
    assert result.verdict is Verdict.FAILED
    assert 0 < result.failed < result.cases
    messages = [finding.message for finding in result.findings]
    assert {finding.rule for finding in result.findings} == {"wrong-value"}
    assert result.cases > 200
    assert all("nearest" in message and "grad_input is off" in message for message in messages)
    assert any("more like it" in message for message in messages)


def test_a_kernel_that_does_not_compile_fails_at_its_line(tmp_path: Path) -> None:
    fault = "::metal::rint(pixel.position)"
    change = (fault, "no_such_name(pixel.position)")
    result = judged(tmp_path / "tree", {"GridSampler.metal": change})
    line = (OVERLAY / WINDOW).read_text()[: (OVERLAY / WINDOW).read_text().index(fault)].count("\n") + 1
    assert result.verdict is Verdict.FAILED
    assert (WINDOW, line, "compile") in {(finding.path, finding.line, finding.rule) for finding in result.findings}


def test_a_kernel_that_takes_the_process_down_is_a_finding(tmp_path: Path) -> None:
    fault = ("grad_grid[D * position", "*(device int*)16 = 1;\n    grad_grid[D * position")
    result = judged(tmp_path / "tree", {"GridSampler.metal": fault}, run_modes=["plain"])
    assert result.verdict is Verdict.FAILED
    messages = {finding.rule: finding.message for finding in result.findings}
    assert "killed by SIGSEGV" in messages["crash"]
    assert "given up after 3 crashes" in messages["not-run"]


def test_a_missing_kernel_source_fails_and_is_named(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    commit(root, "nothing")
    (root / "README").write_text("no kernels")
    commit(root, "without kernels")
    result = judged(root)
    assert result.verdict is Verdict.FAILED
    assert SOURCE in result.findings[0].message


@pytest.mark.slow
def test_a_kernel_that_no_case_launches_fails_and_is_named(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    (root / "README").write_text("empty")
    commit(root, "before")
    texts = overlay_texts()
    texts["GridSampler.metal"] += "kernel void left_alone(device int* out [[buffer(0)]]) { out[0] = 1; }\n"
    commit_kernels(root, texts)
    with Repository.open(root) as repository:
        base, head = (repository.commit(name).hash for name in ("HEAD~1", "HEAD"))
        settings = {"ops": ["grid_sampler_3d"], "run_modes": ["plain"]}
        result = run_gate(METAL_RUN, GateContext(repository, base, head, cache_dir()), **settings)
    assert result.verdict is Verdict.FAILED
    (finding,) = [one for one in result.findings if one.fails]
    assert (finding.rule, finding.path) == ("never-launched", SOURCE)
    assert "left_alone" in finding.details["kernels"]
    # The op that was asked for launches all of its own.
    assert all(kernel == "left_alone" or "_backward_" in kernel for kernel in finding.details["kernels"])
    assert sum(kernel.startswith("grid_sampler_3d_") for kernel in result.details["kernels"]["launched"]) == 36


@pytest.mark.parametrize("ops", [["no_such_op"], ["no_such_op", "another"]])
def test_ops_without_a_proof_are_not_run_and_not_passed(tmp_path: Path, ops: list[str]) -> None:
    result = judged(tmp_path / "tree", ops=ops)
    assert result.verdict is Verdict.NOT_RUN
    assert "no_such_op" in result.reason


def test_a_match_that_selects_nothing_is_not_a_pass(tmp_path: Path) -> None:
    result = judged(tmp_path / "tree", match="no such batch")
    assert result.verdict is Verdict.NOT_RUN
    assert "no batch" in result.reason


def range_of_commits(root: Path, changes: dict[str, tuple[str, str]] | None = None) -> None:
    """A repository with the kernels of before the stack in one commit and the overlay's in the next one."""
    shutil.copytree(TORCH_HEADERS / "c10/metal", root / "c10/metal")
    for source in (TORCH_HEADERS / "ATen/native/mps/kernels/GridSampler.h", STANDIN / KERNELS / "GridSampler.metal"):
        (root / KERNELS).mkdir(parents=True, exist_ok=True)
        shutil.copy(source, root / KERNELS)
    commit(root, "before")
    small_tree(root, changes or {})


def compared(root: Path, **options: object) -> GateResult:
    """The gate's result for the forward's comparison with the kernels of before."""
    with Repository.open(root) as repository:
        base, head = (repository.commit(name).hash for name in ("HEAD~1", "HEAD"))
        settings = {"ops": ["grid_sampler_3d"], "run_modes": ["plain"], "match": "as before", **options}
        return run_gate(METAL_RUN, GateContext(repository, base, head, cache_dir()), **settings)


def test_the_forward_is_compared_with_the_kernels_of_the_commit_below(tmp_path: Path) -> None:
    range_of_commits(tmp_path / "tree")
    result = compared(tmp_path / "tree")
    assert [finding.message for finding in result.findings] == []
    assert result.verdict is Verdict.PASSED
    assert result.cases == 36 * 6 * 3


TWO_SAMPLES = "as before the stack, two samples; bilinear, zeros, align_corners; float32"


def test_a_forward_that_rounds_in_another_way_passes(tmp_path: Path) -> None:
    other = ("sum += window.weight(pixel) * value;", "sum = value * window.weight(pixel) * 1.0000001f + sum;")
    range_of_commits(tmp_path / "tree", {"GridSampler.metal": other})
    result = compared(tmp_path / "tree", match=TWO_SAMPLES)
    assert [finding.message for finding in result.findings] == []
    assert (result.verdict, result.cases) == (Verdict.PASSED, 6)


def test_a_forward_that_is_further_off_than_the_one_below_fails_and_both_errors_are_shown(tmp_path: Path) -> None:
    fault = ("sum += window.weight(pixel) * value;", "sum += window.weight(pixel) * value * 1.0001f;")
    range_of_commits(tmp_path / "tree", {"GridSampler.metal": fault})
    result = compared(tmp_path / "tree", match=TWO_SAMPLES)
    assert (result.verdict, result.failed) == (Verdict.FAILED, 3)  # far away all is padding
    assert "where the kernels below the stack are off by" in result.findings[0].message


def test_a_base_without_the_kernels_is_said_and_does_not_fail(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    (root / "README").write_text("empty")
    commit(root, "before")
    small_tree(root, {})
    result = compared(root, match="nearest, border, align_corners; float32")
    assert result.verdict is Verdict.PASSED
    result = compared(root, match="bilinear, border, align_corners; float32")
    assert result.verdict is Verdict.PASSED
    (note,) = result.findings
    assert (note.rule, note.fails) == ("not-compared", False)
    assert "does not have these kernels" in note.message


def test_a_source_is_compiled_once_for_all_ops_whose_kernels_it_holds(tmp_path: Path) -> None:
    fault = ("::metal::rint(pixel.position)", "no_such_name(pixel.position)")
    result = judged(tmp_path / "tree", {"GridSampler.metal": fault}, ops=list(OPS))
    assert result.verdict is Verdict.FAILED
    assert [finding.rule for finding in result.findings].count("compile") == 1
