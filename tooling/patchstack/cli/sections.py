"""Help with examples below, and with the options in sections where there are many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click


class CommandWithExamples(click.Command):
    """A command whose help ends with examples.

    Attributes:
        examples: commands to begin with, and what each does.
    """

    def __init__(self, *args: Any, examples: Mapping[str, str], **more: Any) -> None:
        super().__init__(*args, **more)
        self.examples = examples

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options and the examples."""
        super().format_options(ctx, formatter)
        write_examples(self.examples, formatter)


def write_examples(examples: Mapping[str, str], formatter: click.HelpFormatter) -> None:
    """Write the section."""
    with formatter.section("Examples"):
        formatter.write_dl(list(examples.items()), col_max=formatter.width // 2)


class SectionedGroup(click.Group):
    """A group whose help has its options in sections.

    Attributes:
        sections: the flags of each section by its title; one without flags takes those that no other names.
        examples: commands to begin with, and what each does.
    """

    def __init__(
        self, *args: Any, sections: Mapping[str, Sequence[str]], examples: Mapping[str, str], **more: Any
    ) -> None:
        super().__init__(*args, **more)
        self.sections, self.examples = sections, examples

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections, the subcommands and the examples."""
        named = {flag for flags in self.sections.values() for flag in flags}
        for title, flags in self.sections.items():
            records = []
            for param in self.get_params(ctx):
                here = any(flag in flags for flag in param.opts) if flags else not named & set(param.opts)
                record = param.get_help_record(ctx)
                if here and record:
                    records.append(record)
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)
        self.format_commands(ctx, formatter)
        write_examples(self.examples, formatter)
