"""The series applied to a clone of the reference tree, and commits on top of it that break the host function."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from patchstack.cache import cache_dir
from patchstack.cli import Request, run
from patchstack.git import GitCommitHash, Repository, Tree
from references import require_reference
from stackproof.host.clang import find_clang
from stackproof.metal.errors import ToolchainError
from stackproof.model import Gate, GateContext, GateResult

HOST_FILE = "aten/src/ATen/native/mps/operations/GridSampler.mm"
OP = "grid_sampler_2d_backward"
_IDENTITY = {f"GIT_{who}_{what}": "stack@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


@dataclass(frozen=True)
class StackLab:
    """A repository with the stack of the reference tree.

    Attributes:
        path: its folder.
        repository: the same, opened.
        base: the commit below the stack.
        head: the stack's tip.
    """

    path: Path
    repository: Repository
    base: GitCommitHash
    head: GitCommitHash

    def tree(self, commit: str | None = None) -> Tree:
        """The tree of a commit, of the stack's tip by default."""
        return Tree.at(self.repository, commit or self.head)

    def text(self, path: str) -> str:
        """A file of the stack's tip."""
        content = self.tree().read(path)
        assert content is not None
        return content.decode()

    def changed(self, files: Mapping[str, str]) -> GitCommitHash:
        """A commit on the stack's tip with other texts in some files."""
        index = self.path / "index-of-a-fault"
        index.unlink(missing_ok=True)
        environment = {**os.environ, **_IDENTITY, "GIT_INDEX_FILE": str(index)}

        def git(*arguments: str, text: str = "") -> str:
            command = ["git", "-C", str(self.path), *arguments]
            done = subprocess.run(command, env=environment, input=text, capture_output=True, text=True, check=True)
            return done.stdout.strip()

        git("read-tree", self.head)
        for path, text in files.items():
            blob = git("hash-object", "-w", "--stdin", text=text)
            git("update-index", "--add", "--cacheinfo", f"100644,{blob},{path}")
        tree = git("write-tree")
        return GitCommitHash(git("commit-tree", tree, "-p", self.head, "-m", "a fault"))

    def replaced(self, old: str, new: str, path: str = HOST_FILE) -> GitCommitHash:
        """A commit on the stack's tip with one text in one file replaced; the text must be there once."""
        text = self.text(path)
        assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in {path}"
        return self.changed({path: text.replace(old, new)})

    def judge(self, gate: Gate, head: GitCommitHash | None = None, **options: Any) -> GateResult:
        """Run a gate on a commit, the stack's tip by default."""
        settings = {"ops": [OP], **options}
        context = GateContext(self.repository, self.base, head or self.head, cache_dir(), options=settings)
        return gate.run(context)


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StackLab]:
    """The series on the 2.11 reference tree, in a repository of the test session's own."""
    reference = require_reference("2.11")
    path = tmp_path_factory.mktemp("host") / "tree"
    subprocess.run(["git", "clone", "-q", "--no-checkout", str(reference.path), str(path)], check=True)
    for key in ("user.name", "user.email"):
        subprocess.run(["git", "-C", str(path), "config", key, "stack@example.org"], check=True)
    report = run(Request(onto="main", repo=path, series=None, force=True))
    assert not report.plan.blocked
    with Repository.open(path) as repository:
        head = repository.resolve_ref("refs/heads/stack/grid_sampler")
        assert head is not None
        yield StackLab(path, repository, repository.commit("main").hash, head)


@pytest.fixture(scope="session")
def compiler() -> None:
    """Skips where no host file can be compiled."""
    try:
        find_clang()
    except ToolchainError as error:
        pytest.skip(f"not run: {error}")
