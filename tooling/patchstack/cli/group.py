"""What the commands that are groups share: subcommands that are imported on use, and no options before them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar

import click
from click.core import ParameterSource

from patchstack.errors import UsageError


class LazyGroup(click.Group):
    """A group whose subcommands are imported when they are typed, so that none pays for what another needs.

    Attributes:
        lazy: ``module:command`` by the name that is typed.
    """

    lazy: ClassVar[Mapping[str, str]] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names, as the help has them."""
        return sorted({*super().list_commands(ctx), *self.lazy})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The subcommand of a name, ``None`` where there is none."""
        if cmd_name not in self.lazy:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = self.lazy[cmd_name].partition(":")
        found: Any = getattr(import_module(module), attribute)
        return found if isinstance(found, click.Command) else None


def options_given(context: click.Context) -> list[str]:
    """The options of a command that were typed."""
    typed = ParameterSource.COMMANDLINE
    return [p.opts[-1] for p in context.command.params if p.name and context.get_parameter_source(p.name) is typed]


def require_no_options(context: click.Context) -> None:
    """Refuse an option before a subcommand, which has options of its own and would not hear of it.

    Raises:
        UsageError: there is one.
    """
    if ignored := options_given(context):
        raise UsageError(
            f"{ignored[0]} stands before '{context.invoked_subcommand}', which has options of its own",
            next_command=f"{context.info_name} {context.invoked_subcommand} --help",
        )
