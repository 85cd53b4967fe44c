"""``apply-stack refresh``: amended commits go back into the series."""

from __future__ import annotations

import json
from pathlib import Path

import click

from patchstack.cli import options
from patchstack.cli.apply import as_reference, locate
from patchstack.cli.output import print_lines
from patchstack.cli.sections import CommandWithExamples
from patchstack.confine.policy import tree_code as allowed
from patchstack.tree.git import Repository


@click.command(
    "refresh",
    cls=CommandWithExamples,
    examples={
        "apply-stack refresh --series ../mine --dry-run": "what amended commits change in the series",
        "apply-stack refresh --series ../mine": "take them into it",
    },
)
@options.series_folder("Folder of the series.")
@click.option("--from", "branch", default="", metavar="BRANCH", help="Where the commits are (default: stack/<series>).")
@click.option("--base", default="", metavar="REF", help="The commit below them (default: what earlier runs recorded).")
@click.option("--match", "told", multiple=True, metavar="COMMIT=CHANGE", help="Say which change a commit is.")
@options.repo
@options.reference
@click.option("--dry-run", is_flag=True, help="Show the diff of the series; write nothing.")
@options.tree_code
@options.as_json
def refresh(
    folder: Path,
    branch: str,
    base: str,
    told: tuple[str, ...],
    repo: Path | None,
    reference: str | None,
    dry_run: bool,
    tree_code: bool,
    as_json_: bool,
) -> None:
    """Rewrite a series so that it gives the commits of a branch, amended, added, dropped or reordered as they are.

    Exit codes: 0 the series gives them, 2 usage or manifest, 3 commits cannot be told apart or captured, or the series
    was edited too (nothing written), 4 not a usable tree, 1 internal error.
    """
    from patchstack.refresh import run

    path, notes = locate(repo, reference)
    pairs = dict(one.partition("=")[::2] for one in told)
    with allowed(allowed=tree_code), as_reference(path, reference), Repository.open(path) as repository:
        found = run.refresh(repository, folder, branch=branch, base=base, told=pairs, dry_run=dry_run)
    if as_json_:
        print_lines([json.dumps({**run.as_json(found), "notes": list(notes)}, indent=2)])
    else:
        print_lines([*(f"note: {note}" for note in notes), *run.lines(found)])
