"""What is known of the gate "fc-window" before it is imported, and its options."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from stackproof.gates.common.options import option
from stackproof.gates.spec import Spec


@dataclass(frozen=True)
class Options:
    """When schemas landed, and what day it is.

    Attributes:
        onto: the branch whose history says when a schema landed; the base commit otherwise.
        today: the moment to judge at, UTC; now otherwise.
    """

    onto: str = option("", "Branch whose history dates new schemas (default: the base commit).", "REF")
    today: datetime.date | None = option(  # noqa: RUF009  (it makes a field)
        None, "Judge the window as of this moment, UTC: 2026-11-30, 2026-11-30T14:05.", "DATE", kind=datetime.datetime
    )


SPEC = Spec(
    __name__,
    "fc-window",
    "schema changes: forward and backward compatibility, and the two-week window",
    Options,
    limits=(
        "the window is PyTorch's policy, not its code; code that waited for it has broken older runtimes all the same",
        "a use through getattr, a string or generated code is not seen; a method's receiver is taken to be a tensor",
    ),
    runs="the tree's torchgen, for entries that the installed torch cannot parse",
    can_do_without=True,
)
