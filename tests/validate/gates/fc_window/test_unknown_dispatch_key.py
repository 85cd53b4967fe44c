"""A dispatch key that a tree's torchgen does not know is told by both gates that read the file, at the entry's line."""

from __future__ import annotations

import pytest

from compat_trees import START, TreeRepository, lab_over, of_rule
from gate_contexts import run_gate
from patchstack.tree.git import Tree
from patchstack.tree.native_functions import DISPATCH_KEYS, FUNCTIONS_PATH
from references import require_reference
from stackproof.gates.c_shim.spec import SPEC as C_SHIM
from stackproof.model import Verdict

OP = b"- func: grid_sampler_2d_backward("
KEY = b"    CUDA: grid_sampler_2d_backward_cuda\n"


def misspelt(reference: str) -> tuple[TreeRepository, str, str, int]:
    """A release's tree, one with a misspelt key in one entry on it, and the line of that entry."""
    found = require_reference(reference)
    lab = lab_over(found.path)
    base = found.release_commit
    text = Tree.at(lab.repository, base).read(FUNCTIONS_PATH) or b""
    entry = text.index(OP)
    at = text.index(KEY, entry)
    head = lab.commit({FUNCTIONS_PATH: text[:at] + b"    MSP: tint_mps\n" + text[at:]}, parents=(base,))
    return lab, base, head, text.count(b"\n", 0, entry) + 1


@pytest.mark.parametrize("reference", ["2.11", "2.13"])
def test_both_gates_have_torchgens_sentence_at_the_line_of_the_entry(reference: str) -> None:
    lab, base, head, line = misspelt(reference)
    for result in (lab.judge(base, head, today=START), run_gate(C_SHIM, lab.context(base, head))):
        assert result.verdict is Verdict.FAILED
        (finding,) = of_rule(result, "torchgen")
        assert "unknown dispatch key MSP" in finding.message
        assert (finding.path, finding.line) == (FUNCTIONS_PATH, line)


@pytest.mark.parametrize("reference", ["2.6", "2.11", "2.13"])
def test_the_keys_of_manifests_are_those_that_releases_use(reference: str) -> None:
    found = require_reference(reference)
    lab = lab_over(found.path)
    text = (Tree.at(lab.repository, found.release_commit).read("torchgen/model.py") or b"").decode()
    listed = text[text.index("dispatch_keys = [") :]
    keys = {word for word in listed[: listed.index("]")].replace(",", " ").split() if word.startswith("DispatchKey.")}
    assert {key.removeprefix("DispatchKey.") for key in keys} <= set(DISPATCH_KEYS)
