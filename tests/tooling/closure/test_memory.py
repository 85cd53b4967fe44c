"""Closure of a change is remembered by the content of both trees: it is most of what a run reads."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from patchstack.closure import Contents
from patchstack.planning import StackPlan, closed, plan_stack
from patchstack.series import load_series
from patchstack.tree.git import Repository
from references import clone_of

SERIES = load_series(None)


class Counted:
    """``newly_missing``, counting the changes that it looks at."""

    def __init__(self) -> None:
        self.looked_at = 0
        self.lacks = False

    def __call__(self, *arguments: Any) -> Any:
        self.looked_at += 1
        contents: Contents = arguments[-1]
        contents.lacks_objects = self.lacks
        return self.found(*arguments)

    found = staticmethod(closed.newly_missing)


@pytest.fixture
def counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Counted:
    counted = Counted()
    monkeypatch.setattr(closed, "newly_missing", counted)
    return counted


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    folder = clone_of("2.11", tmp_path / "tree")
    monkeypatch.setenv("PATCHSTACK_CACHE", str(tmp_path / "cache"))
    with Repository.open(folder) as opened:
        yield opened


def planned(repository: Repository) -> StackPlan:
    commit = repository.resolve_commit("main")
    assert commit is not None
    return plan_stack(repository, SERIES, commit)


def commit_readme(repository: Repository, text: bytes) -> None:
    stream = b"commit refs/heads/main\ncommitter A <a@b.c> 1700000000 +0000\ndata 4\nEdit\nfrom refs/heads/main^0\n"
    stream += b"M 100644 inline README\ndata %d\n%s\n" % (len(text), text)
    subprocess.run(["git", "fast-import", "--quiet"], cwd=repository.root, input=stream, check=True)


def test_the_same_trees_are_looked_at_once(repository: Repository, counted: Counted) -> None:
    first = planned(repository)
    assert counted.looked_at == len(first.commits) > 0
    assert [change.files for change in planned(repository).changes] == [change.files for change in first.changes]
    assert counted.looked_at == len(first.commits)
    commit_readme(repository, b"other\n")
    planned(repository)
    assert counted.looked_at == 2 * len(first.commits)


def test_what_was_found_wrong_is_found_wrong_again(repository: Repository, counted: Counted) -> None:
    missing = closed.Missing("a.mm", "shade", "shade", 3, 1, "run", "defined nowhere that this file sees")
    counted.found = lambda *arguments: [missing] if counted.looked_at == 1 else []  # type: ignore[method-assign]
    first, second = planned(repository), planned(repository)
    problem = "run uses shade, defined nowhere that this file sees"
    assert [[conflict.problem for _, conflict in plan.conflicts()] for plan in (first, second)] == [[problem]] * 2


def test_nothing_is_remembered_where_an_object_was_lacking(repository: Repository, counted: Counted) -> None:
    counted.lacks = True
    commits = len(planned(repository).commits)
    planned(repository)
    assert counted.looked_at == 2 * commits
