"""An op in ``ops`` that the tree does not have is named on planning, with what comes closest."""

from __future__ import annotations

from pathlib import Path

import pytest

from edit_bench import commit_of, write_series
from patchstack.errors import TreeError
from patchstack.planning import StackPlan, plan_stack
from patchstack.tree.native_functions import FUNCTIONS_PATH

MANIFEST = """\
format: 1
changes:
  - id: shade
    title: Shade
    message: message.md
    ops: [OPS]
    only_where: [{defines: shade, path: a.mm, reason: what it mends}]
    upstream: [{defines: tint, path: a.mm}]
    edits: [{kind: place-fragment, path: a.mm, fragment: tint, after: {function: shade}}]
"""
OVERLAY = {"a.mm": b"// fragment: tint\nvoid tint() {\n}\n// end fragment\n"}
TREE = {FUNCTIONS_PATH: b"- func: shade_2d(Tensor s) -> T\n- func: shade_3d.out(Tensor s) -> T\n"}


def planned(folder: Path, ops: str, source: bytes = b"void shade() {\n}\n") -> StackPlan:
    repository, onto = commit_of(folder / "tree", {**TREE, "a.mm": source})
    return plan_stack(repository, write_series(folder / "s", MANIFEST.replace("OPS", ops), OVERLAY), onto)


def test_a_typo_is_refused_with_the_nearest_names(tmp_path: Path) -> None:
    with pytest.raises(TreeError, match=r"names shade_2dd, which .* does not have; expected shade_2d") as caught:
        planned(tmp_path, "shade_3d, shade_2dd")
    assert caught.value.where == f"{tmp_path}/s/series.yaml:3"


def test_an_op_is_known_with_and_without_its_overload(tmp_path: Path) -> None:
    assert planned(tmp_path, "shade_2d, shade_3d, shade_3d.out").commits


def test_a_change_that_is_not_applicable_may_name_what_the_tree_lacks(tmp_path: Path) -> None:
    assert not planned(tmp_path, "shade_4d", b"void other() {\n}\n").commits
