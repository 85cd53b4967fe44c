"""The quick count of lines agrees with a slow one, whatever the files are."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchstack.tree.diffs import common_ends, counted

_TEXTS = st.lists(st.sampled_from(["a", "b", "ab", ""]), max_size=6).map("\n".join)


def slow(old: str, new: str) -> tuple[int, int]:
    """Line by line, from both ends."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    head, tail = common_ends(before, after)
    return len(after) - head - tail, len(before) - head - tail


@given(old=_TEXTS, new=_TEXTS)
def test_the_quick_count_is_the_slow_count(old: str, new: str) -> None:
    assert counted(old.encode(), new.encode()) == slow(old, new)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", "a\nb\n", (2, 0)),
        ("a\nb\n", "a\nb\n", (0, 0)),
        ("a\nc\n", "a\nb\nc\n", (1, 0)),
        ("a\nb\nc\n", "a\nc\n", (0, 1)),
        ("A\n", "BA\n", (1, 1)),
        ("a\na\n", "a\na\na\n", (1, 0)),
        ("a\nb", "a\nc", (1, 1)),
    ],
)
def test_what_is_counted_is_what_a_diff_shows(old: str, new: str, expected: tuple[int, int]) -> None:
    assert counted(old.encode(), new.encode()) == expected
    diff = list(difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=0))[2:]
    assert (sum(row[0] == "+" for row in diff), sum(row[0] == "-" for row in diff)) == expected
