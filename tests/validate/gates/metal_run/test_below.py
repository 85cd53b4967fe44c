"""A fault that the base has too, in what the stack does not touch, is a note; everything else still fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from gate_contexts import run_gate
from kernel_trees import commit_kernels, overlay_texts, replaced
from patchstack.cache import cache_dir
from patchstack.tree.git import Repository
from patchstack.tree.native_functions import FUNCTIONS_PATH
from stackproof.engines.standin.stack import OPERATIONS
from stackproof.gates.metal_run.spec import SPEC as METAL_RUN
from stackproof.model import GateContext, GateResult, Verdict

FORWARD, BACKWARD = "grid_sampler_3d", "grid_sampler_2d_backward"
ADDED = "sum += window.weight(pixel) * value;"
WRONG = (ADDED, ADDED.replace("value;", "value * 1.0001f;"))
CRASH = (ADDED, f"*(device int*)16 = 1; {ADDED}")
# Another kernel of the same file, and the forward in other words.
MORE = "\nkernel void another(device float* out [[buffer(0)]]) { out[0] = 0; }\n"
TOUCHED = ("sum += window.weight(pixel) * ", "sum = sum + window.weight(pixel) * ")
HOST = f"""\
#include <ATen/native/mps/GridSampler_metallib.h>
namespace at::native {{
Tensor {FORWARD}_mps(const Tensor& input) {{ return launch(fmt::format("{FORWARD}_{{}}_{{}}", mode, input), input); }}
Tensor {BACKWARD}_mps(const Tensor& input) {{ return launch(fmt::format("{BACKWARD}_{{}}", mode), input); }}
}} // namespace at::native
"""
FUNCTIONS = "".join(f"- func: {op}(Tensor a) -> Tensor\n  dispatch:\n    MPS: {op}_mps\n" for op in (FORWARD, BACKWARD))
Change = tuple[str, str]


def commit_tree(root: Path, changes: tuple[Change, ...], more: str = "", host: str = HOST) -> None:
    texts = overlay_texts()
    for old, new in changes:
        texts = replaced(texts, old, new)
    texts["GridSampler.metal"] += more
    for path, text in {f"{OPERATIONS}/GridSampler.mm": host, FUNCTIONS_PATH: FUNCTIONS}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    commit_kernels(root, texts)


def judged(
    root: Path, base: tuple[Change, ...], head: tuple[Change, ...], *, host: str = HOST, **options: object
) -> GateResult:
    commit_tree(root, base)
    commit_tree(root, head, MORE, host)
    with Repository.open(root) as repository:
        commits = [repository.commit(name).hash for name in ("HEAD~1", "HEAD")]
        settings = {"ops": [FORWARD], "run_modes": ["plain"], "match": "two samples", **options}
        return run_gate(METAL_RUN, GateContext(repository, commits[0], commits[1], cache_dir()), **settings)


ONE_MODE = "random values; bilinear, zeros, align_corners; float32; "
COMPARED = "as before the stack, two samples; bilinear, zeros, align_corners; float32"


def test_a_wrong_value_of_the_base_is_a_note_and_no_case(tmp_path: Path) -> None:
    result = judged(tmp_path / "tree", (WRONG,), (WRONG,), ops=[FORWARD, BACKWARD], match=f"{ONE_MODE}two samples")
    assert [finding.message for finding in result.findings if finding.fails] == []
    assert (result.verdict, result.failed) == (Verdict.PASSED, 0)
    (note,) = [finding for finding in result.findings if finding.rule == "wrong-value"]
    assert note.message.startswith(f"{FORWARD}, bilinear, zeros, align_corners, float32: output is off by")
    assert "(as before the stack)" in note.message
    assert {row["op"] for row in result.details["table"]} == {BACKWARD}


def test_nothing_else_to_judge_is_not_run_with_the_finding(tmp_path: Path) -> None:
    result = judged(tmp_path / "tree", (WRONG,), (WRONG,), match=f"{ONE_MODE}two samples")
    assert result.verdict is Verdict.NOT_RUN
    assert "as before the stack" in result.reason


HOST_EDITED = HOST.replace("mode, input)", "mode, input.clone())")


@pytest.mark.parametrize(
    ("base", "head", "host"),
    [((), (WRONG,), HOST), ((WRONG,), (WRONG, TOUCHED), HOST), ((WRONG,), (WRONG,), HOST_EDITED)],
    ids=["the stack's own fault", "a touched kernel", "a touched host function"],
)
def test_what_the_stack_touches_fails(
    tmp_path: Path, base: tuple[Change, ...], head: tuple[Change, ...], host: str
) -> None:
    result = judged(tmp_path / "tree", base, head, host=host, match=f"{ONE_MODE}two samples")
    assert (result.verdict, result.failed) == (Verdict.FAILED, result.cases)
    assert "as before the stack" not in result.findings[0].message


@pytest.mark.exhaustive
def test_crashes_of_the_base_do_not_make_the_gate_give_up(tmp_path: Path) -> None:
    ops = [FORWARD, BACKWARD]
    result = judged(tmp_path / "tree", (CRASH,), (CRASH,), ops=ops, match="bilinear, zeros, align_corners; bfloat16; o")
    assert result.verdict is Verdict.PASSED
    crashes = [finding for finding in result.findings if finding.rule == "crash"]
    assert len(crashes) > 3
    assert not any(finding.fails for finding in crashes)
    assert "killed by SIGSEGV (as before the stack)" in crashes[0].message
    assert "not-run" not in {finding.rule for finding in result.findings}


def test_a_crash_of_the_kernels_below_costs_the_comparison_only(tmp_path: Path) -> None:
    result = judged(tmp_path / "tree", (CRASH,), (), match="two samples; bilinear, zeros, align_corners; float32")
    assert result.verdict is Verdict.NOT_RUN
    (note,) = result.findings
    assert (note.rule, note.fails) == ("not-compared", False)
    assert "the kernels below the stack: killed by SIGSEGV: not compared" in note.message
    result = judged(tmp_path / "both", (CRASH,), (), match="zeros, align_corners; float32", small=True)
    assert (result.verdict, result.failed) == (Verdict.PASSED, 0)


def test_a_crash_of_the_stacks_own_kernel_in_a_comparison_fails(tmp_path: Path) -> None:
    result = judged(tmp_path / "tree", (), (CRASH,), match=COMPARED)
    assert result.verdict is Verdict.FAILED
    assert [finding.rule for finding in result.findings] == ["crash"]


def test_a_wrong_kernel_below_a_replaced_one_is_a_note(tmp_path: Path) -> None:
    result = judged(tmp_path / "tree", (WRONG,), (), match=COMPARED)
    assert (result.verdict, result.cases, result.failed) == (Verdict.PASSED, 6, 0)
    (note,) = result.findings
    assert (note.rule, note.fails) == ("worse-before", False)
    assert "the kernels below the stack are off by up to" in note.message


def test_a_source_that_does_not_compile_below_the_stack_either_is_not_run(tmp_path: Path) -> None:
    fault = ("::metal::rint(pixel.position)", "no_such_name(pixel.position)")
    result = judged(tmp_path / "tree", (fault,), (fault,), match=f"{ONE_MODE}two samples")
    assert result.verdict is Verdict.NOT_RUN
    assert {(finding.rule, finding.fails) for finding in result.findings} == {("compile", False)}
    worse = ("sum += window.weight(pixel)", "sum += no_such_window.weight(pixel)")
    result = judged(tmp_path / "worse", (fault,), (fault, worse), match=f"{ONE_MODE}two samples")
    assert result.verdict is Verdict.FAILED
    assert [finding.fails for finding in result.findings].count(True) >= 1
