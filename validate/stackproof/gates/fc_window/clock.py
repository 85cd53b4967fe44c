"""The two-week window as arithmetic on moments.

Rules, stated once: all moments are UTC; a schema *lands* at the committer time of the first-parent commit that
brought it to the branch; the window is over **at** landing plus fourteen times 24 hours (inclusive: that very second
may use it). A calendar day given as "today" stands for its first second, so that a day is clear only if all of it is.
"""

from __future__ import annotations

import datetime
import enum
from dataclasses import dataclass

WINDOW = datetime.timedelta(days=14)


class LandingState(enum.Enum):
    """What is known about when something landed."""

    KNOWN = "known"
    BEFORE_HISTORY = "unknown"
    NOT_LANDED = "not landed"
    FUTURE = "future"


@dataclass(frozen=True)
class Landing:
    """When a schema line came to the branch.

    Attributes:
        state: whether ``at`` can be relied on.
        at: the moment in UTC; ``None`` when unknown or not landed yet.
        commit: the commit that brought it, empty when unknown.
        note: more for the reader: why it is unknown, that it was reverted and came back.
    """

    state: LandingState
    at: datetime.datetime | None = None
    commit: str = ""
    note: str = ""

    @property
    def open_from(self) -> datetime.datetime | None:
        """The first moment at which it may be used, in UTC."""
        return None if self.at is None else self.at + WINDOW

    @property
    def first_day(self) -> datetime.date | None:
        """The first UTC day all of which is after the window."""
        moment = self.open_from
        if moment is None:
            return None
        whole = moment.time() == datetime.time(0)
        return moment.date() if whole else moment.date() + datetime.timedelta(days=1)

    def is_open(self, now: datetime.datetime) -> bool:
        """Whether it may be used at ``now``; never when the landing is unknown, to come, or dated in the future."""
        return self.state is LandingState.KNOWN and self.open_from is not None and now >= self.open_from


def moment(today: datetime.date | datetime.datetime | None) -> datetime.datetime:
    """The moment to judge at: now, the first second of a day in UTC, or a moment (UTC unless it says otherwise)."""
    if today is None:
        return datetime.datetime.now(datetime.timezone.utc)
    if isinstance(today, datetime.datetime):
        aware = today if today.tzinfo else today.replace(tzinfo=datetime.timezone.utc)
        return aware.astimezone(datetime.timezone.utc)
    return datetime.datetime.combine(today, datetime.time(0), datetime.timezone.utc)
