"""What would go wrong in a submit, or should be known before it: one function for each kind of trouble."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from patchstack.messages.model import Severity
from patchstack.messages.rules import check_text, check_together
from patchstack.messages.trailers import extract, parse_message, same_prose
from patchstack.pulls.submission import Action, Concern, Submission, SubmittedCommit, checked_out, predict
from patchstack.series.load import series_names
from patchstack.stack.identify import Identifier
from patchstack.stack.record import Made, Record
from patchstack.tree.git import Repository
from patchstack.tree.git.model import Commit

_UNFINISHED = {
    "rebase-merge": "git rebase --continue, or --abort",
    "rebase-apply": "git rebase --continue, or git am --abort",
    "MERGE_HEAD": "git merge --continue, or --abort",
    "CHERRY_PICK_HEAD": "git cherry-pick --continue, or --abort",
}


def check_submit(repository: Repository, *, branch: str | None = None, remote: str | None = None) -> Submission:
    """What a submit would do, with everything that stands against it.

    Args:
        branch: ``None`` for what is checked out.
        remote: ``None`` for the remote of ghstack's settings.

    Raises:
        UsageError: there is no such branch.
        RefError: there is no such remote, or its default branch was never fetched: ghstack would stop.
        TreeError: the record of earlier runs cannot be read.
    """
    submission = predict(repository, branch=branch, remote=remote)
    made = Record(repository).read()
    submission = _described(submission, made)
    concerns = [concern for check in _CHECKS for concern in check(submission)]
    return replace(submission, concerns=tuple(concerns))


def _described(submission: Submission, made: Sequence[Made]) -> Submission:
    """The submit with what the record knows: its series, and which commits are below the stack or have other words."""
    identifier = Identifier(made)
    known = [found.made for item in submission.commits if (found := identifier.made_as(item.commit))]
    repository = submission.repository
    bases = [entry.onto for entry in known if entry and repository.resolve_commit(entry.onto)]
    main = repository.resolve_ref(f"refs/heads/{submission.default_branch}")
    only_main: set[str] = set()
    if main and submission.branch != submission.default_branch:
        bases.append(main)
        only_main.update(repository.text("rev-list", main, f"^{submission.boundary}", "--").split())
    below = [f"^{hash_}" for hash_ in dict.fromkeys(bases)]
    listed = repository.text("rev-list", submission.tip, f"^{submission.boundary}", *below, "--").split()
    intended = set(listed)
    commits = tuple(
        replace(
            item,
            intended=item.commit.hash in intended,
            on_main=item.commit.hash in only_main,
            fields_differ=item.remote is not None and not same_prose(item.remote.orig.message, item.commit.message),
        )
        for item in submission.commits
    )
    return replace(submission, commits=commits, series=next((entry.series for entry in known if entry), ""))


def _regenerate(submission: Submission, onto: str) -> str:
    """The command that makes the stack again, on another commit; the branch is checked out."""
    words = ["apply-stack", "--onto", onto, "--checkout"]
    if submission.series and submission.series not in series_names():
        words += ["--series", "FOLDER"]
    elif submission.series and len(series_names()) > 1:
        words += ["--series", submission.series]
    if submission.branch not in ("HEAD", f"stack/{submission.series}"):
        words += ["--branch", submission.branch]
    return shlex.join(words)


def _name(commit: Commit) -> str:
    return f"{commit.hash[:12]} '{commit.title}'"


def _of_head(submission: Submission) -> Iterator[Concern]:
    """ghstack submits what HEAD points to, in the worktree it is started in."""
    repository = submission.repository
    if repository.is_bare:
        problem = "ghstack needs a worktree, and this is a bare repository"
        yield Concern("bare", problem, str(repository.root), next_command="git worktree add PATH " + submission.branch)
        return
    if submission.branch == "HEAD":
        problem = "HEAD is detached: ghstack would rewrite the commits and leave them on no branch"
        yield Concern("detached", problem, stops=False, next_command="git switch -c NAME")
    elif submission.branch != (current := checked_out(repository)):
        problem = f"ghstack submits what is checked out, and that is {current}"
        yield Concern("not-checked-out", problem, submission.branch, next_command=f"git switch {submission.branch}")
    for name, command in _UNFINISHED.items():
        if (repository.git_dir / name).exists():
            problem = "git is in the middle of something, which would go on with the commits as they were"
            yield Concern("unfinished", problem, name, next_command=command)
    if repository.text("status", "--porcelain", "--untracked-files=no"):
        problem = "uncommitted changes stay where they are and are not submitted"
        yield Concern("uncommitted", problem, stops=False, next_command="git status")


def _of_settings(submission: Submission) -> Iterator[Concern]:
    settings = submission.settings
    if not submission.target:
        problem = f"ghstack finds no repository of {settings.github} in the address that it pushes to"
        command = f"git remote set-url {settings.remote} git@{settings.github}:pytorch/pytorch.git"
        yield Concern("no-repository", problem, f"remote {settings.remote}", next_command=command)
    if not settings.username:
        problem = "ghstack's settings name no user, so it will ask, and new branch names cannot be told"
        where = str(settings.file or ".ghstackrc")
        yield Concern("no-user", problem, where, stops=False, next_command="ghstack auth")


def _of_range(submission: Submission) -> Iterator[Concern]:
    if not submission.commits:
        stacks = submission.repository.text("for-each-ref", "--format=%(refname:short)", "refs/heads/stack").split()
        command = f"git switch {stacks[0]}" if stacks else "apply-stack --onto main --checkout"
        yield Concern(
            "no-commits", "there is nothing to submit: ghstack stops", submission.branch, next_command=command
        )
    for item in submission.commits:
        yield from _of_base(submission, item)
        if len(item.commit.parents) != 1:
            problem = f"the commit has {len(item.commit.parents)} parents, and ghstack stops at it"
            yield Concern("merge", problem, _name(item.commit), next_command="git rebase, without merges")
        if item.action is Action.EMPTY:
            problem = "the commit changes nothing: ghstack leaves it out"
            yield Concern("empty", problem, _name(item.commit), stops=False)


def _of_base(submission: Submission, item: SubmittedCommit) -> Iterator[Concern]:
    """A commit that the stack stands on, and that ghstack takes for a part of it."""
    remote, name = f"{submission.settings.remote}/{submission.default_branch}", _name(item.commit)
    user = item.remote.user if item.remote else ""
    if user and user != submission.settings.username and (submission.settings.username or not item.intended):
        whose = f"the stack stands on the pull request of {user}, {_url(item)} ({item.place})"
        if item.action is Action.SKIPPED:
            problem = f"{whose}; the commit is as {user} submitted it, and ghstack leaves it alone"
            yield Concern("other-user", problem, name, stops=False)
        elif item.action is not Action.LANDED:
            command = _regenerate(submission, f"{submission.settings.remote}/{item.place}/orig")
            problem = f"{whose}; the commit is not as {user} submitted it, and ghstack would push it to {item.place}"
            yield Concern("other-user", problem, name, next_command=command)
    elif item.on_main and not item.intended:
        problem = (
            f"only the local {submission.default_branch} has this commit, and ghstack would open a pull request for it"
        )
        yield Concern("local-main", problem, name, next_command=_regenerate(submission, remote))
    elif not item.intended:
        author = submission.repository.text("log", "-1", "--no-show-signature", "--format=%an", item.commit.hash)
        does = f"update {_url(item)}" if item.pull_request else "open a pull request for it"
        problem = f"the stack was built on this commit of {author}, which {remote} lacks, and ghstack would {does}"
        yield Concern("below-the-stack", problem, name, next_command=_regenerate(submission, remote))


def _of_messages(submission: Submission) -> Iterator[Concern]:
    texts = [item.commit.message for item in submission.commits]
    for item in submission.commits:
        for finding in check_text(item.commit.message):
            stops = finding.severity is Severity.REFUSE
            yield Concern(f"message:{finding.rule}", str(finding), item.commit.hash[:12], stops)
    for finding in check_together([parse_message(text) for text in texts]):
        yield Concern(f"message:{finding.rule}", str(finding))


def _of_pull_requests(submission: Submission) -> Iterator[Concern]:
    for item in submission.commits:
        if item.pull_request is not None:
            yield from _of_one(submission, item)
    linked = sorted((i for i in submission.commits if i.pull_request), key=lambda i: _url(i))
    for url, items in groupby(linked, key=_url):
        if len(names := [_name(item.commit) for item in items]) > 1:
            yield Concern("one-pull-request", f"{' and '.join(names)} are tied to it, and ghstack stops", url)


def _url(item: SubmittedCommit) -> str:
    return item.pull_request.url if item.pull_request else ""


def _of_one(submission: Submission, item: SubmittedCommit) -> Iterator[Concern]:
    url, name = _url(item), _name(item.commit)
    assert item.pull_request is not None
    if submission.target and item.pull_request.repository != submission.target:
        problem = f"the commit is tied to {url}, and ghstack pushes to {submission.target}"
        yield Concern("other-repository", problem, name, next_command="ghstack unlink " + item.commit.hash[:12])
    if item.action is Action.LANDED:
        yield _landed(submission, item)
        return
    remote = item.remote
    if remote is None:
        problem = f"cannot tell whether {url} was amended elsewhere: its refs were never fetched"
        command = f"git fetch {submission.settings.remote}"
        yield Concern("not-fetched", problem, name, stops=False, next_command=command)
        return
    here, there = extract(item.commit.message).source_id, remote.trailers.source_id
    if here is not None and there is not None and here != there:
        problem = f"{url} was amended elsewhere: ghstack refuses to push (it has {there[:12]}, the commit {here[:12]})"
        yield Concern("stale-source-id", problem, name, next_command=f"ghstack checkout {url}")
    elif remote.edited_head:
        problem = f"somebody pushed to the head of {url}; ghstack does not notice and would undo it"
        command = f"git diff {there} {submission.settings.remote}/{remote.place}/head"
        yield Concern("edited-head", problem, name, next_command=command)
    if item.fields_differ and item.action is not Action.EMPTY:
        problem = f"title or body of {url} stay as they are on GitHub without -u"
        yield Concern("fields", problem, name, stops=False, next_command="ghstack submit -u")


def _landed(submission: Submission, item: SubmittedCommit) -> Concern:
    known = item.remote.trailers.source_id if item.remote else None
    changed = known != item.commit.tree
    does = "ghstack stops, because the commit has changed since" if changed else "ghstack leaves the commit out"
    command = _regenerate(submission, f"{submission.settings.remote}/{submission.default_branch}")
    return Concern("landed", f"{submission.landed[_url(item)]}: {does}", _url(item), changed, command)


def _of_twins(submission: Submission) -> Iterator[Concern]:
    """A new pull request under the title of one that the user has already is most often a duplicate."""
    known = {pull.orig.title: pull for pull in submission.pulls.values()}
    linked = {_url(item) for item in submission.commits}
    for item in submission.commits:
        twin = known.get(item.commit.title)
        if item.action is Action.CREATED and twin is not None and twin.url not in linked:
            problem = f"{twin.url} has this title already, and ghstack would open a second one"
            command = f"ghstack checkout {twin.url}, then apply-stack"
            yield Concern("duplicate", problem, _name(item.commit), next_command=command)


_Check = Callable[[Submission], Iterable[Concern]]
_CHECKS: tuple[_Check, ...] = (_of_head, _of_settings, _of_range, _of_messages, _of_pull_requests, _of_twins)
