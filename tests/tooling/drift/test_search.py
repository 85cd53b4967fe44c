"""Since which place a value has been what it is at the last one."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchstack.drift.search import Found, first_of_present


@dataclass
class Places:
    """Values in a row, and which of them were looked at.

    Attributes:
        budget: places that may be looked at beyond what bisection needs.
    """

    values: str
    budget: int = 10**6
    seen: set[int] = field(default_factory=set)

    def search(self) -> Found:
        return first_of_present(
            len(self.values), self._value, lambda at: at in self.seen or len(self.seen) < self.budget
        )

    def _value(self, at: int) -> str:
        self.seen.add(at)
        return self.values[at]


def start_of_last_run(values: str) -> int:
    """The right answer, by looking at everything."""
    return len(values.rstrip(values[-1]))


@pytest.mark.parametrize("broken_at", range(1, 40))
def test_a_single_break_is_found_wherever_it_is(broken_at: int) -> None:
    places = Places("g" * broken_at + "b" * (40 - broken_at))
    assert places.search() == Found(broken_at, exact=True)


@pytest.mark.parametrize(
    ("values", "since"),
    [("gbbbggbb", 6), ("gbgbgbgb", 7), ("gbbbbbgb", 7), ("gabbabbb", 5), ("gb", 1)],
    ids=["mended once", "every other", "mended for one commit", "another condition between", "next to each other"],
)
def test_what_was_mended_and_broken_again_counts_from_the_last_break(values: str, since: int) -> None:
    assert Places(values).search() == Found(since, exact=True)


@given(st.text("gab", min_size=1, max_size=60))
def test_with_every_place_affordable_the_answer_is_the_start_of_the_last_run(values: str) -> None:
    assert Places(values).search() == Found(start_of_last_run(values), exact=True)


@given(st.text("gab", min_size=2, max_size=60), st.integers(0, 60))
def test_whatever_the_budget_the_place_before_has_another_value_and_was_looked_at(values: str, budget: int) -> None:
    places = Places(values, budget)
    found = places.search()
    assert values[found.index] == values[-1]
    if found.index:
        assert values[found.index - 1] != values[-1]
    assert {found.index, max(found.index - 1, 0)} <= places.seen
    if found.exact:
        assert found.index == start_of_last_run(values)


def test_what_has_been_so_all_along_has_no_beginning() -> None:
    assert Places("bbbb").search() == Found(0, exact=True)
    assert Places("bgbb").search() == Found(2, exact=True)
    assert Places("b").search() == Found(0, exact=True)


def test_without_a_budget_bisection_alone_looks_at_few_places_and_says_that_it_is_not_exact() -> None:
    places = Places("g" * 30 + "b" * 10 + "g" + "b" * 959, budget=0)
    found = places.search()
    assert not found.exact
    assert len(places.seen) <= 12


def test_plain_bisection_would_name_the_wrong_commit() -> None:
    """The seeded fault: a history in which bisecting alone ends at a break that was mended since."""
    values = "gbbbbbbgbb"
    assert Places(values, budget=0).search().index == 1
    assert Places(values).search().index == 8
