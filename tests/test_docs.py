"""README and docs/: short enough, and no link leads nowhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
_LINK = re.compile(r"\]\((?!https?:)([^)#]*)(#[^)]*)?\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def broken_links(page: Path) -> list[str]:
    """What the page links to and is not there."""
    found = []
    for name, anchor in _LINK.findall(page.read_text()):
        target = page.parent / name if name else page
        if not target.exists() or (anchor and anchor[1:] not in anchors(target)):
            found.append(name + anchor)
    return found


def anchors(page: Path) -> set[str]:
    """What its headings are called in links."""
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in _HEADING.findall(page.read_text())}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_and_anchor_is_there(page: Path) -> None:
    assert broken_links(page) == []


def test_a_link_to_a_page_or_a_heading_that_is_not_there_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One thing\n[a](#one-thing) [b](#another) [c](other.md) [d](https://example.org/x.md)\n")
    assert broken_links(page) == ["#another", "other.md"]


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


def test_the_navigation_names_every_page() -> None:
    text = (ROOT / "mkdocs.yml").read_text()
    pages = [page.relative_to(ROOT / "docs") for page in (ROOT / "docs").rglob("*.md")]
    assert [str(page) for page in pages if f"- {page}\n" not in text] == []
