"""Options that several commands have, said once."""

from __future__ import annotations

from pathlib import Path

import click

repo = click.option(
    "--repo", type=click.Path(path_type=Path), help="PyTorch checkout (default: around the current folder)."
)
reference = click.option(
    "--reference",
    metavar="RELEASE",
    help="Use a reference tree (2.11, 2.13, latest, ...); built in the cache on first use.",
)
series = click.option("--series", metavar="NAME", help="A series of this distribution, or a folder with series.yaml.")
as_json = click.option("--json", "as_json_", is_flag=True, help="Report as JSON on standard output.")
