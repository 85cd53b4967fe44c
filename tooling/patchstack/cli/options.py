"""Options that several commands have, said once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from patchstack.confine.policy import OPTION

_Value = TypeVar("_Value")
_Function = TypeVar("_Function", bound=Callable[..., Any])


def one(context: click.Context, parameter: click.Parameter, values: Sequence[_Value]) -> _Value | None:
    """The value of an option that may be given once; of several, click would take the last without a word.

    Raises:
        UsageError: it is given more often.
    """
    if len(values) > 1:
        raise click.UsageError(f"{parameter.opts[0]} is given {len(values)} times, and {context.info_name} takes one")
    return values[0] if values else None


repo = click.option(
    "--repo", type=click.Path(path_type=Path), help="PyTorch checkout (default: around the current folder)."
)
reference = click.option(
    "--reference",
    metavar="RELEASE",
    help="Use a reference tree (2.11, 2.13, latest, ...); built in the cache on first use.",
)
several_series = click.option(
    "--series",
    multiple=True,
    metavar="NAME",
    help="A series of this distribution, or a folder with series.yaml; several are stacked in this order.",
)
series = click.option(
    "--series",
    multiple=True,
    callback=one,
    metavar="NAME",
    help="A series of this distribution, or a folder with series.yaml.",
)


def series_folder(text: str) -> Callable[[_Function], _Function]:
    """``--series`` of a command that writes the series, with this help."""
    kind = click.Path(path_type=Path)
    return click.option(
        "--series", "folder", required=True, multiple=True, callback=one, type=kind, metavar="FOLDER", help=text
    )


tree_code = click.option(
    OPTION, "tree_code", is_flag=True, flag_value=False, default=True, help="Run no code of the tree or the stack."
)
as_json = click.option("--json", "as_json_", is_flag=True, help="Report as JSON on standard output.")
