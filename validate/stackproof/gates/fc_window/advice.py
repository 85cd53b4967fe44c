"""Which commit of a stack must wait: the one that uses what another one (or itself) adds."""

from __future__ import annotations

from dataclasses import dataclass

from patchstack.tree.git import GitCommitHash, Repository, Tree
from patchstack.tree.git.process import GitCommandError
from stackproof.gates.common.functions import FUNCTIONS_PATH
from stackproof.gates.fc_window.features import keys_in
from stackproof.gates.fc_window.uses import Use


@dataclass(frozen=True)
class _Step:
    commit: GitCommitHash
    title: str
    keys: frozenset[str]


class StackAdvice:
    """The commits of a range, oldest first, and what each one's ``native_functions.yaml`` declares."""

    def __init__(self, repository: Repository, base: GitCommitHash, head: GitCommitHash) -> None:
        self._repository = repository
        self._range = f"{base}..{head}"
        self._steps: list[_Step] | None = None

    def for_use(self, use: Use) -> str:
        """What to do about a use of something that the stack itself adds; one sentence."""
        adding = next((step for step in self._commits() if use.feature.key in step.keys), None)
        using = self._written_by(use)
        if adding is None:
            return "land the schema first; the use must wait until two weeks after that"
        if using == adding.commit:
            return f"split {_short(adding)}: it both adds and uses it; land the schema first, the use two weeks later"
        user = next((step for step in self._commits() if step.commit == using), None)
        waits = _short(user) if user else "the commit that uses it"
        return f"{waits} must wait until two weeks after {_short(adding)} has landed"

    def _commits(self) -> list[_Step]:
        if self._steps is None:
            hashes = self._repository.text("rev-list", "--reverse", "--topo-order", self._range).split()
            self._steps = [self._step(GitCommitHash(hash_)) for hash_ in hashes]
        return self._steps

    def _step(self, commit: GitCommitHash) -> _Step:
        content = Tree.at(self._repository, commit).read(FUNCTIONS_PATH)
        return _Step(commit, self._repository.commit(commit).title, keys_in(content or b""))

    def _written_by(self, use: Use) -> str:
        lines = f"{use.line},{use.line}"
        try:
            blame = self._repository.text("blame", "--porcelain", "-L", lines, self._range, "--", use.path)
        except GitCommandError:
            return ""
        return blame.split(" ", 1)[0]


def _short(step: _Step) -> str:
    return f"{step.commit[:12]} ({step.title})"
