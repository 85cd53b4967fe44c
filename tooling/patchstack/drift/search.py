"""Find since when something has been as it is now, along a line of trees that are dear to look at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Found:
    """Where the present value began.

    Attributes:
        index: the first place of the run of places that have the present value, 0 where all have it; the place before
            it has another.
        exact: whether every place after it was looked at. Where not, the value may have gone and come back since.
    """

    index: int
    exact: bool


def first_of_present(count: int, value: Callable[[int], str], affordable: Callable[[int], bool]) -> Found:
    """Since which place the value has been what it is at the last place.

    Bisection finds a place where the value became the present one in few looks, but there may be several: broken,
    mended and broken again looks the same at both ends. So what lies after that place is looked at too, newest first,
    as far as the budget allows; the first other value on that way ends the search.

    Args:
        count: number of places.
        value: the value at a place; asking twice is free.
        affordable: whether a place may be looked at beyond what bisection needs.
    """
    last = count - 1
    present = value(last)
    low, high = 0, last if value(0) != present else 0  # low has another value, high has the present one
    while high - low > 1:
        middle = (low + high) // 2
        if value(middle) == present:
            high = middle
        else:
            low = middle
    for place in range(last - 1, high, -1):
        if not affordable(place):
            return Found(high, exact=False)
        if value(place) != present:
            return Found(place + 1, exact=True)
    return Found(high, exact=True)
