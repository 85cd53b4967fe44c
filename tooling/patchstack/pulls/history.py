"""Commits with pull requests that are no longer on the branch, but still in a reflog.

``ghstack`` rewrites what HEAD points to, so the reflog of HEAD has every stack that was submitted or brought in with
``ghstack checkout``, even when the branch was deleted since.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from patchstack.messages.trailers import extract
from patchstack.tree.git import GitCommitHash, Repository
from patchstack.tree.git.model import Commit
from patchstack.tree.git.process import GitCommandError

_NEWEST = 1000
"""How many entries of one reflog are looked at."""


class Source(enum.Enum):
    """Where a commit with ghstack's trailers was found; the first one that has a change's trailers is used."""

    BRANCH = "the branch"
    BRANCH_REFLOG = "the reflog of the branch"
    HEAD_REFLOG = "the reflog of HEAD"
    RECORD = "the record of earlier runs"
    REMOTE = "the remote's refs, where its tree and its words are a commit's that was made here"


@dataclass(frozen=True)
class Earlier:
    """A commit that was part of the stack once.

    Attributes:
        commit: the commit.
        source: where it was found.
    """

    commit: Commit
    source: Source


def earlier_commits(repository: Repository, branch: str, below: Sequence[str]) -> Iterator[Earlier]:
    """Commits with a pull request that a reflog remembers, the newest state first.

    Args:
        branch: full name of the branch.
        below: commits whose history is upstream's.
    """
    seen: set[str] = set()
    for ref, source in ((branch, Source.BRANCH_REFLOG), *((head, Source.HEAD_REFLOG) for head in _heads(repository))):
        tips = _reflog(repository, ref)
        for hash_ in _in_order(repository, tips, below):
            if hash_ not in seen:
                seen.add(hash_)
                commit = repository.commit(hash_)
                if extract(commit.message).pull_request is not None:
                    yield Earlier(commit, source)


def looked_at(repository: Repository, commit: str) -> bool:
    """Whether the commit was checked out here, by any worktree, as long as a reflog remembers."""
    return any(commit in _reflog(repository, head) for head in _heads(repository))


def _heads(repository: Repository) -> list[str]:
    """The HEAD of this worktree, then those of the others."""
    linked = repository.common_dir / "worktrees"
    others = sorted(path for path in linked.iterdir() if path != repository.git_dir) if linked.is_dir() else []
    main = [] if repository.git_dir == repository.common_dir else ["main-worktree/HEAD"]
    return ["HEAD", *main, *(f"worktrees/{path.name}/HEAD" for path in others)]


def _reflog(repository: Repository, ref: str) -> list[str]:
    try:
        listed = repository.text("reflog", "show", f"--max-count={_NEWEST}", "--format=%H", ref, "--").split()
    except GitCommandError:  # no such ref any more, or one that never had a reflog
        return []
    return list(dict.fromkeys(listed))


def _in_order(repository: Repository, tips: Sequence[str], below: Sequence[str]) -> Iterator[GitCommitHash]:
    """What can be reached from the tips, each commit at the first tip that reaches it."""
    if not set(tips) - set(below):
        return
    limits = [f"^{hash_}" for hash_ in below]
    try:
        listed = repository.text("rev-list", "--topo-order", "--parents", "--ignore-missing", *tips, *limits)
    except GitCommandError:  # pruned objects: what is gone cannot help
        return
    parents = {line.split(" ", 1)[0]: line.split(" ")[1:] for line in listed.split("\n") if line}
    done: set[str] = set()
    for tip in tips:
        todo = [tip]
        while todo:
            hash_ = todo.pop()
            if hash_ in parents and hash_ not in done:
                done.add(hash_)
                yield GitCommitHash(hash_)
                todo.extend(parents[hash_])
