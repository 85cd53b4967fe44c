"""Which commit of a branch is which change; what two of them claim is asked about, never guessed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from patchstack.capture.model import CaptureError, Source
from patchstack.errors import UsageError
from patchstack.series import Series
from patchstack.stack.identify import Identifier
from patchstack.stack.record import Made
from patchstack.tree.git import GitCommitHash, Repository


@dataclass(frozen=True)
class Match:
    """A commit and its change.

    Attributes:
        source: the commit.
        change: id of the change; empty for a commit that is new.
        why: how it was told.
        series: the other series that the commit is of; empty for one of this series.
    """

    source: Source
    change: str
    why: str
    series: str = ""


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
    others: Sequence[Made] = (),
) -> list[Match]:
    """The commits, each with its change.

    Args:
        others: the record of other series, which may be stacked on the same branch.
        told: what the user said: beginning of a commit id to id of a change, or to nothing for a new one.

    Raises:
        UsageError: what the user said names no change, or no commit.
        CaptureError: two commits would be one change.
    """
    identifier = Identifier(made, {change.id: change.title for change in series.changes})
    theirs, owners = Identifier(others), {entry.change: entry.series for entry in others}
    known, found = {change.id for change in series.changes}, list[Match]()
    for commit, change in told.items():
        if change and change not in known:
            raise UsageError(f"no change '{change}'", where=f"--match {commit}", expected=", ".join(sorted(known)))
        if not any(source.commit.startswith(commit) for source in sources):
            raise UsageError("no such commit on the branch", where=f"--match {commit}={change}")
    for source in sources:
        said = next((change for commit, change in told.items() if source.commit.startswith(commit)), None)
        identity = identifier.identify(repository.commit(source.commit)) if said is None else None
        if said is not None:
            found.append(Match(source, said, "--match says so" if said else "new, as --match says"))
        elif identity is not None and identity.change in known:
            found.append(Match(source, identity.change, identity.evidence.value))
        elif other := theirs.identify(repository.commit(source.commit)) if said is None else None:
            found.append(Match(source, other.change, other.evidence.value, owners[other.change]))
        else:
            found.append(Match(source, "", "new: no record, pull request or title tells of a change"))
    _refuse_shared(found)
    return found


def _refuse_shared(found: Sequence[Match]) -> None:
    by_change: dict[str, list[Match]] = {}
    for one in found:
        if not one.series:
            by_change.setdefault(one.change, []).append(one)
    for change, claims in by_change.items():
        if change and len(claims) > 1:
            commits = " and ".join(f"{one.source.commit[:12]} '{one.source.title}' ({one.why})" for one in claims)
            raise CaptureError(
                f"{len(claims)} commits would be the change {change}",
                found=commits,
                next_command=f"--match {claims[-1].source.commit[:12]}= for a new change, or =CHANGE",
            )
