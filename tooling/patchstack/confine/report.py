"""What is told of the processes that ran code of a tree: which measures held, and which did not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from patchstack.confine.model import MEASURES


@dataclass(frozen=True)
class Confined:
    """One process, or some that are alike.

    Attributes:
        what: whose code ran, such as ``the tree's torchgen``.
        held: by name of the measure, whether it was found to hold.
    """

    what: str
    held: Mapping[str, bool]

    @property
    def sentence(self) -> str:
        """For a person."""
        lacking = [text for name, text in MEASURES.items() if not self.held.get(name)]
        kept = [text for name, text in MEASURES.items() if self.held.get(name)]
        how = f"confined: {'; '.join(kept)}" if kept else "with the rights of who typed the command"
        text = f"{self.what} ran {how}"
        return f"{text}. NOT prevented: what breaks {'; '.join(f'«{one}»' for one in lacking)}" if lacking else text


_SEEN: list[Confined] = []


def note(one: Confined) -> None:
    """Remember what ran, for the report."""
    if one not in _SEEN:
        _SEEN.append(one)


def take() -> tuple[Confined, ...]:
    """What ran since the last call."""
    found = tuple(_SEEN)
    _SEEN.clear()
    return found
