"""Which commit of a branch is which change; what two of them claim is asked about, never guessed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from patchstack.capture.model import CaptureError, Source
from patchstack.errors import UsageError
from patchstack.series import Series
from patchstack.stack.identify import ChangeMatch, Identifier, MatchReason
from patchstack.stack.record import Made
from patchstack.tree.git import GitCommitHash, Repository


@dataclass(frozen=True)
class Match:
    """A commit and its change.

    Attributes:
        source: the commit.
        change: id of the change; empty for a commit that is new.
        why: how it was told.
    """

    source: Source
    change: str
    why: str


def find_base(repository: Repository, tip: GitCommitHash, made: Sequence[Made]) -> GitCommitHash:
    """The commit that a branch was built on: the nearest below its tip that the record knows as one.

    Raises:
        UsageError: there is none.
    """
    known = {entry.onto for entry in made}
    for commit in repository.text("rev-list", "--first-parent", "--max-count=1000", tip).split("\n"):
        if commit in known:
            return GitCommitHash(commit)
    raise UsageError("nothing tells which commit the branch was built on", where=tip[:12], next_command="--base REF")


def match(
    repository: Repository,
    series: Series,
    sources: Sequence[Source],
    made: Sequence[Made],
    told: Mapping[str, str],
) -> list[Match]:
    """The commits, each with its change; those of series that are stacked with this one are left out.

    Args:
        made: the record, of this series and of others.
        told: what the user said: beginning of a commit id to id of a change, or to nothing for a new one.

    Raises:
        UsageError: what the user said names no change, or no commit.
        CaptureError: two commits would be one change.
    """
    own = [entry for entry in made if entry.series == series.name]
    identifier = Identifier(own, {change.id: change.title for change in series.changes})
    strangers = _Strangers(repository, series.name, made)
    known, found = {change.id for change in series.changes}, list[Match]()
    for commit, change in told.items():
        if change and change not in known:
            raise UsageError(f"no change '{change}'", where=f"--match {commit}", expected=", ".join(sorted(known)))
        if not any(source.commit.startswith(commit) for source in sources):
            raise UsageError("no such commit on the branch", where=f"--match {commit}={change}")
    others = dict[str, str]()
    for source in sources:
        said = next((change for commit, change in told.items() if source.commit.startswith(commit)), None)
        identity = identifier.identify(repository.commit(source.commit)) if said is None else None
        other = strangers.series_of(source, identity) if said is None else ""
        if other:
            others[source.commit] = other
        elif said is not None:
            found.append(Match(source, said, "--match says so" if said else "new, as --match says"))
        elif identity is not None and identity.change in known:
            found.append(Match(source, identity.change, identity.evidence.value))
        else:
            found.append(Match(source, "", "new: no record, pull request or title tells of a change"))
    found = _without_new_ones_of(others, sources, found)
    _refuse_shared(found)
    return found


class _Strangers:
    """Knows the commits of other series: a branch may hold several, one on top of the other."""

    def __init__(self, repository: Repository, name: str, made: Sequence[Made]) -> None:
        names = sorted({entry.series for entry in made} - {name})
        self._repository = repository
        self._identifiers = {other: Identifier(entry for entry in made if entry.series == other) for other in names}

    def series_of(self, source: Source, own: ChangeMatch | None) -> str:
        """The other series that has better evidence for a commit than this one; empty where none has."""
        strength = list(MatchReason)
        best, found = strength.index(own.evidence) if own else len(strength), ""
        for name, identifier in self._identifiers.items():
            identity = identifier.identify(self._repository.commit(source.commit))
            if identity is not None and strength.index(identity.evidence) < best:
                best, found = strength.index(identity.evidence), name
        return found


def _without_new_ones_of(others: Mapping[str, str], sources: Sequence[Source], found: Sequence[Match]) -> list[Match]:
    """Leave out the new commits that lie among those of another series.

    Raises:
        CaptureError: a new commit lies between two series.
    """
    matched = {one.source.commit: one for one in found}
    owners = [others.get(s.commit, "" if _is_new(matched.get(s.commit)) else _OWN) for s in sources]
    kept = list[Match]()
    for at, source in enumerate(sources):
        if source.commit not in matched:
            continue
        one = matched[source.commit]
        below = next((owner for owner in reversed(owners[:at]) if owner), "")
        above = next((owner for owner in owners[at + 1 :] if owner), "")
        near = {below, above} - {""} if _is_new(one) else {_OWN}
        if _OWN in near and len(near) > 1:
            raise CaptureError(
                f"the new commit {source.commit[:12]} '{source.title}' lies between this series and"
                f" '{next(iter(near - {_OWN}))}'",
                next_command=f"--match {source.commit[:12]}= for a change of this one, else move it with git rebase -i",
            )
        if _OWN in near or not near:
            kept.append(one)
    return kept


_OWN = "\0"  # no series has this name


def _is_new(one: Match | None) -> bool:
    return one is not None and not one.change and one.why.startswith("new: ")


def _refuse_shared(found: Sequence[Match]) -> None:
    by_change: dict[str, list[Match]] = {}
    for one in found:
        by_change.setdefault(one.change, []).append(one)
    for change, claims in by_change.items():
        if change and len(claims) > 1:
            commits = " and ".join(f"{one.source.commit[:12]} '{one.source.title}' ({one.why})" for one in claims)
            raise CaptureError(
                f"{len(claims)} commits would be the change {change}",
                found=commits,
                next_command=f"--match {claims[-1].source.commit[:12]}= for a new change, or =CHANGE",
            )
