"""What the series leaves on real trees has no two blank lines in a row, as clang-format settings of PyTorch want it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from patchstack.edits.cxx_edit import CXX_SUFFIXES
from patchstack.planning import plan_stack
from patchstack.series import load_series
from patchstack.tree.git import Repository
from references import clone_of

pytestmark = pytest.mark.needs_reference


@pytest.mark.parametrize("release", ["2.11", "2.13"])
def test_no_change_of_the_series_leaves_two_blank_lines_in_a_row(release: str, tmp_path: Path) -> None:
    with Repository.open(clone_of(release, tmp_path / "tree.git")) as repository:
        onto = repository.resolve_commit("main")
        assert onto is not None
        plan = plan_stack(repository, load_series("grid_sampler"), onto)
        assert plan.commits
        for change in plan.commits:
            for path, content in change.files.items():
                if path.endswith(CXX_SUFFIXES):
                    assert not re.search(rb"\n[ \t]*\n[ \t]*\n|\n\n\Z", content), (change.change.id, path)
