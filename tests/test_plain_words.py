"""Wordings that readers had to read twice do not come back: in pages, help, messages and docstrings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = [
    file
    for pattern in (
        "*.md",
        "docs/**/*.md",
        "patches/**/*.*",
        "aten_overlay/**/*.*",
        "tooling/**/*.py",
        "validate/**/*.py",
    )
    for file in ROOT.glob(pattern)
    if "generated" not in file.parts
]
UNCLEAR = re.compile(
    r"""
    \btrees?\ (?:of|from)\ (?:before|after)\b(?!\ \w+\ 20)  # before and after what?
    | \bof\ (?:before|after)\b
    | \bin\ the\ place\ of\b                                # instead of
    | ,\ but\ for\ the\ last\b                              # all except the last
    | \bas\ review\ left\b                                  # with review edits
    | \bits\ being\ there\b
    | \bgo(?:es)?\ unheard\b                                # is ignored
    | \bneeds?\ it\ not\b
    | \b(?:is|are|was|were)\ turned\ before\b               # transposed
    | \bthat\ which\b
    """,
    re.VERBOSE | re.IGNORECASE,
)


def unclear(text: str) -> list[str]:
    """Such wordings, wherever a line was broken."""
    return [match.group() for match in UNCLEAR.finditer(" ".join(text.split()))]


def test_no_file_has_one() -> None:
    found = {str(file.relative_to(ROOT)): words for file in FILES if (words := unclear(file.read_text()))}
    assert len(FILES) > 500
    assert found == {}


@pytest.mark.parametrize(
    "text",
    [
        "It works on trees\nof after too.",
        "in the place of upstream's",
        "decided from the tree alone, but for the last",
        "their options would go unheard",
        "an input is turned before",
    ],
)
def test_one_is_found(text: str) -> None:
    assert unclear(text)


def test_a_date_says_before_what() -> None:
    assert unclear("Trees from before April 2026 have no backward.") == []
