"""The options of every command that runs gates: which commits, which reports, and how."""

from __future__ import annotations

import os

import click

from patchstack.cli import options
from stackproof.cli.gate_options import Command

_OPTIONS = (
    options.repo,
    click.option(
        "--reference",
        metavar="RELEASE",
        help="A reference tree (2.11, 2.13, latest, ...); the series is applied to it first.",
    ),
    options.series,
    click.option("--base", metavar="REF", help="Commit the stack is built on (default: where it leaves main)."),
    click.option("--head", metavar="REF", help="Commit to judge (default: stack/<series>)."),
    click.option("--each-commit", is_flag=True, help="Also judge every commit of the stack on its own."),
    click.option("--require", metavar="GATE,..", help="Exit with 5 if one of these could not be run."),
    click.option("--json", metavar="FILE", help="Write the report as JSON; '-' for standard output."),
    click.option("--junit", metavar="FILE", help="Write the report as JUnit XML."),
    click.option("--html", metavar="FILE", help="Write the report as one self-contained HTML file."),
    click.option(
        "--jobs",
        type=click.IntRange(min=1),
        default=os.cpu_count() or 2,
        show_default="one a processor",
        help="Processes at once.",
    ),
    options.tree_code,
    click.option("--dry-run", is_flag=True, help="Print the commands that gates would run, and end."),
    click.option("--verbose", "-v", is_flag=True, help="Print whole tables and every finding."),
    click.option("--github", is_flag=True, help="Print findings as GitHub workflow annotations."),
)


def common_options(command: Command) -> Command:
    """Give a command these options."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
