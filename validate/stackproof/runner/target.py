"""Which commits of which repository are judged."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from patchstack.cli import Request, run
from patchstack.errors import UsageError
from patchstack.series import Series, load_series
from patchstack.tree.git import GitCommitHash, Repository
from patchstack.tree.git.process import GitCommandError


@dataclass(frozen=True)
class Target:
    """A commit range.

    Attributes:
        repository: where.
        base: the commit the stack is built on.
        head: the commit to judge.
    """

    repository: Repository
    base: GitCommitHash
    head: GitCommitHash


def find_target(
    *, repo: Path | None, reference: str | None, base: str | None, head: str | None, series: str | None
) -> Target:
    """Resolve the command line's range.

    Without ``head`` it is the series' branch ``stack/<series>``; a reference tree gets that branch on the spot. Without
    ``base`` it is where ``head`` leaves ``main`` (or ``origin/main``).

    Raises:
        PatchstackError: no such repository, commit or series, or the series does not apply to the reference tree.
    """
    if repo and reference:
        raise UsageError("--repo and --reference do not go together")
    path = repo or Path.cwd()
    if reference:
        from patchstack.reference import build_reference
        from patchstack.reference.progress import for_this_terminal

        path = build_reference(reference, progress=for_this_terminal()).path
        if head is None:
            _apply(reference, series)
    repository = Repository.open(path)
    head_name = head or f"stack/{load_series(series).name}"
    head_commit = repository.resolve_commit(head_name)
    if head_commit is None:
        raise UsageError("no such commit", where=f"--head {head_name}", next_command="apply-stack --onto main")
    return Target(repository, _base(repository, base, head_commit), head_commit)


@dataclass(frozen=True)
class StackCommit:
    """One commit of a target.

    Attributes:
        commit: its id.
        base: its first parent.
        title: first line of its message.
        ops: the operators that the series' changes up to this commit touch; empty where the titles do not tell.
    """

    commit: GitCommitHash
    base: GitCommitHash
    title: str
    ops: tuple[str, ...] = ()


def stack_commits(target: Target, series: Series) -> tuple[StackCommit, ...]:
    """The commits of a target, bottom of the stack first; of a merge, the first parent's side.

    A commit in the middle has the kernels of the changes up to it and no others, so only those can be proved there.
    """
    repository = target.repository
    names = repository.text("rev-list", "--reverse", "--first-parent", f"{target.base}..{target.head}").split()
    changes = {change.title: change.ops for change in series.changes}
    commits: list[StackCommit] = []
    ops: tuple[str, ...] = ()
    for commit in map(repository.commit, names):
        ops = tuple(dict.fromkeys((*ops, *changes.get(commit.title, ()))))
        parent = commit.parents[0] if commit.parents else target.base
        commits.append(StackCommit(commit.hash, parent, commit.title, ops))
    return tuple(commits)


def _apply(reference: str, series: str | None) -> None:
    """Bring the stack of a reference tree up to date; a tree that already has the series keeps ``main`` as head."""
    report = run(Request(onto="main", reference=reference, series=series, force=True))
    if report.plan.blocked:
        raise UsageError("the series does not apply to this reference tree", next_command="apply-stack --explain")
    if not report.plan.commits:
        raise UsageError(
            "this reference tree already has the series, so there is no stack to judge",
            next_command="--base REF --head REF",
        )


def _base(repository: Repository, base: str | None, head: GitCommitHash) -> GitCommitHash:
    if base is not None:
        commit = repository.resolve_commit(base)
        if commit is None:
            raise UsageError("no such commit", where=f"--base {base}", next_command="git branch -a")
        return commit
    for name in ("refs/heads/main", "refs/remotes/origin/main", "refs/heads/master"):
        main = repository.resolve_ref(name)
        if main is None:
            continue
        try:
            return GitCommitHash(repository.text("merge-base", main, head))
        except GitCommandError:
            continue
    raise UsageError(
        "cannot tell where the stack begins", expected="a branch main or origin/main", next_command="--base REF"
    )
