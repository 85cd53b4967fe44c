"""The generated pages of the reference are what the command line and the classes give now."""

from __future__ import annotations

import pytest

import reference_pages


@pytest.mark.parametrize("name", ["commands.md", "edits.md", "tables.md"])
def test_a_generated_page_is_what_the_code_gives(name: str) -> None:
    assert (reference_pages.FOLDER / name).read_text() == reference_pages.pages()[name], (
        "next: python tests/support/reference_pages.py"
    )
