"""The one moment at which a run changes what the user sees: one transaction of git's over one branch."""

from __future__ import annotations

import os
from collections.abc import Sequence

from patchstack.applying.lock import RunLock
from patchstack.errors import PatchstackError, RefError, TreeError
from patchstack.stack.branch import Branch
from patchstack.tree.git import GitCommitHash, Repository
from patchstack.tree.git.process import GitCommandError

REFLOG = "apply-stack: regenerate"


def backup_ref(branch: Branch) -> str:
    """The ref that keeps the old tip of a branch; empty where there is no tip to keep."""
    return f"refs/apply-stack/backup/{branch.name}/{branch.tip[:12]}" if branch.tip else ""


def move_branch(
    repository: Repository,
    lock: RunLock,
    branch: Branch,
    tip: GitCommitHash,
    *,
    backup: str = "",
    locks: Sequence[str] = (),
) -> None:
    """Move the branch from where it was read to ``tip``, and make ``backup`` hold the old tip, both or neither.

    Args:
        locks: other files (below the common git directory) that git locks for this.

    Raises:
        RefError: the branch moved meanwhile, is locked by another git process, or a hook of the user's refuses.
        TreeError: the refs cannot be written.
    """
    lines = [f"update {branch.ref} {tip} {branch.tip}" if branch.tip else f"create {branch.ref} {tip}"]
    if backup:
        lines.insert(0, f"update {backup} {branch.tip}")
    lock.note(branch.ref, *([backup] if backup else []), *locks)
    try:
        text = "".join(f"{line}\n" for line in lines)
        repository.git("update-ref", "--create-reflog", "-m", REFLOG, "--stdin", stdin=os.fsencode(text))
    except GitCommandError as error:
        now = repository.resolve_ref(branch.ref)
        if now != tip:  # else git of a run that was killed has just finished the same move
            raise _refusal(branch, now, error) from None
    finally:
        lock.done()


def _refusal(branch: Branch, now: GitCommitHash | None, error: GitCommandError) -> PatchstackError:
    if now != branch.tip:
        return RefError(
            "the branch moved while the stack was made; it was left where it is now",
            where=branch.name,
            expected=branch.tip or "no such branch",
            found=now or "no such branch",
            next_command="run again",
        )
    if "aborted by hook" in error.stderr:
        return RefError(
            "the reference-transaction hook of this repository refuses to move the branch; nothing was changed",
            where=branch.name,
            found=error.reason,
            next_command="look at what the hook wants, or --branch with a name it accepts",
        )
    if "File exists" in error.stderr:
        return RefError(
            "another git process is moving the branch, or one was killed while it did; nothing was changed",
            where=branch.name,
            found=error.reason,
            next_command="run again, and remove the lock file if it stays",
        )
    return TreeError("the branch cannot be moved; nothing was changed", where=branch.name, found=error.reason)
