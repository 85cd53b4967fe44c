"""Regenerated headers: judged without torchgen on the way, and with it at the ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from checkouts.sources import METAL, TREE
from patchstack.drift.model import When
from patchstack.edits import regenerate
from patchstack.edits.regenerate import RegenerateShim
from patchstack.errors import ExitCode, MissingObjectError
from patchstack.tree.git import Tree
from patchstack.tree.torchgen_run import TorchgenError
from upstream_history import Step

from .conftest import Upstream

HEADER = "torch/csrc/inductor/aoti_torch/generated/c_shim_mps.h"
STORED = b"""\
#pragma once
#ifdef __cplusplus
extern "C" {
#endif
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_mps_brighten(AtenTensorHandle self, AtenTensorHandle* ret0);
#ifdef __cplusplus
}
#endif
"""
LINE = b"AOTI_TORCH_EXPORT AOTITorchError aoti_torch_mps_fade(AtenTensorHandle self, AtenTensorHandle* ret0);\n"
GENERATED = STORED.replace(b"#ifdef __cplusplus\n}", LINE + b"#ifdef __cplusplus\n}")


class Torchgen:
    """Stands in for the tree's torchgen: fails where the tree says so, and counts."""

    def __init__(self) -> None:
        self.runs = 0

    def __call__(self, tree: Tree, backends: Sequence[str]) -> dict[str, bytes]:
        self.runs += 1
        if tree.exists("torchgen/broken"):
            raise TorchgenError("KeyError: 'fade'", "")
        if tree.exists("torchgen/missing"):
            raise MissingObjectError("the repository does not hold this object", where="torchgen/gen.py")
        return {HEADER: GENERATED}


@pytest.fixture
def torchgen(monkeypatch: pytest.MonkeyPatch) -> Torchgen:
    stand_in = Torchgen()
    monkeypatch.setattr(regenerate, "generate_c_shims", stand_in)
    return stand_in


@pytest.fixture
def shimmed(upstream: Upstream) -> Upstream:
    """The series with a header to regenerate in its first change."""
    first, *others = upstream.series.changes
    edit = RegenerateShim(path=HEADER, backend="MPS", adds=("aoti_torch_mps_fade",))
    upstream.series = replace(upstream.series, changes=(replace(first, edits=(*first.edits, edit)), *others))
    return upstream


def test_torchgen_runs_once_where_all_is_well_however_many_trees_are_planned(
    shimmed: Upstream, torchgen: Torchgen
) -> None:
    touches = (Step(f"{n}", {METAL: TREE[METAL] + b"// %d\n" % n}) for n in range(9))
    shimmed.grow(Step("Header", {HEADER: STORED}), *touches)
    drift = shimmed.drift(since=shimmed.git("rev-parse", "main~9"))
    assert (drift.exit_code, drift.visited) == (ExitCode.OK, 2)
    assert torchgen.runs == 1


def test_a_torchgen_that_broke_on_the_way_is_a_finding_without_a_commit(shimmed: Upstream, torchgen: Torchgen) -> None:
    shimmed.grow(Step("Header", {HEADER: STORED}), Step("Break torchgen", {"torchgen/broken": b""}))
    drift = shimmed.drift(since=shimmed.git("rev-parse", "main~1"))
    ((change, turn),) = drift.findings
    assert (change.change.id, turn.when, turn.commit) == ("fade", When.BETWEEN, None)
    assert "KeyError: 'fade'" in turn.parts[0].words
    assert drift.exit_code is ExitCode.CONFLICT
    assert torchgen.runs == 2
    later = shimmed.drift(since=shimmed.git("rev-parse", "main~1"))
    assert later.findings[0][1].fingerprint == turn.fingerprint


def test_a_torchgen_that_was_broken_at_since_is_said_to_have_been(shimmed: Upstream, torchgen: Torchgen) -> None:
    shimmed.grow(Step("Header", {HEADER: STORED, "torchgen/broken": b""}), Step("Touch"))
    ((_, turn),) = shimmed.drift(since=shimmed.git("rev-parse", "main~1")).findings
    assert turn.when is When.BEFORE


def test_a_clone_without_torchgens_files_is_a_note_and_not_a_finding(shimmed: Upstream, torchgen: Torchgen) -> None:
    shimmed.grow(Step("Header", {HEADER: STORED, "torchgen/missing": b""}))
    drift = shimmed.drift(since=shimmed.git("rev-parse", "main"))
    assert drift.findings == ()
    assert any("torchgen was not run" in note for note in drift.notes)


def test_a_header_that_has_the_declaration_while_the_rest_is_absent_is_seen_without_torchgen(
    shimmed: Upstream, torchgen: Torchgen
) -> None:
    shimmed.grow(Step("Header", {HEADER: STORED}), Step("Land the header", {HEADER: GENERATED}), Step("After"))
    drift = shimmed.drift(since=shimmed.git("rev-parse", "main~2"))
    ((_, turn),) = drift.findings
    assert turn.commit is not None
    assert turn.commit.title == "Land the header"
    assert drift.changes[0].onto.state.value == "partial"
    assert torchgen.runs == 0
