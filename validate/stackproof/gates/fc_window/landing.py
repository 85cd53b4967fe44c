"""When a schema came to the branch: the first-parent history of ``native_functions.yaml``, newest version first.

Only as much history is read as the window needs. Where the history ends before that (a shallow or partial clone, a tree
that was imported as one commit) the answer is "unknown", never a date made up from the commit where it ends.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass

from patchstack.errors import TreeError
from patchstack.tree.git import GitCommitHash, Repository, Tree
from stackproof.gates.common.functions import FUNCTIONS_PATH
from stackproof.gates.fc_window.clock import WINDOW, Landing, LandingState
from stackproof.gates.fc_window.features import keys_in

_FIRST_BATCH = 64


@dataclass(frozen=True)
class Version:
    """One version of the file on the branch.

    Attributes:
        commit: the first-parent commit that brought it.
        at: committer time in UTC, never earlier than that of an older version (a commit can carry any date; it cannot
            have landed before its own ancestors).
        is_beginning: whether the history known here begins with this commit.
    """

    commit: str
    at: datetime.datetime
    is_beginning: bool


@dataclass(frozen=True)
class History:
    """The part of the branch's history that matters for the window at one moment.

    Attributes:
        versions: newest first, down to the newest one that is old enough, or to the end of what is known.
        keys: feature keys of each version.
        now: the moment to judge at.
        end_note: why the history ends where it does; empty when it reaches back far enough.
    """

    versions: tuple[Version, ...]
    keys: tuple[frozenset[str], ...]
    now: datetime.datetime
    end_note: str = ""

    @property
    def settled(self) -> frozenset[str]:
        """Keys that have been on the branch, without a gap, for the whole window."""
        return frozenset.intersection(*self.keys) if self.keys and not self.end_note else frozenset()

    def landing(self, key: str) -> Landing:
        """When ``key`` came to the branch for the last time."""
        run = 0
        while run < len(self.keys) and key in self.keys[run]:
            run += 1
        if run == 0:
            gone = any(key in keys for keys in self.keys)
            return Landing(LandingState.NOT_LANDED, note="it was on the branch and was reverted" if gone else "")
        version = self.versions[run - 1]
        if run == len(self.keys) and self.end_note:
            return Landing(LandingState.BEFORE_HISTORY, note=self.end_note)
        again = any(key in keys for keys in self.keys[run:])
        notes = ["it was reverted and came back, the last time counts"] if again else []
        if run == len(self.keys):
            notes.append("or earlier")
        state = LandingState.FUTURE if version.at > self.now else LandingState.KNOWN
        if state is LandingState.FUTURE:
            notes.append("the commit is dated in the future, so its age is not known")
        return Landing(state, version.at, version.commit, "; ".join(notes))


def read_history(repository: Repository, tip: GitCommitHash, now: datetime.datetime) -> History:
    """The versions of the file on the first-parent chain of ``tip`` that the window at ``now`` needs."""
    versions: list[Version] = []
    keys: list[frozenset[str]] = []
    for version in _versions(repository, tip, now):
        try:
            content = Tree.at(repository, version.commit).read(FUNCTIONS_PATH)
        except TreeError:
            note = f"the file at {version.commit[:12]} is not in this repository (a partial clone)"
            return History(tuple(versions), tuple(keys), now, note)
        versions.append(version)
        keys.append(keys_in(content or b""))
        if version.at <= now - WINDOW:
            return History(tuple(versions), tuple(keys), now)
    return History(tuple(versions), tuple(keys), now, _end_note(repository, versions))


def _versions(repository: Repository, tip: GitCommitHash, now: datetime.datetime) -> Iterator[Version]:
    """Versions newest first. Dates are read in batches that double until one is surely old enough."""
    count = _FIRST_BATCH
    while True:
        raw = _log(repository, tip, count)
        versions = _in_order_of_ancestry(raw, now)
        complete = len(raw) < count
        if complete or versions[-1].at <= now - WINDOW:
            yield from versions
            return
        count *= 4


def _log(repository: Repository, tip: GitCommitHash, count: int) -> list[tuple[str, int, bool]]:
    """Commit, committer time and whether it has no parent, of the newest ``count`` first-parent changes of the file."""
    fields = "--format=%H %ct %P"
    lines = repository.text("log", "--first-parent", "-m", fields, f"-n{count}", tip, "--", FUNCTIONS_PATH).splitlines()
    parts = [line.split(" ", 2) for line in filter(None, lines)]
    return [(part[0], int(part[1]), not part[2].strip()) for part in parts]


def _in_order_of_ancestry(raw: list[tuple[str, int, bool]], now: datetime.datetime) -> list[Version]:
    """Lift dates that are earlier than an ancestor's; dates in the future lift nobody."""
    latest = 0
    versions: list[Version] = []
    for commit, seconds, is_beginning in reversed(raw):
        if seconds <= now.timestamp():
            latest = seconds = max(latest, seconds)
        at = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
        versions.append(Version(commit, at, is_beginning))
    return versions[::-1]


def _end_note(repository: Repository, versions: list[Version]) -> str:
    if repository.text("rev-parse", "--is-shallow-repository") == "true":
        return "the clone is shallow and does not reach back two weeks (next: git fetch --shallow-since='3 weeks ago')"
    if versions and versions[-1].is_beginning:
        return f"the history begins with {versions[-1].commit[:12]}, inside the window"
    return "the branch's history of native_functions.yaml does not reach back two weeks"
