"""Signals as a command has them that is typed at a terminal, however the tests themselves were started."""

from __future__ import annotations

import signal


def as_at_a_terminal() -> None:
    """For ``preexec_fn``: a job in the background, or under ``nohup``, hands down signals that are ignored."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
