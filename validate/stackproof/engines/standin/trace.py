"""What a worker is doing, in its last words: they can be read when it has died."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from stackproof.engines.pool.last_words import say
from stackproof.engines.pool.tasks import Died


@dataclass(frozen=True)
class Doing:
    """Where a worker is.

    Attributes:
        part: of its task, as the task names it; empty for a task without parts.
        kernel: host name of the kernel that it launched last in this part.
    """

    part: str = ""
    kernel: str = ""


class Trace:
    """Says what this process does."""

    def __init__(self) -> None:
        self._doing = Doing()

    def begin(self, part: str) -> None:
        """A part of the task begins."""
        self._say(Doing(part))

    def launch(self, kernel: str) -> None:
        """A kernel is launched."""
        self._say(Doing(self._doing.part, kernel))

    def _say(self, doing: Doing) -> None:
        if doing != self._doing:
            self._doing = doing
            say(json.dumps(asdict(doing)))


def last_of(died: Died) -> Doing:
    """What it did last; nothing where that is not known."""
    try:
        found = json.loads(died.last_words)
        return Doing(str(found["part"]), str(found["kernel"]))
    except (ValueError, TypeError, KeyError):
        return Doing()
