"""Two listeners for a build: one for a person at a terminal, one for everything else."""

from __future__ import annotations

import sys

from patchstack.reference.model import Progress


def quiet(step: str, /) -> None:
    """Say nothing."""


def on_standard_error(step: str, /) -> None:
    """One line per step on standard error, so that standard output stays parseable."""
    print(step, file=sys.stderr, flush=True)


def for_this_terminal() -> Progress:
    """Lines where a person is watching, nothing in a pipe or in CI."""
    return on_standard_error if sys.stderr.isatty() else quiet
