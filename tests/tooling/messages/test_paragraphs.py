"""Our reading of paragraphs and trailers is git's and ghstack's."""

from __future__ import annotations

import subprocess

import ghstack.trailers
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchstack.messages.paragraphs import (
    has_key_with_space,
    is_trailer_block,
    paragraphs,
    split_final_paragraph,
    strip_space,
    unclosed_fence,
)

_PIECES = st.sampled_from(
    ["", " ", "\t", "prose here", "Key: value", "  indented", "Signed-off-by: A <a@b>", "two words: x", "a  ", "é\v"]
)
_LINES = st.lists(_PIECES, max_size=8)


@settings(max_examples=60, deadline=None)
@given(_LINES)
def test_tidying_does_what_git_stripspace_does(lines: list[str]) -> None:
    text = "\n".join(lines)
    git = subprocess.run(["git", "stripspace"], input=text.encode(), capture_output=True, check=True).stdout.decode()
    assert strip_space(text) == git


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(["x y", "Key: v", " more", "Signed-off-by: A", "(cherry picked from commit 1)"])))
def test_a_trailer_block_is_what_ghstack_takes_for_one(lines: list[str]) -> None:
    assert is_trailer_block(lines) == ghstack.trailers.is_trailer_block(lines)


@settings(max_examples=100, deadline=None)
@given(_LINES)
def test_the_final_paragraph_and_what_is_before_it_make_up_the_text(lines: list[str]) -> None:
    text = "\n".join(lines)
    before, final = split_final_paragraph(text)
    assert strip_space(before + "\n" + "\n".join(final)) == strip_space(text)
    assert all(line.strip() for line in final)


def test_paragraphs_know_the_line_they_start_at() -> None:
    found = [(paragraph.first, paragraph.lines) for paragraph in paragraphs("\none\ntwo\n \n\nthree")]
    assert found == [(2, ("one", "two")), (6, ("three",))]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Approved by: me", True),
        ("Approved-by: me", False),
        ("no colon", False),
        ("a long run of words here: x", False),
    ],
)
def test_a_key_with_a_space_is_recognised(line: str, expected: bool) -> None:
    assert has_key_with_space(line) is expected


def test_git_itself_reads_no_trailer_beside_a_key_with_a_space() -> None:
    text = "T\n\nprose\n\nReviewed-by: A\nApproved by: B\n"
    git = subprocess.run(["git", "interpret-trailers", "--parse"], input=text.encode(), capture_output=True, check=True)
    assert git.stdout == b""


@pytest.mark.parametrize(
    ("text", "fence"),
    [
        ("a\n```\nb\n```\n", ""),
        ("```python\nb\n", "```"),
        ("~~~~\n```\n~~~\n", "~~~~"),
        ("```\nb\n```` \n", ""),
        ("```\nb\n``` c\n", "```"),
        ("`` `a` ``\n```a`b```\n", ""),
        ("    ```\n", ""),
    ],
)
def test_a_code_block_that_is_not_closed_is_seen(text: str, fence: str) -> None:
    assert unclosed_fence(text) == fence
