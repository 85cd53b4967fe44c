"""``apply-stack new``: a series to begin with."""

from __future__ import annotations

from pathlib import Path

import click

from patchstack.cli.output import print_lines


@click.command("new")
@click.argument("folder", type=click.Path(path_type=Path), metavar="FOLDER")
def new(folder: Path) -> None:
    """Write the smallest series that works, with comments.

    Exit codes: 0 written, 2 usage, 1 internal error.
    """
    from patchstack.capture.new import new as write

    write(folder)
    print_lines([f"{folder} has a series of one change", f"next: apply-stack --series {folder} --onto REF"])
