"""``apply-stack submit-check``: what ghstack would do, before it is typed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from patchstack.cli import options
from patchstack.cli.apply import current_folder
from patchstack.cli.output import print_lines
from patchstack.cli.sections import CommandWithExamples
from patchstack.pulls.submit_checks import check_submit
from patchstack.pulls.submit_report import as_json, lines
from patchstack.stack.refs import check_name
from patchstack.tree.git import Repository


@click.command(
    "submit-check",
    cls=CommandWithExamples,
    examples={
        "apply-stack submit-check": "what ghstack would do with what is checked out",
        "apply-stack submit-check --branch stack/mine --json": "the same of another branch, as JSON",
    },
)
@options.repo
@click.option("--branch", metavar="NAME", help="Branch to submit (default: what is checked out, as ghstack does).")
@click.option("--remote", metavar="NAME", help="Remote to submit to (default: that of .ghstackrc, else origin).")
@options.as_json
def submit_check(repo: Path | None, branch: str | None, remote: str | None, as_json_: bool) -> None:
    """Say which pull requests `ghstack` would open or update, and what would go wrong; asks nobody, changes nothing.

    Exit codes: 0 ready, 2 usage, 3 something would go wrong, 4 not a usable repository, 1 internal error.
    """
    with Repository.open(repo or current_folder()) as repository:
        if branch is not None:
            check_name(repository, branch)
        submission = check_submit(repository, branch=branch, remote=remote)
        if as_json_:
            print_lines([json.dumps(as_json(submission), indent=2)])
        else:
            print_lines(lines(submission))
    sys.exit(int(submission.exit_code))
