"""A regenerated header may only gain what the series announces."""

from __future__ import annotations

import pytest

from edit_bench import edit_from, tree_of
from patchstack.edits import Outcome, Rung, Status, regenerate
from patchstack.tree.git import Tree
from patchstack.tree.torchgen_run import TorchgenError

PATH = "torch/csrc/inductor/aoti_torch/generated/c_shim_mps.h"
EXPORT = "AOTI_TORCH_EXPORT AOTITorchError aoti_torch_mps_"
HEADER = f"#pragma once\n{EXPORT}alpha(int64_t a);\n{EXPORT}gamma(int64_t a);\n"
WITH_BETA = HEADER.replace(f"{EXPORT}gamma", f"{EXPORT}beta(int64_t a);\n{EXPORT}gamma")


def planned(stored: str | None, generated: str | Exception, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    """The outcome where the tree's torchgen makes ``generated``."""

    def generate(tree: Tree, backends: list[str]) -> dict[str, bytes]:
        assert backends == ["MPS"]
        if isinstance(generated, Exception):
            raise generated
        return {PATH: generated.encode()} if generated else {}

    monkeypatch.setattr(regenerate, "generate_c_shims", generate)
    edit = edit_from(f"{{kind: regenerate-c-shim, path: {PATH}, backend: MPS, adds: [aoti_torch_mps_beta]}}")
    return edit.plan(tree_of({PATH: stored.encode()} if stored is not None else {"other": b""}))


def test_the_announced_declaration_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = planned(HEADER, WITH_BETA, monkeypatch)
    assert (outcome.status, outcome.rung) == (Status.APPLIES, Rung.REGENERATED)
    assert outcome.after == WITH_BETA.encode()


def test_a_header_that_declares_it_already_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert planned(WITH_BETA, AssertionError("torchgen was run"), monkeypatch).status is Status.SATISFIED


def test_a_tree_without_the_header_is_not_applicable(monkeypatch: pytest.MonkeyPatch) -> None:
    assert planned(None, AssertionError("torchgen was run"), monkeypatch).status is Status.NOT_APPLICABLE


REFUSED = {
    "a changed parameter": (
        WITH_BETA.replace("alpha(int64_t a", "alpha(int32_t a"),
        "compiled models call: aoti_torch_mps_alpha",
    ),
    "a further parameter": (WITH_BETA.replace("alpha(int64_t a", "alpha(int64_t a, double b"), "compiled models call"),
    "a removed declaration": (
        f"{EXPORT}beta(int64_t a);\n{EXPORT}gamma(int64_t a);\n",
        "compiled models call: aoti_torch_mps_alpha",
    ),
    "another new declaration": (WITH_BETA + f"{EXPORT}omega(int64_t a);\n", "also adds aoti_torch_mps_omega"),
    "no new declaration": (HEADER, "does not add aoti_torch_mps_beta"),
    "declarations in another order": (
        f"{EXPORT}gamma(int64_t a);\n{EXPORT}beta(int64_t a);\n{EXPORT}alpha(int64_t a);\n",
        "move declarations",
    ),
    "no header": ("", "makes no header for MPS"),
    "a header that cannot be read": (WITH_BETA + "#endif\n", "#endif without #if"),
}


@pytest.mark.parametrize(("generated", "problem"), REFUSED.values(), ids=REFUSED.keys())
def test_torchgen_is_not_followed_where_it_makes(generated: str, problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = planned(HEADER, generated, monkeypatch)
    assert outcome.status is Status.CONFLICT
    assert outcome.conflict is not None
    assert problem in outcome.conflict.problem


def test_a_torchgen_that_fails_is_a_conflict_with_its_last_line(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = planned(HEADER, TorchgenError("no such op", "a traceback\nno such op"), monkeypatch)
    assert outcome.conflict is not None
    assert outcome.conflict.problem == "the tree's torchgen failed: no such op"


def test_a_stored_header_with_merge_markers_is_a_conflict(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = planned(f"<<<<<<< ours\n{HEADER}", WITH_BETA, monkeypatch)
    assert outcome.conflict is not None
    assert "unresolved merge conflict" in outcome.conflict.problem
