"""Whatever a report or an error advises is typed, and does not end as before."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from advice import CONFLICTS, HELPLESS, REFUSALS, SUBMITS, Prepare, stop, try_all, words
from checkouts import Checkout, Lab

Make = Callable[[], Checkout]


@pytest.fixture
def make(lab: Lab) -> Make:
    """A checkout anew, each in a world of its own."""
    numbers = itertools.count()

    def made() -> Checkout:
        inner = Lab(lab.root / f"world{next(numbers)}", lab._seed, lab.warm)
        return inner.checkout()

    return made


@pytest.mark.parametrize("prepare", CONFLICTS, ids=words)
def test_what_is_advised_in_a_conflict_applies(make: Make, prepare: Prepare) -> None:
    tried = list(try_all(make, prepare))
    for one in tried:
        assert one.typed, f"not a command: {one.advice}"
        assert one.run is not None
        assert (one.first.status, one.run.status) == (3, 0), f"{one.typed}: {one.run.out}{one.run.err}"
        assert " is now at " in one.run.out
    if not tried:
        checkout = make()
        assert HELPLESS in stop(checkout, prepare(checkout)).require(3).out


@pytest.mark.parametrize("prepare", [*REFUSALS, *SUBMITS], ids=words)
def test_what_is_advised_after_a_refusal_helps(make: Make, prepare: Prepare) -> None:
    tried = list(try_all(make, prepare))
    assert [one for one in tried if one.typed], "nothing is advised that can be typed"
    for one in tried:
        other_series = prepare.__name__ == "a_series_that_is_not_there"  # the one that there is needs another tree
        assert one.helps or other_series, f"{one.typed}: {one.run}"


def test_where_nothing_helps_the_report_says_so_and_advises_nothing(checkout: Checkout) -> None:
    (prepare,) = [prepare for prepare in CONFLICTS if prepare.__name__ == "nothing_fits"]
    facts = stop(checkout, [*prepare(checkout), "--json"]).require(3).json
    assert (facts["next"], facts["next_commands"]) == ([], [])
