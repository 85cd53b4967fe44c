"""Upstream makes a tree one of those that a change is for, or none of them any more: a change of state."""

from __future__ import annotations

from dataclasses import replace

import pytest

from checkouts.sources import HOST, METAL, TREE
from patchstack.drift import ChangeDrift, Verdict
from patchstack.drift.replay import paths_of
from patchstack.errors import ExitCode
from patchstack.series import Applicability, Requirement, UpstreamMarker
from upstream_history import Step

from .conftest import Upstream

DARKENED = {HOST: TREE[HOST].replace(b"Tensor brighten_mps", b"void darken_mps() {\n}\n\nTensor brighten_mps")}


def set_condition(upstream: Upstream, *, path: str = HOST, name: str = "darken_mps") -> None:
    """The second change is for trees whose file defines a name."""
    first, second, *others = upstream.series.changes
    condition = Applicability(UpstreamMarker("defines", path, name), "trees with darken")
    second = replace(second, only_where=(condition,))
    upstream.series = replace(upstream.series, changes=(first, second, *others))


def state_words(change: ChangeDrift) -> list[str]:
    (turn,) = change.findings
    return [part.words for part in turn.parts]


@pytest.mark.parametrize("back", [False, True], ids=["becomes applicable", "is not applicable any more"])
def test_the_commit_that_changed_it_is_named(upstream: Upstream, back: bool) -> None:
    set_condition(upstream)
    there, gone = (DARKENED, {HOST: TREE[HOST]})
    upstream.grow(Step("Start", there if back else gone), Step("a"), Step("Turn", gone if back else there), Step("b"))
    drift = upstream.drift(upstream.git("rev-parse", "main~3"))
    first, second, third = drift.changes
    assert (first.verdict, third.verdict) == (Verdict.UNCHANGED, Verdict.UNCHANGED)
    assert second.verdict is Verdict.DRIFTED
    (turn,) = second.findings
    assert turn.commit is not None
    assert turn.commit.title == "Turn"
    assert drift.exit_code is ExitCode.CONFLICT
    if back:
        lacks = "it is for trees in which Fade.mm defines darken_mps (trees with darken)"
        assert state_words(second) == [f"state absent -> not applicable ({lacks})"]
    else:
        assert state_words(second) == ["state not applicable -> absent"]


def test_a_change_that_is_never_applicable_has_no_drift_whatever_becomes_of_its_anchors(upstream: Upstream) -> None:
    set_condition(upstream)
    upstream.grow(Step("Rename the class", {"test/test_mps.py": b"class TestMetal:\n    pass\n"}))
    drift = upstream.drift()
    assert [change.verdict for change in drift.changes] == [Verdict.UNCHANGED] * 3
    set_condition(upstream, name="brighten_mps")
    assert upstream.drift().changes[1].verdict is Verdict.DRIFTED, "the seeded fault: a condition that always holds"


def test_the_files_of_conditions_tell_trees_apart(upstream: Upstream) -> None:
    set_condition(upstream, path="docs/kinds.h")
    assert "docs/kinds.h" in paths_of(upstream.series)
    upstream.grow(Step("Say", {"docs/kinds.h": b"void darken_mps();\nint darken_mps_too;\n"}), Step("More"))
    assert upstream.drift().line.touching


def test_on_a_tree_that_is_refused_requirements_of_others_are_not_said_to_be_lacking(upstream: Upstream) -> None:
    set_condition(upstream)
    first, second, *others = upstream.series.changes
    second = replace(second, requires=(Requirement(HOST, "dark", "for the dark"),))
    first = replace(first, requires=(Requirement(METAL, "brighten", "for the light"),))
    upstream.series = replace(upstream.series, changes=(first, second, *others))
    upstream.grow(Step("Rename", {METAL: TREE[METAL].replace(b"void brighten(", b"void brighten_up(")}))
    drift = upstream.drift()
    assert [change.onto.state.value for change in drift.changes] == ["refused"] * 3
    assert [name for name in drift.changes[0].onto.facets if name.startswith("requirement")]
    assert not [name for name in drift.changes[1].onto.facets if name.startswith("requirement")]
