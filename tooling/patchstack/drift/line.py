"""The stretch of upstream history that is searched: main's own line, and on it the commits that touch given files.

Only first parents are followed. Each commit of that line is a state that main was in, which is what a stack is built
on; what was on a side branch before a merge never was.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timezone

from patchstack.applying.onto import resolve_onto
from patchstack.errors import TreeError, UsageError
from patchstack.tree.git import GitCommitHash, Repository

_PULL_REQUEST = re.compile(r"\(#(\d{1,18})\)\s*\Z")


@dataclass(frozen=True)
class UpstreamCommit:
    """A commit of upstream, as a person knows it.

    Attributes:
        hash: its id.
        date: the day it was committed, UTC, ``YYYY-MM-DD``, or ``(no date)`` where that is outside the calendar.
        title: first line of its message.
        pull_request: number of the pull request that the title ends with, as the merge bot writes it; ``None`` without.
    """

    hash: GitCommitHash
    date: str
    title: str
    pull_request: int | None = None

    @classmethod
    def read(cls, repository: Repository, hash_: str) -> UpstreamCommit:
        """Read a commit from the repository."""
        commit = repository.commit(hash_)
        number = _PULL_REQUEST.search(commit.title)
        try:
            day = datetime.fromtimestamp(commit.committed_at, timezone.utc).strftime("%Y-%m-%d")
        except (ValueError, OverflowError, OSError):  # git has no limit to a date, the calendar has
            day = "(no date)"
        return cls(commit.hash, day, commit.title, int(number[1]) if number else None)

    def __str__(self) -> str:
        return f"{self.hash[:12]} {self.date} {self.title}"


@dataclass(frozen=True)
class Line:
    """The first-parent line from one commit to a later one.

    Attributes:
        since: where it begins; not part of the search itself.
        onto: where it ends.
        commits: how many commits lie after ``since``, up to and including ``onto``.
        touching: those that touch the files, oldest first.
        is_whole: whether nothing is known of what came before ``since``.
    """

    since: UpstreamCommit
    onto: UpstreamCommit
    commits: int
    touching: tuple[GitCommitHash, ...]
    is_whole: bool = False

    @property
    def stations(self) -> tuple[GitCommitHash, ...]:
        """``since`` and every commit after which the files are others; the last one has the files of ``onto``."""
        return (self.since.hash, *self.touching)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about what this history cannot tell."""
        notes = []
        if self.is_whole:
            notes.append("--since is the first commit of this history: it does not tell what came before")
        if not self.commits:
            notes.append("--since and --onto are the same commit: there is no history between them")
        elif not self.touching:
            notes.append("no commit between --since and --onto touches the series' files: there is none to name")
        return tuple(notes)


def resolve(repository: Repository, option: str, name: str) -> GitCommitHash:
    """The commit that ``name``, the value of ``option``, stands for; a local branch wins over other names.

    Raises:
        UsageError: there is no such commit.
        TreeError: there is none in this shallow clone, which may have cut it off.
    """
    try:
        return resolve_onto(repository, name).commit
    except UsageError as error:
        error.where = f"{option} {name}"
        if not _is_shallow(repository):
            raise
        raise _cut_off(repository, error.where) from None


def read_line(repository: Repository, since: GitCommitHash, onto: GitCommitHash, paths: Collection[str]) -> Line:
    """The line between two commits.

    Raises:
        TreeError: ``since`` is not on the first-parent line of ``onto``, or a shallow clone has cut the line off.
    """
    span = ["rev-list", "--first-parent", "--reverse", f"{since}..{onto}"]
    commits = repository.text(*span).split()
    if (commits and repository.commit(commits[0]).parents[:1] != (since,)) or (not commits and since != onto):
        raise _not_on_the_line(repository, since, onto, commits)
    touching = repository.text("--literal-pathspecs", *span, "--", *sorted(paths)).split()
    return Line(
        UpstreamCommit.read(repository, since),
        UpstreamCommit.read(repository, onto),
        len(commits),
        tuple(map(GitCommitHash, touching)),
        is_whole=not any(map(repository.resolve_commit, repository.commit(since).parents)),
    )


def _not_on_the_line(
    repository: Repository, since: GitCommitHash, onto: GitCommitHash, commits: list[str]
) -> TreeError:
    """Why there is no line, as far as it can be told."""
    where = f"--since {since[:12]}"
    oldest = repository.commit(commits[0]) if commits else None
    if oldest and oldest.parents and repository.resolve_commit(oldest.parents[0]) is None:
        return _cut_off(repository, where)
    if not commits:
        return TreeError(
            "it is not older than --onto",
            where=where,
            expected=f"an ancestor of {onto[:12]}",
            next_command=f"--since {onto[:12]} --onto {since[:12]}",
        )
    forks_off = repository.text("merge-base", since, onto) if oldest and oldest.parents else ""
    return TreeError(
        "it is not on the line of first parents that leads to --onto (a release branch, or a merged side branch)",
        where=where,
        expected=f"an ancestor of {onto[:12]} on main's own line",
        found=f"a branch that leaves main at {forks_off[:12]}" if forks_off else "no common ancestor",
        next_command=f"--since {forks_off[:12]}" if forks_off else f"{repository.typed} log --first-parent",
    )


def _is_shallow(repository: Repository) -> bool:
    return repository.text("rev-parse", "--is-shallow-repository") == "true"


def _cut_off(repository: Repository, where: str) -> TreeError:
    return TreeError(
        "this clone is shallow and its history ends before --since",
        where=where,
        expected="all commits from --since to --onto",
        next_command=f"{repository.typed} fetch --unshallow (or --shallow-since=DATE, the date of --since)",
    )
