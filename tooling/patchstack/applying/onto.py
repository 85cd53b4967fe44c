"""What ``--onto`` means in a repository, and how it relates to the boundary that ghstack uses."""

from __future__ import annotations

from dataclasses import dataclass

from patchstack.errors import UsageError
from patchstack.tree.git import GitCommitHash, Repository

UPSTREAM = "refs/remotes/origin/main"


@dataclass(frozen=True)
class Onto:
    """The commit a stack is built on.

    Attributes:
        name: as typed.
        commit: the commit.
        is_branch: whether the name is a local branch.
        warnings: sentences about ``origin/main``.
    """

    name: str
    commit: GitCommitHash
    is_branch: bool
    warnings: tuple[str, ...] = ()


def resolve_onto(repository: Repository, name: str) -> Onto:
    """Find the commit that ``name`` stands for; a local branch wins over tags and remote branches of that name.

    Raises:
        UsageError: there is no such commit.
    """
    branch = repository.resolve_ref(f"refs/heads/{name}")
    commit = branch or repository.resolve_commit(name)
    if commit is None:
        upstream = ["origin/main"] if repository.resolve_ref(UPSTREAM) else []
        heads = repository.text("for-each-ref", "--format=%(refname:short)", "--count=5", "refs/heads").split()
        raise UsageError(
            "no such branch or commit",
            where=f"--onto {name}",
            expected=f"one of {', '.join([*upstream, *heads])}, or a commit" if upstream or heads else "a commit",
            next_command=f"{repository.typed} branch -a",
        )
    return Onto(name, commit, branch is not None, _boundary_warnings(repository, name, commit))


def _boundary_warnings(repository: Repository, name: str, commit: GitCommitHash) -> tuple[str, ...]:
    """ghstack takes ``origin/main`` as its boundary and does not fetch: whatever lies between becomes pull requests."""
    upstream = repository.resolve_ref(UPSTREAM)
    if upstream is None or upstream == commit:
        return ()
    only_here, only_there = repository.text("rev-list", "--left-right", "--count", f"{commit}...{upstream}").split()
    parts = []
    if only_here != "0":
        parts.append(f"{only_here} commit(s) of {name} are not in origin/main and ghstack would submit them too")
    if only_there != "0":
        parts.append(f"{name} is {only_there} commit(s) behind origin/main")
    return (f"{name} and origin/main differ: {'; '.join(parts)}",)
