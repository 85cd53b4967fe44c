"""Real headers: every declaration of three releases classified, and the stack that the project is about."""

from __future__ import annotations

import functools

import pytest

from compat_trees import START, TreeRepository, lab_over, releases
from gate_contexts import run_gate
from patchstack.tree.c_shim import header_path
from patchstack.tree.git import GitCommitHash, Tree
from patchstack.tree.torchgen_run import generate_c_shims
from references import require_reference
from stackproof.gates.c_shim.spec import SPEC as C_SHIM
from stackproof.gates.common.functions import FUNCTIONS_PATH
from stackproof.gates.fc_window.spec import SPEC as FC_WINDOW
from stackproof.model import GateContext, Verdict

pytestmark = pytest.mark.needs_reference

# before, after, added, removed, changed, of these in names only, reordered, regated
ALL = {
    ("2.6", "2.11"): {
        "aten": (None, 8, 8, 0, 0, 0, 0, 0),
        "cpu": (127, 144, 17, 0, 0, 0, 0, 0),
        "cuda": (136, 155, 19, 0, 1, 1, 0, 0),
        "mps": (None, 118, 118, 0, 0, 0, 0, 0),
        "xpu": (41, 58, 17, 0, 0, 0, 0, 0),
    },
    ("2.11", "2.13"): {
        "aten": (8, 8, 0, 0, 0, 0, 0, 2),
        "cpu": (144, 153, 9, 0, 0, 0, 0, 1),
        "cuda": (155, 167, 12, 0, 0, 0, 0, 5),
        "mps": (118, 132, 14, 0, 0, 0, 0, 0),
        "xpu": (58, 65, 7, 0, 0, 0, 0, 1),
    },
}
COLUMNS = ("before", "after", "added", "removed", "changed", "changed_in_names_only", "reordered", "regated")


@pytest.mark.exhaustive
@pytest.mark.parametrize(("old", "new"), ALL)
def test_every_declaration_of_a_release_is_classified_and_torchgen_agrees(old: str, new: str) -> None:
    repository, commits = releases()
    cache = repository.root / "cache"
    result = run_gate(C_SHIM, GateContext(repository, commits[old], commits[new], cache))
    changed = sum(counts[COLUMNS.index("changed")] for counts in ALL[old, new].values())
    assert result.verdict is (Verdict.FAILED if changed else Verdict.PASSED)
    found = {device: tuple(row[c] for c in COLUMNS) for device, row in result.details["devices"].items()}
    assert found == ALL[old, new]
    assert len(result.details["compared_with_torchgen"]) == 5


@functools.cache
def stack() -> tuple[TreeRepository, str, dict[str, str]]:
    """The 2.11 tree, and heads with the dispatch entry alone and with the header that goes with it."""
    reference = require_reference("2.11")
    lab = lab_over(reference.path)
    tree = Tree.at(lab.repository, reference.commit)
    text = tree.read(FUNCTIONS_PATH)
    assert text is not None
    line = b"    CUDA: grid_sampler_2d_backward_cuda\n"
    changed = {FUNCTIONS_PATH: text.replace(line, line + b"    MPS: grid_sampler_2d_backward_mps\n")}
    headers = generate_c_shims(tree.with_files(changed), ["mps"])
    heads = {
        "whole": lab.commit({**changed, **headers}, parents=(reference.commit,), at=START),
        "stale": lab.commit(changed, parents=(reference.commit,), at=START),
    }
    return lab, reference.commit, heads


def test_the_stack_on_the_2_11_tree_is_a_dispatch_only_change() -> None:
    lab, base, heads = stack()
    result = run_gate(FC_WINDOW, lab.context(base, heads["whole"]))
    assert result.verdict is Verdict.PASSED
    assert result.details["summary"] == (
        "dispatch-only change: no schema changed, the FC window does not apply, the bot will comment all the same"
    )
    assert [finding.message for finding in result.findings] == [
        result.details["summary"],
        "aten::grid_sampler_2d_backward: dispatch-only change (MPS)",
    ]


def test_the_stack_on_the_2_11_tree_adds_one_declaration() -> None:
    lab, base, heads = stack()
    result = run_gate(C_SHIM, lab.context(base, heads["whole"]))
    assert result.verdict is Verdict.PASSED
    assert result.details["summary"] == "1 declaration added, none changed"
    assert result.details["devices"]["mps"]["after"] == 119


def test_a_dispatch_entry_without_its_header_is_stale() -> None:
    lab, base, heads = stack()
    result = run_gate(C_SHIM, lab.context(base, heads["stale"]))
    assert result.verdict is Verdict.FAILED
    (finding,) = [finding for finding in result.findings if finding.fails]
    assert (finding.rule, finding.path) == ("stale", header_path("mps"))
    assert "aoti_torch_mps_grid_sampler_2d_backward" in finding.message


def test_a_hand_edited_declaration_of_the_real_header_fails() -> None:
    lab, base, _ = stack()
    path = header_path("mps")
    text = Tree.at(lab.repository, GitCommitHash(base)).read(path)
    assert text is not None
    edited = text.replace(
        b"aoti_torch_mps_abs(AtenTensorHandle self,", b"aoti_torch_mps_abs(AtenTensorHandle self, int64_t n,"
    )
    head = lab.commit({path: edited}, parents=(base,))
    result = run_gate(C_SHIM, lab.context(base, head))
    assert result.verdict is Verdict.FAILED
    assert {finding.rule for finding in result.findings if finding.fails} == {"changed", "stale"}
