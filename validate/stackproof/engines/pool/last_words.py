"""What a worker said last, for when it does not come back.

It is written into a file that was open before the worker was confined, and that the process which started it reads.
"""

from __future__ import annotations

import os

_MOST_BYTES = 4096
_open: list[int] = []


def speak_into(descriptor: int) -> None:
    """From now on, :func:`say` writes there."""
    _open[:] = [descriptor]


def say(text: str) -> None:
    """Replace what was said before; nothing happens in a process that is no worker.

    Args:
        text: one line.
    """
    if _open:
        os.pwrite(_open[0], f"{text}\n".encode()[-_MOST_BYTES:], 0)


def said(descriptor: int) -> str:
    """The text that was written last."""
    return os.pread(descriptor, _MOST_BYTES, 0).partition(b"\n")[0].decode(errors="replace")
