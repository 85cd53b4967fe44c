"""Lines found in a file, and the one difference between two versions of it."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from patchstack.tree.text import apply_splices, find_lines, line_start, one_splice

ENDINGS = st.sampled_from([[b"\n"], [b"\r\n"], [b"\n", b"\r\n", b"\r"]])


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """A few short lines, with one kind of line ending or several."""
    pieces = st.sampled_from([b"a", b"b", b"ab", *draw(ENDINGS)])
    return b"".join(draw(st.lists(pieces, max_size=12)))


def found_by_pattern(data: bytes, lines: bytes, start: int, stop: int) -> int | None:
    """The definition: the lines, each with either ending, from the start of a line on."""
    plain = lines.replace(b"\r\n", b"\n").removesuffix(b"\n")
    pattern = re.compile(rb"\r?\n".join(map(re.escape, plain.split(b"\n"))) + rb"(?:\r?\n|\Z)")
    for at in range(start, stop + 1):
        if at == line_start(data, at) and pattern.match(data, at, stop):
            return at
    return None


def has_whole_endings(lines: bytes) -> bool:
    """Whether every carriage return belongs to a line ending; one alone is content that looks like half of one."""
    return bool(lines) and b"\r" not in lines.replace(b"\r\n", b"\n")


@settings(max_examples=250, deadline=None)
@given(data=files(), lines=files().filter(has_whole_endings), start=st.integers(0, 3), cut=st.integers(0, 2))
@example(data=b"\r\nb\nab\n\r\n\n", lines=b"\n\n\r\n", start=2, cut=0)
def test_lines_are_found_where_they_stand_whole_whatever_their_endings(
    data: bytes, lines: bytes, start: int, cut: int
) -> None:
    stop = max(len(data) - cut, start)
    if stop <= len(data):
        assert find_lines(data, lines, start, stop) == found_by_pattern(data, lines, start, stop)


@pytest.mark.parametrize("data", [b"a\n" * 9 + b"b\n", b"a\r\n" * 9 + b"b\r\n", b"a\n" * 9 + b"b\r\n"])
def test_nothing_is_found_in_half_a_line(data: bytes) -> None:
    assert find_lines(data, b"b\n") == len(data.rstrip()) - 1
    assert find_lines(data.replace(b"b", b"ba"), b"b\n") is None
    assert find_lines(data.replace(b"b", b"ab"), b"b\n") is None


LENGTHS = st.sampled_from([0, 1, 127, 128, 129, 16383, 16384, 16385, 40000])


@settings(max_examples=100, deadline=None)
@given(length=LENGTHS, at=st.integers(0, 40000), gone=st.integers(0, 300), new=st.binary(max_size=5))
def test_one_splice_turns_one_content_into_the_other_and_is_the_shortest(
    length: int, at: int, gone: int, new: bytes
) -> None:
    before = bytes(length)
    at = min(at, length)
    after = before[:at] + new + before[at + gone :]
    splice = one_splice(before, after)
    assert apply_splices(before, [splice]) == after
    removed = before[splice.start : splice.end]
    if removed and splice.replacement:
        assert removed[0] != splice.replacement[0]
        assert removed[-1] != splice.replacement[-1]
