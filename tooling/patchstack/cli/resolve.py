"""``apply-stack resolve``: go on with a conflict that was resolved by hand, or give up."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from patchstack.applying.onto import Onto
from patchstack.cli import options
from patchstack.cli.apply import as_reference, locate
from patchstack.cli.output import coloured, print_lines
from patchstack.cli.report import RunReport, as_json, lines
from patchstack.cli.sections import CommandWithExamples
from patchstack.confine.policy import tree_code as allowed
from patchstack.errors import TreeError, UsageError
from patchstack.resolve import run
from patchstack.resolve.model import Aim
from patchstack.resolve.state import StateFile
from patchstack.tree.git import GitCommitHash, Repository


@click.command(
    "resolve",
    cls=CommandWithExamples,
    examples={
        "apply-stack resolve --continue": "take what was edited, and go on",
        "apply-stack resolve --abort": "give up; nothing has changed",
    },
)
@click.option("--continue", "goes_on", is_flag=True, help="Take what the worktree holds, and go on.")
@click.option("--abort", "gives_up", is_flag=True, help="Take the worktree away; series and branch stay as they are.")
@options.repo
@options.reference
@options.tree_code
@options.as_json
def resolve(
    goes_on: bool, gives_up: bool, repo: Path | None, reference: str | None, tree_code: bool, as_json_: bool
) -> None:
    """Go on with what apply-stack --resolve began: the next conflict, or the branch and a series that knows the answer.

    Exit codes: 0 the branch is written (--continue) or nothing is left (--abort), 3 there is more to resolve or nothing
    was edited, 2 usage or manifest, 4 not a usable tree, 1 internal error.
    """
    if goes_on == gives_up:
        raise UsageError("what is to become of it?", expected="one of --continue and --abort")
    path, notes = locate(repo, reference)
    path = _outside(path)
    with allowed(allowed=tree_code), as_reference(path, reference), Repository.open(path) as repository:
        if gives_up:
            state = run.abort(repository)
            where = state.worktree if state else "the state, which was damaged"
            facts = {"aborted": True, "worktree": state.worktree if state else None}
            said = f"given up; {where} is taken away, the branch and the series are as they were"
            print_lines([json.dumps(facts, indent=2) if as_json_ else said])
            return
        aim = StateFile(repository).require().aim
        report = _report(repository, aim, run.go_on(repository), notes)
        print_lines([json.dumps(as_json(report), indent=2)] if as_json_ else map(coloured, lines(report)))
    sys.exit(int(report.exit_code))


def _outside(path: Path) -> Path:
    """The checkout, where the command was typed in the worktree of the resolve, which is about to go away."""
    with Repository.open(path) as repository:
        try:
            state = StateFile(repository).read()
        except TreeError:  # said, or cleared away, by what comes next
            return path
        if state is None or repository.root.resolve() != state.folder.resolve():
            return path
        first = repository.text("worktree", "list", "--porcelain").partition("\n")[0]
        return Path(first.removeprefix("worktree "))


def _report(repository: Repository, aim: Aim, step: run.Step, notes: tuple[str, ...]) -> RunReport:
    onto = Onto(aim.onto_name, GitCommitHash(aim.onto), is_branch=False)
    return RunReport(
        repository,
        onto,
        aim.branch,
        step.plan,
        written=step.written,
        pulls=step.written.pulls if step.written else (),
        opened=step.state,
        learned=step.learned,
        left=step.left,
        notes=notes,
    )
