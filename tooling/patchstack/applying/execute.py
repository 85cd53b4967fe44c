"""Write a planned stack: objects, then the record, then one compare-and-swap of one branch."""

from __future__ import annotations

import shlex
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from patchstack.applying.check import check_commits
from patchstack.applying.checkout import BranchUse, uses_of
from patchstack.applying.compose import NOTHING, Composer, Quoted
from patchstack.applying.lock import run_lock
from patchstack.applying.move import backup_ref, move_branch
from patchstack.applying.switch import Switch
from patchstack.errors import ManifestError, RefError
from patchstack.messages.model import GhstackTrailers, Message, MessageFinding
from patchstack.messages.rules import check_series, refused
from patchstack.planning import ChangePlan, StackPlan
from patchstack.pulls import PullAction, PullOutcome, StackLinks, link_stack
from patchstack.series import Series
from patchstack.stack.branch import Branch, read_branch
from patchstack.stack.identity import PLACEHOLDER, Signature, read_signature
from patchstack.stack.objects import ObjectWriter
from patchstack.stack.record import Made, Record
from patchstack.stack.refs import read_refs
from patchstack.stack.signing import SignedCommits, unsigned_commit
from patchstack.tree.git import GitCommitHash, GitTreeHash, Repository


@dataclass(frozen=True)
class NewCommit:
    """One commit of the new stack."""

    change: ChangePlan
    hash: GitCommitHash
    tree: GitTreeHash
    message: str


@dataclass(frozen=True)
class Written:
    """What a run left behind.

    Attributes:
        branch: short name.
        tip: where the branch points now; the onto commit when no change became a commit.
        commits: bottom first.
        moved: whether the branch was moved; ``False`` when it pointed there already.
        backup: ref that keeps the old tip with what the new stack does not have; empty when there was no such thing.
        pulls: what will become of each pull request.
        checked: what ``--check`` came to, a sentence; empty where it was not asked for.
        warnings: sentences for the user.
        seconds: wall time of writing.
    """

    branch: str
    tip: GitCommitHash
    commits: tuple[NewCommit, ...] = ()
    moved: bool = False
    backup: str = ""
    pulls: tuple[PullOutcome, ...] = ()
    checked: str = ""
    warnings: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Rehearsal:
    """What a run would do that writes nothing.

    Attributes:
        pulls: what would become of each pull request.
        notes: sentences about the results that the messages would quote.
    """

    pulls: tuple[PullOutcome, ...]
    notes: tuple[str, ...]


def write_stack(
    repository: Repository,
    plan: StackPlan,
    branch_name: str,
    *,
    force: bool = False,
    switch: Switch | None = None,
    identity_may_stand_in: bool = False,
    evidence: Quoted = NOTHING,
    check: bool = False,
) -> Written:
    """Write the commits of ``plan`` and move the branch to the last one.

    Args:
        force: overwrite a branch that holds commits of somebody else; its old tip is kept in a backup ref.
        switch: check the branch out afterwards, in a worktree that may have it checked out already.
        identity_may_stand_in: go on with a placeholder where git has no identity; for reference trees.
        evidence: results and tables that the messages quote.
        check: compile the commits before the branch moves.

    Raises:
        CheckError: a commit does not compile.
        NotCheckedError: whether they compile could not be found out.
        RefError: another run is at work, the branch is in use or holds foreign commits, or it moved meanwhile.
        TreeError: no identity, signing fails, or the store cannot be written.
        ManifestError: a commit message breaks a rule.
        UsageError: the results of ``evidence`` are about other trees.
    """
    started = time.perf_counter()
    checked = ""
    with run_lock(repository) as lock:
        record = Record(repository)
        refs = read_refs(repository, branch_name)
        refs.require_writable()
        branch = read_branch(repository, refs, plan.onto, record.read())
        if not force:
            branch.require_own()
        links = link_stack(repository, plan, branch, record.read())
        onto_date = repository.commit(plan.onto).committed_at
        signature = read_signature(repository, onto_date, may_stand_in=identity_may_stand_in)
        composer = Composer(plan, links.by_change, evidence)
        check_messages(plan.series, composer.messages())  # before anything is written
        with ObjectWriter(repository, lock.scratch) as writer:
            trees = _write_trees(writer, plan)
            runs = composer.runs(repository.commit(plan.onto).tree, trees)
            messages = composer.messages(runs)
            findings = check_messages(plan.series, messages)
            commits = _write_commits(writer, plan, trees, messages, _Signing(repository, branch, signature))
        tip = commits[-1].hash if commits else plan.onto
        if commits and branch.tip != tip:
            _refuse_used(repository, branch, switch)
        if check and commits:
            paths = sorted({path for commit in commits for path in commit.change.files})
            checked = check_commits(repository, plan.onto, tip, paths)
        if switch:
            switch.rehearse(tip, lock.scratch)
        moved, backup = False, ""
        if commits and branch.tip != tip:
            record.append(
                Made(c.hash, c.tree, plan.series.owner(c.change.change.id), c.change.change.id, c.message, plan.onto)
                for c in commits
            )
            backup = backup_ref(branch) if branch.foreign or links.left_out else ""
            move_branch(repository, lock, branch, tip, backup=backup, locks=[switch.lock_name()] if switch else [])
            moved = True
        late = switch.finish(tip) if switch else ""
    anonymous = f"git has no identity here; the author is {PLACEHOLDER.name}" if signature.placeholder else ""
    own = filter(None, [late, anonymous])
    warnings = (*map(str, findings), *_left_behind(links, backup), *composer.untested(runs), *own)
    return Written(
        branch=branch_name,
        tip=tip,
        commits=tuple(commits),
        moved=moved,
        backup=backup,
        pulls=links.fates,
        checked=checked,
        warnings=warnings,
        seconds={"write": time.perf_counter() - started},
    )


def write_unnamed(
    repository: Repository, plan: StackPlan, scratch: Path, trailers: Mapping[str, GhstackTrailers] | None = None
) -> list[NewCommit]:
    """The commits of a plan in the object store alone, bottom first: unsigned, and named by no ref.

    Args:
        scratch: that of the lock which the run holds.
        trailers: change id to ghstack's trailers.

    Raises:
        TreeError: the store cannot be written.
    """
    onto_date = repository.commit(plan.onto).committed_at
    signature = replace(read_signature(repository, onto_date, may_stand_in=True), sign=False)
    signing = _Signing(repository, Branch("", None), signature)
    with ObjectWriter(repository, scratch) as writer:
        trees = _write_trees(writer, plan)
        return _write_commits(writer, plan, trees, Composer(plan, trailers or {}).messages(), signing)


def rehearse_stack(
    repository: Repository,
    plan: StackPlan,
    branch_name: str,
    *,
    force: bool = False,
    identity_may_stand_in: bool = False,
    evidence: Quoted = NOTHING,
) -> Rehearsal:
    """Everything that :func:`write_stack` may refuse before it writes; the arguments are the same.

    What only writing shows is not seen: a signature that fails, a hook that refuses, another run at work, a full disk.

    Raises:
        PatchstackError: as for :func:`write_stack`.
    """
    made = Record(repository).read()
    refs = read_refs(repository, branch_name)
    if plan.commits:
        refs.require_writable()
    branch = read_branch(repository, refs, plan.onto, made)
    if plan.commits and not force:
        branch.require_own()
    links = link_stack(repository, plan, branch, made)
    composer = Composer(plan, links.by_change, evidence)
    if not plan.commits:
        check_messages(plan.series, composer.messages())
        return Rehearsal(links.fates, tuple(composer.untested({})))
    onto = repository.commit(plan.onto)
    signature = read_signature(repository, onto.committed_at, may_stand_in=identity_may_stand_in)
    uses = uses_of(repository, branch.name)
    trees = _trees_of(repository, plan) if uses or evidence.results else []
    runs = composer.runs(onto.tree, trees)
    messages = composer.messages(runs)
    check_messages(plan.series, messages)
    signing = _Signing(repository, branch, signature)
    if uses and _tip_of(repository, plan.onto, trees, messages, signing) != branch.tip:
        _refuse_used(repository, branch, None, may_check_out=False)  # a dry run has no --checkout
    return Rehearsal(links.fates, tuple(composer.untested(runs)))


def _trees_of(repository: Repository, plan: StackPlan) -> list[GitTreeHash]:
    """The trees that the commits of ``plan`` would have, bottom first; the repository's store is not written to."""
    with (
        tempfile.TemporaryDirectory(prefix="apply-stack-") as scratch,
        ObjectWriter(repository, Path(scratch), store=Path(scratch)) as writer,
    ):
        return _write_trees(writer, plan)


def _tip_of(
    repository: Repository,
    onto: GitCommitHash,
    trees: Sequence[GitTreeHash],
    messages: Sequence[Message],
    signing: _Signing,
) -> GitCommitHash | None:
    """The tip that writing the commits would give; ``None`` where one would get a new signature."""
    parent, known, signature = onto, signing.known(), signing.signature
    for index, (tree, message) in enumerate(zip(trees, messages, strict=True)):
        text = message.render()
        made = known.find(tree, parent, text, signature, index)
        if made is None and signature.sign:
            return None
        content = unsigned_commit(tree, parent, text, signature, index)
        parent = made or GitCommitHash(
            repository.git("hash-object", "-t", "commit", "--stdin", stdin=content).decode().strip()
        )
    return parent


def check_messages(series: Series, messages: tuple[Message, ...]) -> tuple[MessageFinding, ...]:
    """The warnings about the messages of a stack.

    Raises:
        ManifestError: a message breaks a rule that git or ghstack would not forgive.
    """
    findings = check_series(messages)
    bad = refused(findings)
    if bad:
        raise ManifestError(
            "a commit message would mislead git or ghstack: " + "; ".join(map(str, bad)), where=str(series.manifest)
        )
    return tuple(finding for finding in findings if finding not in bad)


def _left_behind(links: StackLinks, backup: str) -> Iterator[str]:
    """Warnings about pull requests that need a person."""
    kept = f"; the branch as it was is kept as {backup}, put it back before the next full run" if backup else ""
    for fate in links.fates:
        if fate.becomes is PullAction.LEFT_OUT:
            yield f"--only leaves out '{fate.change}', which has a pull request{kept}"
        elif fate.becomes is PullAction.NOT_APPLICABLE:
            yield f"{fate}; the branch as it was is kept as {backup}" if backup else str(fate)
        elif fate.next_command or (fate.note and fate.becomes is PullAction.NEW):
            yield str(fate)


def _refuse_used(repository: Repository, branch: Branch, switch: Switch | None, *, may_check_out: bool = True) -> None:
    for use in uses_of(repository, branch.name):
        if use.doing == "checked out" and switch and use.worktree == str(repository.root):
            continue
        raise RefError(
            f"the branch is {use.doing} in {use.worktree}; moving it would change that worktree under its owner",
            where=branch.name,
            next_command=f"{_free_again(use, may_check_out=may_check_out)}, or --branch NAME",
        )


def _free_again(use: BranchUse, *, may_check_out: bool) -> str:
    """What makes a worktree let go of the branch, or brings its files along."""
    if use.doing == "checked out":
        there = shlex.quote(use.worktree)
        along = f", or --checkout --repo {there}" if may_check_out else ""
        return f"git -C {there} switch --detach{along}"
    how = "git bisect reset" if use.doing == "being bisected" else "git rebase --continue or git rebase --abort"
    return f"finish that there with {how}"


@dataclass(frozen=True)
class _Signing:
    """Who signs the commits, and what is signed already."""

    repository: Repository
    branch: Branch
    signature: Signature

    def known(self) -> SignedCommits:
        return SignedCommits(self.repository, self.branch.own if self.signature.sign else ())


def _write_trees(writer: ObjectWriter, plan: StackPlan) -> list[GitTreeHash]:
    trees: list[GitTreeHash] = []
    files: dict[str, bytes] = {}
    for change in plan.commits:
        files.update(change.files)
        trees.append(writer.tree(change.tree, files))
    return trees


def _write_commits(
    writer: ObjectWriter,
    plan: StackPlan,
    trees: Sequence[GitTreeHash],
    messages: Sequence[Message],
    signing: _Signing,
) -> list[NewCommit]:
    commits: list[NewCommit] = []
    parent = plan.onto
    known, signature = signing.known(), signing.signature
    for index, (change, tree, message) in enumerate(zip(plan.commits, trees, messages, strict=True)):
        text = message.render()
        made = known.find(tree, parent, text, signature, index)
        parent = made or writer.commit(tree, [parent], text, signature, index)
        commits.append(NewCommit(change, parent, tree, text))
    return commits
