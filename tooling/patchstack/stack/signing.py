"""Signed commits: a signature holds the time it was made, so that signing again would change every id of a stack.

A run that would make the commits the branch already holds takes those, signatures included.
"""

from __future__ import annotations

from collections.abc import Iterable

from patchstack.stack.identity import Signature
from patchstack.tree.git import GitCommitHash, GitTreeHash, Repository
from patchstack.tree.git.model import Commit

_HEADERS = (b"gpgsig ", b"gpgsig-sha256 ")


class SignedCommits:
    """The signed commits of a branch, to be found again by everything but their signature."""

    def __init__(self, repository: Repository, commits: Iterable[Commit]) -> None:
        self._known: dict[bytes, GitCommitHash] = {}
        for commit in commits:
            found = repository.read_object(commit.hash)
            plain = _without_signature(found[2]) if found else b""
            if found and plain != found[2]:
                self._known[plain] = commit.hash

    def find(
        self, tree: GitTreeHash, parent: GitCommitHash, message: str, signature: Signature, index: int
    ) -> GitCommitHash | None:
        """The commit that signing these facts would make again, or ``None``."""
        return self._known.get(unsigned_commit(tree, parent, message, signature, index))


def unsigned_commit(tree: GitTreeHash, parent: GitCommitHash, message: str, signature: Signature, index: int) -> bytes:
    """The content of the commit object that git would make, without a signature."""
    who = signature.environment(index)
    lines = [f"tree {tree}", f"parent {parent}"]
    for role in ("AUTHOR", "COMMITTER"):
        date = who[f"GIT_{role}_DATE"].removeprefix("@")
        lines.append(f"{role.lower()} {who[f'GIT_{role}_NAME']} <{who[f'GIT_{role}_EMAIL']}> {date}")
    return "\n".join([*lines, "", message]).encode(errors="surrogateescape")


def _without_signature(content: bytes) -> bytes:
    head, _, message = content.partition(b"\n\n")
    kept: list[bytes] = []
    inside = False
    for line in head.split(b"\n"):
        inside = line.startswith(_HEADERS) or (inside and line.startswith(b" "))
        if not inside:
            kept.append(line)
    return b"\n".join(kept) + b"\n\n" + message
