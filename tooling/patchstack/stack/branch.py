"""The branch as it is now: whose commits it holds, and what ghstack wrote into them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from patchstack.errors import RefError, TreeError
from patchstack.git import GitCommitHash, Repository
from patchstack.git.model import Commit
from patchstack.git.process import GitCommandError
from patchstack.messages.trailers import OldMessage, same_prose
from patchstack.stack.record import Made
from patchstack.stack.refs import Refs

_SHOWN = 5


@dataclass(frozen=True)
class Branch:
    """A branch before the run.

    Attributes:
        name: short name (``stack/grid_sampler``).
        tip: where it points, ``None`` when it does not exist.
        own: its commits that the tool made (or that ghstack rewrote from such), top first.
        foreign: its other commits that are not upstream's, top first.
        change_of: id of an own commit to the id of the change it was made from.
    """

    name: str
    tip: GitCommitHash | None
    own: tuple[Commit, ...] = ()
    foreign: tuple[Commit, ...] = ()
    change_of: Mapping[str, str] = field(default_factory=dict)

    @property
    def ref(self) -> str:
        return f"refs/heads/{self.name}"

    @property
    def old_messages(self) -> tuple[OldMessage, ...]:
        """The messages whose trailers a new stack takes over."""
        return tuple(OldMessage(c.message, self.change_of.get(c.hash), c.hash) for c in (*self.own, *self.foreign))

    def require_own(self) -> None:
        """Refuse to go on where the branch holds work of somebody else.

        Raises:
            RefError: it does.
        """
        if not self.foreign:
            return
        shown = ", ".join(f"{c.hash[:10]} '{c.title}'" for c in self.foreign[:_SHOWN])
        more = f" and {len(self.foreign) - _SHOWN} more" if len(self.foreign) > _SHOWN else ""
        raise RefError(
            f"the branch holds {len(self.foreign)} commit(s) that apply-stack did not make; nothing was written",
            where=self.name,
            found=shown + more,
            next_command="--branch with another name, or --force (refs/apply-stack/backup/... keeps the old tip)",
        )


def read_branch(repository: Repository, refs: Refs, onto: GitCommitHash, made: Sequence[Made]) -> Branch:
    """Read a branch and tell the tool's own commits from upstream's and from somebody else's.

    Raises:
        TreeError: its history cannot be read.
    """
    if refs.tip is None:
        return Branch(refs.name, None)
    upstream = [f"^{hash_}" for hash_ in (onto, *refs.upstream)]
    own: list[Commit] = []
    others: list[Commit] = []
    origins: dict[str, Made] = {}
    by_hash = {entry.commit: entry for entry in made}
    for hash_ in _rev_list(repository, refs.tip, *upstream):
        commit = repository.commit(hash_)
        origin = by_hash.get(hash_) or _rewritten_from(commit, made)
        if origin is None:
            others.append(commit)
        else:
            own.append(commit)
            origins[hash_] = origin
    if others and own:
        below = _bases_kept_elsewhere(repository, refs, upstream, {origin.onto for origin in origins.values()})
        others = [commit for commit in others if commit.hash not in below]
    changes = {hash_: origin.change for hash_, origin in origins.items()}
    return Branch(refs.name, refs.tip, tuple(own), tuple(others), changes)


def _rewritten_from(commit: Commit, made: Iterable[Made]) -> Made | None:
    """The record of the commit that ghstack rewrote into this one: same tree, same words, its trailers added."""
    for entry in made:
        if entry.tree == commit.tree and same_prose(entry.message, commit.message):
            return entry
    return None


def _bases_kept_elsewhere(
    repository: Repository, refs: Refs, upstream: Sequence[str], bases: Iterable[str]
) -> set[GitCommitHash]:
    """What lies below the old stack outside main (a release branch, say), as long as another ref holds it too."""
    known = [base for base in bases if repository.resolve_commit(base) is not None]
    if not known:
        return set()
    lost = _rev_list(repository, *known, *upstream, "--not", f"--exclude={refs.ref}", "--all")
    return set(_rev_list(repository, *known, *upstream)) - set(lost)


def _rev_list(repository: Repository, *arguments: str) -> list[GitCommitHash]:
    try:
        return [GitCommitHash(hash_) for hash_ in repository.text("rev-list", "--topo-order", *arguments).split()]
    except GitCommandError as error:
        raise TreeError(
            "the history of the branch cannot be read",
            where=str(repository.root),
            found=error.reason,
            next_command="git fsck",
        ) from None
