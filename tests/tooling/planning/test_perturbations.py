"""Upstream's trees, edited as upstream edits: the series applies, or is refused for what was edited."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from patchstack.tree.git import Repository, Tree
from perturbations import KINDS, Kind, judge, perturbed
from perturbations.kinds import HEADER, HOST, METAL, Files
from perturbations.verdict import files_of, idle_holder, says
from shared_inputs import upstream_tree

pytestmark = [pytest.mark.exhaustive, pytest.mark.needs_reference]

TREES = (
    "2026-04-before",
    "2026-04-3d-only",
    "2026-05-both",
    "2026-06-wide-index",
    "2026-08-checked",
)
"""The draft ``2026-04-2d-only`` is refused as it is, so an edit of it shows nothing."""


@dataclass(frozen=True)
class Place:
    """One tree."""

    name: str
    folder: Path
    files: Files


@pytest.fixture(scope="module", params=TREES)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder = upstream_tree(request.param, tmp_path_factory.mktemp("tree") / "upstream")
    with Repository.open(folder) as repository:
        return Place(request.param, folder, files_of(Tree.at(repository, "main")))


def test_no_edit_has_a_silent_wrong_place(place: Place) -> None:
    """A fifth of the edits on each tree: together every edit once. ``bench/perturbations.py`` makes all of them."""
    wrong = []
    for kind in KINDS[TREES.index(place.name) :: len(TREES)]:
        edited = kind.edit(place.files)
        if edited is not None:
            verdict = judge(place.folder, "grid_sampler", perturbed(place.folder, edited.files), edited)
            wrong += [(kind.name, kind.variant, fault, verdict.reasons) for fault in verdict.faults]
    assert wrong == []


def test_a_name_within_another_word_or_a_path_is_no_reason() -> None:
    assert says(("grid_sampler_2d",), "a.metal: grid_sampler_2d is not known")
    assert not says(("grid_sampler_2d",), "kernels/grid_sampler_2d.metal: grid_sampler_2d_backward is not known")


CALLED = b"int f() {\n  return 1; // added\n}\nint g() {\n  return f();\n}\n"


def test_a_text_in_a_function_that_nothing_calls_any_more_is_in_no_use() -> None:
    assert idle_holder(CALLED.replace(b"return f();", b"return 2;"), CALLED, b"added") == "f"


def test_a_text_in_a_function_that_is_called_or_never_was_is_in_use() -> None:
    never = b"int f() {\n  return 1; // added\n}\n"
    assert (idle_holder(CALLED, CALLED, b"added"), idle_holder(never, never, b"added")) == ("", "")


def test_a_new_parameter_of_a_kernel_is_one_of_its_instantiations_too() -> None:
    (kind,) = (kind for kind in KINDS if (kind.name, kind.variant) == ("parameter", "a Metal kernel"))
    kernel = b"template <typename T>\nkernel void grid_sampler_3d(\n    uint tid [[thread_position_in_grid]]) {\n}\n"
    macro = b"#define REGISTER(T) \\\n  template kernel void grid_sampler_3d<T>( \\\n      uint [[position]]);\n"
    made = kind.edit({HEADER: b"", METAL: kernel + macro, HOST: b""})
    assert made
    assert made.files[METAL].count(b", uint added_parameter [[threads_per_grid]])") == 2


def test_no_kind_is_more_than_a_fifth_of_the_edits() -> None:
    assert max(Counter(kind.name for kind in KINDS).values()) * 5 <= len(KINDS)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.name} {kind.variant}")
def test_an_edit_leaves_a_file_without_a_place_for_it_alone(kind: Kind) -> None:
    assert kind.edit({HEADER: b"", METAL: b"", HOST: b""}) is None
