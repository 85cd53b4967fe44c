"""What the user's worktrees are doing with a branch: none of it may be pulled from under them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from patchstack.tree.git import Repository

# Where git notes what it is in the middle of: each file has names of branches among its lines.
_STATE_FILES = {
    "rebase-merge/head-name": "being rebased",
    "rebase-merge/update-refs": "being rebased",
    "rebase-apply/head-name": "being rebased",
    "BISECT_START": "being bisected",
}


@dataclass(frozen=True)
class BranchUse:
    """A worktree that is busy with a branch.

    Attributes:
        worktree: its folder (the git directory where the folder is not known).
        doing: ``checked out``, ``being rebased`` or ``being bisected``.
    """

    worktree: str
    doing: str


def uses_of(repository: Repository, branch: str) -> list[BranchUse]:
    """Every worktree that has ``branch`` checked out, or is in the middle of a rebase or bisect of it."""
    ref = f"refs/heads/{branch}"
    found = [BranchUse(path, "checked out") for path, head in _worktrees(repository) if head == ref]
    for git_dir in _git_dirs(repository):
        for file, doing in _STATE_FILES.items():
            if {ref, branch} & set(_lines(git_dir / file)):
                found.append(BranchUse(str(git_dir), doing))
    return found


def _worktrees(repository: Repository) -> Iterator[tuple[str, str]]:
    path = ""
    for line in repository.text("worktree", "list", "--porcelain").split("\n"):
        key, _, value = line.partition(" ")
        if key == "worktree":
            path = value
        elif key == "branch":
            yield path, value


def _git_dirs(repository: Repository) -> Iterator[Path]:
    yield repository.common_dir
    linked = repository.common_dir / "worktrees"
    if linked.is_dir():
        yield from sorted(path for path in linked.iterdir() if path.is_dir())


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(errors="replace").split("\n")
    except OSError:
        return []
