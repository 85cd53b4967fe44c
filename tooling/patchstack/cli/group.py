"""What the commands that are groups share: with a subcommand, their own options would go unheard."""

from __future__ import annotations

import click
from click.core import ParameterSource

from patchstack.errors import UsageError


def require_no_options(context: click.Context) -> None:
    """Refuse an option before a subcommand, which has options of its own and would not hear of it.

    Raises:
        UsageError: there is one.
    """
    given = ParameterSource.COMMANDLINE
    ignored = [p.opts[-1] for p in context.command.params if p.name and context.get_parameter_source(p.name) is given]
    if ignored:
        raise UsageError(
            f"{ignored[0]} stands before '{context.invoked_subcommand}', which has options of its own",
            next_command=f"{context.info_name} {context.invoked_subcommand} --help",
        )
