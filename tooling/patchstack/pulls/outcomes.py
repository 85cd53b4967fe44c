"""What will become of each pull request when the regenerated stack is submitted."""

from __future__ import annotations

import enum
from dataclasses import asdict, dataclass
from typing import Any

from patchstack.messages.model import PullRequest


class PullAction(enum.Enum):
    """What will happen to a pull request."""

    UPDATED = "updated"
    """The next submit updates it."""

    NEW = "new"
    """The next submit opens it."""

    LANDED = "landed"
    """Upstream has it; it drops out of the stack."""

    LEFT_OPEN = "left open"
    """Nothing of the stack belongs to it any more; nobody closes it but a person."""

    LEFT_OUT = "left out"
    """Its change is in the series and not in this run."""

    NOT_APPLICABLE = "not applicable"
    """Its change is for other trees than this one; it stays open."""


@dataclass(frozen=True)
class PullOutcome:
    """One pull request, or a change that will get one.

    Attributes:
        change: id of the change, empty where none of the series answers to it.
        title: title of the change, or of the old commit.
        becomes: see :class:`PullAction`.
        pull_request: the pull request, ``None`` for one that does not exist yet.
        position: place in the new stack, 1 at the bottom, 0 where it has none.
        earlier_position: the same in the stack that was submitted, 0 where it had none or that is not known.
        moved: whether it changes its place among those that stay.
        source: where its trailers were found, in words; empty where there are none.
        evidence: why they belong to the change, in words.
        note: one more fact, may be empty.
        next_command: what a person has to type, may be empty.
    """

    change: str
    title: str
    becomes: PullAction
    pull_request: PullRequest | None = None
    position: int = 0
    earlier_position: int = 0
    moved: bool = False
    source: str = ""
    evidence: str = ""
    note: str = ""
    next_command: str = ""

    def as_json(self) -> dict[str, Any]:
        """The same as JSON-serialisable data."""
        number = self.pull_request.number if self.pull_request else None
        url = self.pull_request.url if self.pull_request else None
        return {**asdict(self), "becomes": self.becomes.value, "pull_request": url, "number": number}

    def __str__(self) -> str:
        name = f"#{self.pull_request.number}" if self.pull_request else "a pull request"
        text = f"{name} '{self.title}': {self.becomes.value}"
        if self.moved:
            text += f", moves from position {self.earlier_position} to {self.position}"
        if self.note:
            text += f"; {self.note}"
        return f"{text} (next: {self.next_command})" if self.next_command else text


def close_command(pull_request: PullRequest) -> str:
    """What closes a pull request of ghstack's."""
    return f"ghstack action --close {pull_request.url}"
