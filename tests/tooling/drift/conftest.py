"""Histories of the small tree, and the series that goes on it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from checkouts import sources
from checkouts.fixtures import lab, seed, warm
from checkouts.lab import write_series
from patchstack.drift import DEFAULT_VISITS, Drift, find_drift
from patchstack.drift.line import resolve
from patchstack.series import Series, load_series
from patchstack.tree.git import Repository
from upstream_history import Step, write_history

__all__ = ["lab", "seed", "warm"]


class Upstream:
    """A repository whose ``main`` begins with the small tree."""

    def __init__(self, path: Path, series: Series) -> None:
        self.path = path
        self.series = series
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(path)], check=True)

    def grow(self, *steps: Step) -> str:
        """Write the tree, then these commits; the tip."""
        return write_history(self.path, [Step("The tree", dict(sources.TREE)), *steps])

    def git(self, *arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], cwd=self.path, check=True, capture_output=True, text=True
        ).stdout.strip()

    def drift(self, since: str = "", onto: str = "main", *, visits: int = DEFAULT_VISITS) -> Drift:
        """Search from the first commit, or from ``since``."""
        first = since or self.git("rev-list", "--max-parents=0", "--first-parent", onto)
        with Repository.open(self.path) as repository:
            ends = (resolve(repository, "--since", first), resolve(repository, "--onto", onto))
            return find_drift(repository, self.series, *ends, visits=visits)


@pytest.fixture
def series(tmp_path: Path) -> Series:
    return load_series(str(write_series(tmp_path / "fade")))


@pytest.fixture
def upstream(tmp_path: Path, series: Series, monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    monkeypatch.setenv("PATCHSTACK_CACHE", str(tmp_path / "cache"))
    return Upstream(tmp_path / "upstream.git", series)
