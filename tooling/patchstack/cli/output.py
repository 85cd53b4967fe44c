"""Printing a report on a terminal that may go away, be too small for a letter, or have no colours."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

import click

from patchstack.errors import ExitCode


def print_lines(texts: Iterable[str]) -> None:
    """Print the report; by then the work is done, and a reader that went away (``| head``) changes nothing about it."""
    try:
        for text in texts:
            click.echo(text)
    except BrokenPipeError:
        _discard_output()
    except OSError as error:
        _discard_output()
        click.echo(f"apply-stack: the work is done, but the report cannot be printed: {error}", err=True)
        sys.exit(int(ExitCode.INTERNAL))


def _discard_output() -> None:
    """What is still buffered must not fail again when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def coloured(line: str) -> str:
    """Colours for a terminal; click takes them out where there is none, but does not know https://no-color.org."""
    if os.environ.get("NO_COLOR"):
        return line
    if line.startswith("conflict"):
        return click.style(line, fg="red", bold=True)
    if line.lstrip().startswith("warning:"):
        return click.style(line, fg="yellow")
    stripped = line.lstrip()
    if line.startswith("        ") and stripped.startswith(("+", "-")):
        return click.style(line, fg="green" if stripped.startswith("+") else "red")
    return line
