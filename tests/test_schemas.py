"""The schemas of what commands print with ``--json``. The tests of the commands hold their output against them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from documents import document, kinds, schema

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/reference/json.md"
PUBLISHED = sorted(ROOT.glob("*/*/schemas/*.json"))


def test_each_published_schema_is_one_that_documents_are_held_against_and_the_page_names_it() -> None:
    found = {(file.parents[1].name, file.stem) for file in PUBLISHED}
    assert found == kinds()
    page = PAGE.read_text()
    missing = [file.name for file in PUBLISHED if f"`{file.relative_to(ROOT)}`" not in page]
    assert missing == []


@pytest.mark.parametrize("file", PUBLISHED, ids=lambda file: file.stem)
def test_a_schema_is_closed_and_says_what_it_is_of(file: Path) -> None:
    content = schema(file.parents[1].name, file.stem)
    assert content["description"].endswith(".")
    assert content["additionalProperties"] is False


ABORTED: dict[str, Any] = {"aborted": True, "worktree": "/somewhere"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"worktree": 1}, "resolve-abort, at worktree: 1 is not of type"),
        ({"another": 1}, "resolve-abort, at the top: Additional properties are not allowed"),
    ],
    ids=["a type", "a key"],
)
def test_a_document_that_is_not_what_its_schema_says_is_told(change: dict[str, Any], said: str) -> None:
    assert document(json.dumps(ABORTED)) == ABORTED
    with pytest.raises(AssertionError, match=said):
        document(json.dumps(ABORTED | change))


def test_a_document_without_a_schema_is_told() -> None:
    with pytest.raises(AssertionError, match=r"no schema for a document of \['a'\]"):
        document('{"a": 1}')
