"""``--checkout``: bring the user's worktree to the new stack, or leave everything as it was."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from patchstack.errors import RefError, TreeError
from patchstack.tree.git import GitCommitHash, Repository
from patchstack.tree.git.process import GitCommandError

_UNDER_WAY = {
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase or git am",
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "BISECT_LOG": "a bisect",
}


class Switch:
    """The way of one worktree to a branch: asked for before anything is written, rehearsed, then done.

    Attributes:
        repository: the worktree.
        branch: short name of the branch.
        is_current: whether the worktree has the branch checked out already.
    """

    def __init__(self, repository: Repository, branch: str) -> None:
        self.repository = repository
        self.branch = branch
        self.is_current = not repository.is_bare and self._head() == f"refs/heads/{branch}"
        self._start: GitCommitHash | None = None

    def require_possible(self) -> None:
        """Refuse before anything is written.

        Raises:
            TreeError: there is no worktree.
            RefError: it is in the middle of something, or has changes that are not committed.
        """
        root = str(self.repository.root)
        without = "without --checkout"
        if self.repository.is_bare:
            raise TreeError("a bare repository has nothing to check out", where=root, next_command=without)
        for name, what in _UNDER_WAY.items():
            if (self.repository.git_dir / name).exists():
                raise RefError(
                    f"{what} is under way in this worktree", where=root, next_command=f"finish it, or {without}"
                )
        if (self.repository.git_dir / "index.lock").exists():
            raise RefError(
                "another git process is at work in this worktree, or one was killed",
                where=root,
                found="index.lock in the git directory",
                next_command=f"wait for it, remove the file if nothing runs{self._after_a_kill()}, or {without}",
            )
        interrupted = self._interrupted()
        self._start = interrupted or self.repository.resolve_commit("HEAD")
        changed = self.repository.text("status", "--porcelain", "--untracked-files=no")
        if changed and interrupted is None:
            raise RefError(
                "this worktree has changes that are not committed; --checkout would have to move them",
                where=root,
                found=f"{len(changed.splitlines())} changed file(s)",
                next_command=f"commit or stash them{self._after_a_kill()}, or {without}",
            )

    def _after_a_kill(self) -> str:
        """What brings the files along where a run was killed half way; it drops changes, so a person decides."""
        if not self.is_current or self.repository.resolve_commit(f"refs/heads/{self.branch}@{{1}}") is None:
            return ""
        return f", git switch -f {self.branch} if they are what a killed run of this left half way"

    def rehearse(self, tip: GitCommitHash, scratch: Path) -> None:
        """Let git try the switch on a copy of the index; :meth:`require_possible` comes first.

        Files in the way are looked for here, since git would overwrite those that it was told to ignore.

        Raises:
            RefError: it would fail, because of an untracked file in the way, say.
        """
        for path in self._added(tip):
            if os.path.lexists(self.repository.root / path):
                raise self._blocked(f"{path}, which is not tracked and which the stack creates")
        index = self.repository.git_dir / "index"
        copy = scratch / "index"
        environment = {"GIT_INDEX_FILE": str(copy)}
        try:
            if index.exists():
                shutil.copyfile(index, copy)
                self._refresh(environment)
            self.repository.git("read-tree", "-n", "-m", "-u", *self._trees(tip), extra_env=environment)
        except GitCommandError as error:
            raise self._blocked(error.reason) from None
        finally:
            copy.unlink(missing_ok=True)

    def _blocked(self, found: str) -> RefError:
        return RefError(
            f"{self.branch} cannot be checked out here; nothing was written to any branch",
            where=str(self.repository.root),
            found=found,
            next_command="move the file away, or without --checkout",
        )

    def _added(self, tip: GitCommitHash) -> list[str]:
        """Paths that the stack has and the worktree's commit has not."""
        if self._start is None:
            return []
        options = ("-r", "-z", "--name-only", "--diff-filter=A", "--no-renames")
        names = self.repository.git("diff-tree", *options, self._start, tip)
        return [os.fsdecode(name) for name in names.split(b"\0") if name]

    def finish(self, tip: GitCommitHash) -> str:
        """Check the branch out, which has just been moved to ``tip``; :meth:`rehearse` comes first.

        Returns:
            A warning, or an empty string.

        Raises:
            RefError: git refuses after all. The branch has moved, the files have not.
        """
        try:
            if self.is_current:
                self._refresh({})
                self.repository.git("read-tree", "-m", "-u", *self._trees(tip))
            else:
                self.repository.git("switch", "--quiet", "--no-guess", self.branch)
        except GitCommandError as error:
            if self._head() == f"refs/heads/{self.branch}" and not self.is_current:
                return f"{self.branch} is checked out, but the post-checkout hook failed: {error.reason}"
            raise RefError(
                f"the branch {self.branch} is written, but git refuses to check it out",
                where=str(self.repository.root),
                found=error.reason,
                next_command=f"git switch {self.branch}",
            ) from None
        return ""

    def _head(self) -> str:
        """The ref that HEAD stands for; empty where it is detached."""
        try:
            return self.repository.text("symbolic-ref", "--quiet", "HEAD")
        except GitCommandError:
            return ""

    def _trees(self, tip: GitCommitHash) -> list[str]:
        """What is here, if anything, and what is to come."""
        return [self._start, tip] if self._start else [tip]

    def _interrupted(self) -> GitCommitHash | None:
        """The old tip, where a run was killed after it moved the branch and before it brought the files along."""
        old = self.repository.resolve_commit(f"refs/heads/{self.branch}@{{1}}") if self.is_current else None
        if old is None or old == self.repository.resolve_commit("HEAD"):
            return None
        try:
            for what in ([], ["--cached"]):
                self.repository.git("diff", "--quiet", "--no-ext-diff", *what, old)
        except GitCommandError:
            return None
        return old

    def _refresh(self, environment: dict[str, str]) -> None:
        """Read-tree takes a file for changed when only its times are unknown to the index."""
        self.repository.git("update-index", "-q", "--refresh", extra_env=environment)

    def lock_name(self) -> str:
        """HEAD as a file below the common git directory: git locks it too when its branch moves."""
        return os.path.relpath(self.repository.git_dir / "HEAD", self.repository.common_dir)
