"""Where a build lives: one folder of the cache for each repository, with a worktree, a virtual environment and a log.

The folder outlives a run. That is what makes the next build incremental, and an interrupted one resumable.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from patchstack.tree.git import GitCommitHash, Repository


@dataclass(frozen=True)
class BuildFolder:
    """The places of one repository's build.

    Attributes:
        path: the folder itself.
    """

    path: Path

    @classmethod
    def of(cls, repository: Repository, cache: Path) -> BuildFolder:
        """The folder for a repository, the same from each of its worktrees; not created here."""
        digest = hashlib.sha256(str(repository.common_dir).encode()).hexdigest()[:12]
        return cls(cache / "build" / f"{repository.common_dir.parent.name}-{digest}")

    @property
    def worktree(self) -> Path:
        return self.path / "pytorch"

    @property
    def environment(self) -> Path:
        return self.path / "venv"

    @property
    def python(self) -> Path:
        return self.environment / "bin" / "python"

    @property
    def log(self) -> Path:
        return self.path / "build.log"

    @property
    def stamp(self) -> Path:
        """Written when a build is complete, removed when one begins."""
        return self.path / "built.json"

    def mark_built(self, head: GitCommitHash) -> None:
        """Note that the worktree's build is complete and of this commit."""
        self.stamp.write_text(json.dumps({"head": head}) + "\n", encoding="utf-8")

    def built_head(self) -> str:
        """The commit that the build is of; empty where there is no complete one."""
        try:
            return str(json.loads(self.stamp.read_text(encoding="utf-8"))["head"])
        except (OSError, ValueError, KeyError, TypeError):
            return ""


@dataclass(frozen=True)
class BuiltTree:
    """A complete build.

    Attributes:
        worktree: the PyTorch tree that was built in place.
        python: the interpreter whose torch it is.
    """

    worktree: Path
    python: Path


def built_tree(repository: Repository, head: GitCommitHash, cache: Path) -> BuiltTree | None:
    """The build of a commit that the gate "build" left, or ``None`` where there is no complete one."""
    folder = BuildFolder.of(repository, cache)
    if folder.built_head() != head:
        return None
    return BuiltTree(folder.worktree, folder.python)
