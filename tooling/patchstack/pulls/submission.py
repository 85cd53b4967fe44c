"""What ``ghstack`` would do if it were typed now, told without asking anybody.

The steps are those of ghstack 0.18's ``submit``, in its order: everything between HEAD and the remote's default branch
is submitted, oldest first; a commit without a pull request gets one, a commit with one is compared with the refs that
were fetched last. Tests run the real one beside it.
"""

from __future__ import annotations

import datetime
import enum
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from patchstack.errors import ExitCode, RefError, UsageError
from patchstack.messages.model import PullRequest
from patchstack.messages.trailers import linked_by_ghstack
from patchstack.pulls.landed import Landing, find_landings
from patchstack.pulls.remote import RemotePull, RemotePulls, read_remote
from patchstack.pulls.settings import GhstackSettings, read_settings
from patchstack.tree.git import GitCommitHash, Repository
from patchstack.tree.git.model import Commit
from patchstack.tree.git.process import GitCommandError


class Action(enum.Enum):
    """What ghstack says of a commit; the words are its own, but for those of what it leaves out."""

    CREATED = "Created"
    UPDATED = "Updated"
    SKIPPED = "Skipped"
    """The pull request has this tree on this base already."""

    EMPTY = "Empty"
    """The commit changes nothing; ghstack leaves it out with a warning."""

    LANDED = "Landed"
    """The pull request has landed and is closed; ghstack leaves the commit out, and stops where it has changed."""


@dataclass(frozen=True)
class Concern:
    """Something that would go wrong, or that a person should know first.

    Attributes:
        rule: stable name.
        problem: one sentence.
        where: commit or setting, may be empty.
        stops: whether submitting now would go wrong.
        next_command: what to type instead, may be empty.
    """

    rule: str
    problem: str
    where: str = ""
    stops: bool = True
    next_command: str = ""

    def __str__(self) -> str:
        text = f"{self.where}: {self.problem}" if self.where else self.problem
        return f"{text} (next: {self.next_command})" if self.next_command else text


@dataclass(frozen=True)
class SubmittedCommit:
    """One commit that ghstack would take.

    Attributes:
        commit: the commit.
        base: its parent, ``None`` for a first commit.
        position: place in the stack, 1 at the bottom.
        action: see :class:`Action`.
        pull_request: the pull request it is tied to, ``None`` where one would be opened.
        place: ``gh/<user>/<N>``; empty where that cannot be told.
        remote: the pull request as it was fetched last, ``None`` where it was not.
        intended: whether it belongs to the stack; others are below it, and the remote's default branch lacks them.
        on_main: whether it is one of the others because only the local main has it.
        fields_differ: whether title or body are not those of the last submit, which GitHub gets with ``-u`` only.
    """

    commit: Commit
    base: Commit | None
    position: int
    action: Action
    pull_request: PullRequest | None = None
    place: str = ""
    remote: RemotePull | None = None
    intended: bool = True
    on_main: bool = False
    fields_differ: bool = False


@dataclass(frozen=True)
class Submission:
    """The whole submit.

    Attributes:
        repository: where.
        branch: what would be submitted: a branch, or a commit where HEAD is detached.
        settings: ghstack's settings as found, with the remote that was asked for.
        target: ``owner/name`` of the repository that gets the pull requests; empty where that cannot be told.
        default_branch: the branch of the remote that is the boundary.
        commits: bottom of the stack first.
        concerns: in the order of the checks.
        landed: address of a pull request to where it landed, for those of the stack.
        pulls: the pull requests that the remote's refs tell of, by address.
        series: name of the series that the stack was made from; empty where no commit is known.
        fetched: when those refs were fetched last, ``None`` where that is not known.
    """

    repository: Repository
    branch: str
    settings: GhstackSettings
    target: str = ""
    default_branch: str = "main"
    commits: tuple[SubmittedCommit, ...] = ()
    concerns: tuple[Concern, ...] = ()
    landed: Mapping[str, Landing] = field(default_factory=dict)
    pulls: Mapping[str, RemotePull] = field(default_factory=dict)
    fetched: datetime.datetime | None = None
    series: str = ""

    @property
    def exit_code(self) -> ExitCode:
        return ExitCode.CONFLICT if any(concern.stops for concern in self.concerns) else ExitCode.OK

    @property
    def boundary(self) -> str:
        """The ref that ghstack takes for upstream."""
        return f"refs/remotes/{self.settings.remote}/{self.default_branch}"

    @property
    def tip(self) -> str:
        """What to give to git for the branch."""
        return "HEAD" if self.branch == "HEAD" else f"refs/heads/{self.branch}"


def predict(repository: Repository, *, branch: str | None = None, remote: str | None = None) -> Submission:
    """What a submit of the branch would do, without any judgement.

    Args:
        branch: ``None`` for what is checked out.
        remote: name of the remote; ``None`` for the one in ghstack's settings.

    Raises:
        UsageError: there is no such branch.
        RefError: there is no such remote, or its default branch was never fetched: ghstack would stop.
    """
    settings = read_settings(repository.root)
    if remote is not None:
        settings = GhstackSettings(settings.file, settings.username, remote, settings.github)
    base = default_branch(repository)
    outline = Submission(repository, branch or checked_out(repository), settings, default_branch=base)
    if repository.resolve_commit(outline.tip) is None:
        raise UsageError("no such branch", where=f"--branch {outline.branch}", next_command="git branch --list")
    target = _target(repository, settings)
    boundary = repository.resolve_ref(outline.boundary)
    if boundary is None:
        raise RefError(
            "ghstack takes this branch of the remote for upstream, and it was never fetched",
            where=outline.boundary.removeprefix("refs/remotes/"),
            next_command=f"git fetch {settings.remote} {base}",
        )
    commits = _commits(repository, outline.tip, boundary)
    links = [linked_by_ghstack(commit.message, settings.github) for commit in commits]
    urls = {linked.url for linked in links if linked}
    pulls = read_remote(repository, settings.remote, username=settings.username, urls=urls)
    since = commits[0].parents if commits else ()
    landed = {
        url: landing
        for url, landing in find_landings(repository, urls, boundary, since).items()
        if landing.reverted_by is None
    }
    submitted = _submitted(repository, list(zip(commits, links, strict=True)), pulls, landed, settings.username)
    return replace(outline, target=target, commits=submitted, landed=landed, pulls=pulls.by_url, fetched=pulls.fetched)


def default_branch(repository: Repository) -> str:
    """The branch that ghstack takes for upstream: what it remembers from GitHub, else ``main``."""
    try:
        known = json.loads((Path(repository.git_dir) / "ghstack-repo-info.json").read_text())
        return str(known["default_branch"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return "main"


def checked_out(repository: Repository) -> str:
    """The branch that is checked out, or ``HEAD`` where HEAD is detached."""
    try:  # not --short, which says heads/NAME where a tag has that name, too
        return repository.text("symbolic-ref", "--quiet", "HEAD").removeprefix("refs/heads/")
    except GitCommandError:
        return "HEAD"


def _target(repository: Repository, settings: GhstackSettings) -> str:
    """Owner and name of the repository that ghstack finds in the address it would push to."""
    try:
        url = repository.text("remote", "get-url", "--push", settings.remote)
    except GitCommandError:
        raise RefError(
            "there is no such remote, and ghstack pushes to it",
            where=f"remote {settings.remote}",
            next_command="--remote NAME, or ghstack config remote_name NAME",
        ) from None
    found = re.search(rf"{re.escape(settings.github)}[:/]+([^/]+)/(.+?)(?:\.git)?$", url)
    return f"{found[1]}/{found[2]}" if found else ""


def _commits(repository: Repository, tip: str, boundary: GitCommitHash) -> list[Commit]:
    listed = repository.text("rev-list", "--reverse", "--topo-order", tip, f"^{boundary}", "--").split()
    return [repository.commit(hash_) for hash_ in listed]


def _submitted(
    repository: Repository,
    commits: Sequence[tuple[Commit, PullRequest | None]],
    pulls: RemotePulls,
    landed: Collection[str],
    username: str,
) -> tuple[SubmittedCommit, ...]:
    submitted: list[SubmittedCommit] = []
    number = pulls.highest
    for position, (commit, linked) in enumerate(commits, 1):
        base = repository.commit(commit.parents[0]) if commit.parents else None
        remote = pulls.by_url.get(linked.url) if linked else None
        action = Action.LANDED if linked and linked.url in landed else _action(commit, base, linked, remote)
        place = remote.place if remote else ""
        if action is Action.CREATED:
            number += 1
            place = f"gh/{username}/{number}" if username else ""
        submitted.append(SubmittedCommit(commit, base, position, action, linked, place, remote))
    return tuple(submitted)


def _action(commit: Commit, base: Commit | None, linked: PullRequest | None, remote: RemotePull | None) -> Action:
    if base is not None and base.tree == commit.tree:
        return Action.EMPTY
    if linked is None:
        return Action.CREATED
    same = remote is not None and base is not None and (remote.base_tree, remote.head_tree) == (base.tree, commit.tree)
    return Action.SKIPPED if same else Action.UPDATED
