"""The pages of docs/ are built without a warning, and load nothing from elsewhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from skips import require_packages

ROOT = Path(__file__).resolve().parent.parent
_LOADED = re.compile(r"<(?:script|link|img)[^>]*(?:src|href)=\"?(https?:[^\" >]+)")


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A copy of what the pages are made of."""
    require_packages("material")
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    return tmp_path


def built(sources: Path) -> tuple[int, str]:
    """Build them; exit status and what was said."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", "site"]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=sources, env=env, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def test_the_pages_are_built_without_a_warning_and_load_nothing_from_elsewhere(sources: Path) -> None:
    status, words = built(sources)
    assert status == 0, words
    pages = list((sources / "site").rglob("*.html"))
    assert len(pages) > 15
    assert {url for page in pages for url in _LOADED.findall(page.read_text())} == set()


@pytest.mark.parametrize(
    ("text", "said"),
    [("[a](nowhere.md)", "nowhere.md"), ("[a](reference/drift.md#nowhere)", "#nowhere"), ("[a](/b.md)", "/b.md")],
)
def test_a_link_that_leads_nowhere_stops_the_build(sources: Path, text: str, said: str) -> None:
    with (sources / "docs" / "index.md").open("a") as page:
        page.write(f"\n{text}\n")
    status, words = built(sources)
    assert status == 1
    assert said in words
