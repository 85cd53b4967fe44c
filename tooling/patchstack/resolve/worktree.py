"""The worktree in which a person resolves: made by git, apart from the user's, and taken away without a trace."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterable
from pathlib import Path

from patchstack.cache import cache_dir
from patchstack.errors import TreeError
from patchstack.resolve.model import ABORT, ResolveError
from patchstack.tree.git import GitTreeHash, Repository
from patchstack.tree.git.process import GitCommandError, run_git

_FOLDER = "resolve"
_PLAIN = (
    "core.hooksPath=/dev/null",  # the user's hooks are for the user's commits
    "core.autocrlf=false",
    "core.safecrlf=false",
    "core.sparseCheckout=false",
    "core.fsmonitor=false",
)
_OPTIONS = [word for setting in _PLAIN for word in ("-c", setting)]


def new_place(series: str) -> Path:
    """A folder in the cache that is not there yet."""
    return cache_dir() / _FOLDER / f"{series}-{secrets.token_hex(4)}"


class Worktree:
    """One worktree of a repository.

    Attributes:
        path: its folder.
    """

    def __init__(self, repository: Repository, path: Path) -> None:
        self._repository = repository
        self.path = path

    def open(self, commit: str) -> None:
        """Be at a commit, without what was there; a worktree that is damaged is made again.

        Raises:
            TreeError: git cannot make it, on a full disk, say, or where a partial clone lacks files.
        """
        if self.is_whole:
            with contextlib.suppress(GitCommandError):
                self._git("reset", "--quiet", "--hard", commit)
                self._git("checkout", "--quiet", "--detach", commit)
                return
        self.remove()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._repository.git(*_OPTIONS, "worktree", "add", "--quiet", "--detach", str(self.path), commit)
        except (GitCommandError, OSError) as error:
            found = error.reason if isinstance(error, GitCommandError) else str(error)
            raise TreeError("the worktree cannot be made", where=str(self.path), found=found) from None

    @property
    def is_whole(self) -> bool:
        """Whether git takes the folder for a worktree of this repository."""
        try:
            found = os.fsdecode(run_git(self.path, ["rev-parse", "--show-toplevel", "--git-common-dir"])).split("\n")
        except (OSError, GitCommandError):
            return False
        common = (self.path / found[1]).resolve()
        return Path(found[0]).resolve() == self.path.resolve() and common == self._repository.common_dir

    def require(self) -> None:
        """Refuse to go on without it.

        Raises:
            ResolveError: it is gone.
        """
        if not self.is_whole:
            raise ResolveError("the worktree of the resolve is gone", where=str(self.path), next_command=ABORT)

    def result(self, paths: Iterable[str]) -> GitTreeHash:
        """What it holds now: tracked files, what was added with git, and the files of some paths.

        Raises:
            ResolveError: git cannot add them.
        """
        there = [path for path in paths if (self.path / path).is_file()]
        try:
            self._git("add", "-u")
            if there:
                self._git("add", "-f", "--", *there)
            return GitTreeHash(os.fsdecode(self._git("write-tree")).strip())
        except GitCommandError as error:
            problem = "git cannot take what is in the worktree"
            raise ResolveError(problem, where=str(self.path), found=error.reason) from None

    def untracked(self) -> list[str]:
        """Files that git knows nothing of, those that it is told to ignore apart."""
        listed = self._git("ls-files", "-z", "--others", "--exclude-standard")
        return [os.fsdecode(name) for name in listed.split(b"\0") if name]

    def remove(self) -> None:
        """Take it away, with what git notes of it; half a worktree too."""
        shutil.rmtree(self.path, ignore_errors=True)
        notes = self._repository.common_dir / "worktrees"
        shutil.rmtree(notes / self.path.name, ignore_errors=True)  # the name is its own: it has random letters
        for folder in (notes, self.path.parent):
            with contextlib.suppress(OSError):  # others are in it
                folder.rmdir()

    def _git(self, *arguments: str) -> bytes:
        return run_git(self.path, [*_OPTIONS, *arguments])
