"""The branch as it is now: whose commits it holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from patchstack.errors import RefError, TreeError
from patchstack.stack.identify import Identifier
from patchstack.stack.lost import lines_lost
from patchstack.stack.record import Made
from patchstack.stack.refs import Refs
from patchstack.tree.git import GitCommitHash, Repository
from patchstack.tree.git.model import Commit
from patchstack.tree.git.process import GitCommandError

_SHOWN = 5
_REFRESH = "apply-stack refresh --series FOLDER (takes them into the series); "


@dataclass(frozen=True)
class Branch:
    """A branch before the run.

    Attributes:
        name: short name (``stack/grid_sampler``).
        tip: where it points, ``None`` when it does not exist.
        own: its commits that the tool made (or that ghstack rewrote from such), top first.
        foreign: its other commits that are not upstream's, top first.
        upstream: tips of upstream's branches.
        was_made: the tool made commits for this branch before; what it holds may be these, amended.
        lost: lines of the other commits that no commit of the tool's has; ``None`` where that cannot be told.
    """

    name: str
    tip: GitCommitHash | None
    own: tuple[Commit, ...] = ()
    foreign: tuple[Commit, ...] = ()
    upstream: tuple[GitCommitHash, ...] = ()
    was_made: bool = False
    lost: int | None = None

    @property
    def ref(self) -> str:
        return f"refs/heads/{self.name}"

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
            next_command=f"{_REFRESH if self.was_made else ''}--branch NAME, or --force (drops {self._dropped},"
            " refs/apply-stack/backup/... keeps the old tip)",
        )

    @property
    def _dropped(self) -> str:
        if self.lost is None:
            return "them"
        lines = f"{self.lost} changed line{'' if self.lost == 1 else 's'}"
        return f"{lines} of theirs" if self.lost else "no line of files, their messages"


def read_branch(repository: Repository, refs: Refs, onto: GitCommitHash, made: Sequence[Made]) -> Branch:
    """Read a branch and tell the tool's own commits from upstream's and from somebody else's.

    Raises:
        TreeError: its history cannot be read.
    """
    if refs.tip is None:
        return Branch(refs.name, None, upstream=tuple(refs.upstream))
    upstream = [f"^{hash_}" for hash_ in (onto, *refs.upstream)]
    own: list[Commit] = []
    others: list[Commit] = []
    bases: set[str] = set()
    identifier = Identifier(made)
    for hash_ in _rev_list(repository, refs.tip, *upstream):
        commit = repository.commit(hash_)
        known = identifier.made_as(commit)
        if known is None or known.made is None:
            others.append(commit)
        else:
            own.append(commit)
            bases.add(known.made.onto)
    if others and own:
        below = _bases_kept_elsewhere(repository, refs, upstream, bases)
        others = [commit for commit in others if commit.hash not in below]
    lost = lines_lost(repository, others, made) if others else 0
    return Branch(refs.name, refs.tip, tuple(own), tuple(others), tuple(refs.upstream), bool(made), lost)


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
            next_command=f"{repository.typed} fsck",
        ) from None
