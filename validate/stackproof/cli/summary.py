"""``validate-stack summary``: several reports as one Markdown table."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from patchstack.cli.sections import CommandWithExamples
from stackproof.report.summary import markdown, read_report


@click.command(
    "summary",
    cls=CommandWithExamples,
    examples={
        "validate-stack summary linux.json macos.json": "one table of two runs",
        "validate-stack summary reports/*.json": "of all runs of a workflow",
    },
)
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
def summary(files: Sequence[Path]) -> None:
    """Print the reports of several runs (FILES, each written by --json) as one Markdown table.

    Exit codes: 0 none failed, 1 one failed or is unproved, 2 a file is no report.
    """
    reports = {file.stem: read_report(file) for file in files}
    click.echo(markdown(reports), nl=False)
    sys.exit(1 if {one["verdict"] for one in reports.values()} & {"failed", "unproved"} else 0)
