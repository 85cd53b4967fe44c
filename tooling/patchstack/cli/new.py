"""``apply-stack new``: a series to begin with."""

from __future__ import annotations

from pathlib import Path

import click

from patchstack.cli.output import print_lines
from patchstack.cli.sections import CommandWithExamples


@click.command(
    "new",
    cls=CommandWithExamples,
    examples={
        "apply-stack new ../mine": "a series of one change, in a new folder",
        "apply-stack new series/fix_erfinv": "the same, in a folder of several series",
    },
)
@click.argument("folder", type=click.Path(path_type=Path), metavar="FOLDER")
def new(folder: Path) -> None:
    """Write the smallest series that works, with comments.

    Exit codes: 0 written, 2 usage, 1 internal error.
    """
    from patchstack.capture.new import new as write

    write(folder)
    print_lines([f"{folder} has a series of one change", f"next: apply-stack --series {folder} --onto REF"])
