"""``apply-stack capture``: commits become a series."""

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
    "capture",
    cls=CommandWithExamples,
    examples={
        "apply-stack capture main..HEAD --series ../mine": "each commit of this branch becomes a change",
        "apply-stack capture main..HEAD --series ../mine --dry-run": "which edits they would become, and why",
    },
)
@click.argument("commits", metavar="BASE..HEAD")
@options.series_folder("Folder of the series: a new one, or one that is extended.")
@click.option("--name", default="", metavar="NAME", help="Id of the change (default: its op, or words of the title).")
@options.repo
@options.reference
@click.option("--dry-run", is_flag=True, help="Choose and check; write nothing.")
@options.tree_code
@options.as_json
def capture(
    commits: str,
    folder: Path,
    name: str,
    repo: Path | None,
    reference: str | None,
    dry_run: bool,
    tree_code: bool,
    as_json_: bool,
) -> None:
    """Make each commit of BASE..HEAD a change of a series, whose edits give its very bytes again.

    Exit codes: 0 captured, 2 usage or manifest, 3 a commit holds what no edit can say (nothing written), 4 not a usable
    tree, 1 internal error.
    """
    from patchstack.capture import report
    from patchstack.capture.run import capture as run

    path, notes = locate(repo, reference)
    with allowed(allowed=tree_code), as_reference(path, reference), Repository.open(path) as repository:
        found = run(repository, commits, folder, name=name, dry_run=dry_run)
    if as_json_:
        print_lines([json.dumps({**report.as_json(found), "notes": list(notes)}, indent=2)])
    else:
        print_lines([*(f"note: {note}" for note in notes), *report.lines(found)])
