"""``apply-stack --onto REF``: from a request to a report."""

from __future__ import annotations

import contextlib
import shlex
import time
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path

from patchstack.applying.compose import Quoted, read_quoted
from patchstack.applying.execute import rehearse_stack, write_stack
from patchstack.applying.onto import Onto, resolve_onto
from patchstack.applying.switch import Switch
from patchstack.cli.report import RunReport
from patchstack.cli.request import Request
from patchstack.confine import take
from patchstack.confine.policy import tree_code
from patchstack.drift.behind import commits_behind
from patchstack.errors import ChoiceError, TreeError, UsageError
from patchstack.planning import StackPlan, plan_stack
from patchstack.planning.advice import advice_for
from patchstack.planning.memo import Memory
from patchstack.resolve.model import Aim, State
from patchstack.series import Series, load_series, stacked
from patchstack.stack.refs import check_name
from patchstack.tree.git import Repository
from patchstack.tree.git.process import GitCommandError


def run(request: Request) -> RunReport:
    """Do what the command line asks for.

    Raises:
        PatchstackError: with the exit code that belongs to it.
    """
    started = time.perf_counter()
    if request.dry_run and (request.format_patch or request.checkout or request.check):
        raise UsageError("--dry-run writes nothing, so it does not go with --format-patch, --checkout or --check")
    _require_resolvable(request)
    series = stacked([load_series(name) for name in (request.series, *request.more_series)])
    if request.format_patch:
        from patchstack.messages.mailbox import require_own_folder

        require_own_folder(request.format_patch)
    path, notes = locate(request.repo, request.reference)
    take()
    may_run = tree_code(allowed=request.tree_code)
    with may_run, as_reference(path, request.reference), Repository.open(path) as repository:
        branch = check_name(repository, f"stack/{series.name}" if request.branch is None else request.branch)
        onto = resolve_onto(repository, request.onto)
        if onto.is_branch and onto.name == branch:
            raise UsageError("the branch to write is the one to build on", where="--branch", found=branch)
        switch = Switch(repository, branch) if request.checkout else None
        if switch:
            switch.require_possible()
        memory = Memory()

        def planned(only: Collection[str], replaced: Collection[str]) -> StackPlan:
            return plan_stack(repository, series, onto.commit, only=only, replace=replaced, memory=memory)

        try:
            plan = planned(request.only, request.replace)
        except ChoiceError as error:
            error.next_command = request.command(only=error.only, replace=error.replace)
            raise
        evidence = read_quoted(plan, request.results, request.bench)
        report = RunReport(repository, onto, branch, plan, dry_run=request.dry_run, notes=notes)
        if plan.blocked:
            advice = advice_for(plan, request.only, request.replace, planned)
            next_commands = tuple(request.command(only=way.only, replace=way.replace) for way in advice)
            history = commits_behind(repository, series, plan)
            report = replace(report, advice=advice, next_commands=next_commands, history=history)
            if request.resolve:
                report = replace(report, opened=_opened(request, repository, series, onto, branch, plan))
        if not plan.blocked and plan.commits and not request.dry_run:
            report = _write(request, report, switch, evidence)
        elif not plan.blocked:
            rehearsal = rehearse_stack(
                repository,
                plan,
                branch,
                force=request.force,
                identity_may_stand_in=request.reference is not None,
                evidence=evidence,
            )
            report = replace(report, pulls=rehearsal.pulls, notes=(*notes, *rehearsal.notes))
        report = replace(report, notes=(*report.notes, *(one.sentence for one in take())))
        seconds = {**plan.seconds, **(report.written.seconds if report.written else {})}
        return replace(report, seconds={**seconds, "total": time.perf_counter() - started})


def locate(repo: Path | None, reference: str | None) -> tuple[Path, tuple[str, ...]]:
    """The folder of the checkout that the options name, and what is to be said about it.

    Args:
        repo: the value of ``--repo``; without it, the checkout around the current folder.
        reference: the value of ``--reference``.

    Raises:
        UsageError: both are given.
        TreeError: the reference tree cannot be built, or there is no current folder.
    """
    if repo and reference:
        raise UsageError("--repo and --reference do not go together")
    if not reference:
        return repo or current_folder(), ()
    from patchstack.reference import build_reference
    from patchstack.reference.progress import for_this_terminal

    tree = build_reference(reference, progress=for_this_terminal())
    return tree.path, tree.notes


@contextlib.contextmanager
def as_reference(path: Path, reference: str | None) -> Iterator[None]:
    """While active, an error about a damaged repository says how a reference tree, which is ours, is made again.

    Args:
        path: of the repository.
        reference: the value of ``--reference``; without it, errors stay as they are.

    Raises:
        TreeError: git failed there, or what it holds is damaged.
    """
    again = f"rm -rf {shlex.quote(str(path))}: the next run with --reference {reference} builds it again"
    try:
        yield
    except TreeError as error:
        if reference and "fsck" in error.next_command:
            error.next_command = again
        raise
    except GitCommandError as error:
        if not reference:
            raise
        raise TreeError("a git command failed in the reference tree", found=str(error), next_command=again) from None


def current_folder() -> Path:
    """Where the command was typed.

    Raises:
        TreeError: that folder is gone.
    """
    try:
        return Path.cwd()
    except FileNotFoundError:
        problem = "the current folder does not exist any more"
        raise TreeError(problem, next_command="cd to a checkout, or --repo PATH") from None


def _require_resolvable(request: Request) -> None:
    """Refuse what a resolve, which ends in another run, could not carry to its end.

    Raises:
        UsageError: there is such an option.
    """
    given = {
        "--dry-run": request.dry_run,
        "--checkout": request.checkout,
        "--format-patch": request.format_patch,
        "--results": request.results,
        "--bench": request.bench,
        "several --series": request.more_series,
    }
    found = [option for option, value in given.items() if value]
    if request.resolve and found:
        raise UsageError(f"--resolve does not go with {' or '.join(found)}", next_command="run again with them later")


def _opened(
    request: Request, repository: Repository, series: Series, onto: Onto, branch: str, plan: StackPlan
) -> State | None:
    """A worktree in which the conflicts of a plan can be resolved."""
    from patchstack.resolve.run import start

    folder = str(series.manifest.parent.resolve())
    wanted = (request.only, request.replace, request.force, request.check)
    return start(repository, Aim(folder, onto.commit, onto.name, branch, *wanted), plan).state


def _write(request: Request, report: RunReport, switch: Switch | None, evidence: Quoted) -> RunReport:
    repository = report.repository
    written = write_stack(
        repository,
        report.plan,
        report.branch,
        force=request.force,
        switch=switch,
        identity_may_stand_in=request.reference is not None,
        evidence=evidence,
        check=request.check,
    )
    report = replace(report, written=written, pulls=written.pulls)
    if request.format_patch:
        from patchstack.messages.mailbox import format_patches

        files = format_patches(repository, report.plan.onto, written.tip, request.format_patch)
        report = replace(report, patches=tuple(str(file) for file in files))
    return report
