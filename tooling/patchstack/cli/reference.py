"""``apply-stack reference``: the same as ``python -m patchstack.reference``."""

from __future__ import annotations

import sys

import click

from patchstack.reference.__main__ import main


@click.command("reference", context_settings={"ignore_unknown_options": True}, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="RELEASE...")
def reference(arguments: tuple[str, ...]) -> None:
    """Build reference trees (2.11, 2.13, latest, ...) and print where they are."""
    sys.exit(main(arguments, program="apply-stack reference"))
