"""The examples of docs/reference/python-api.md: each is run, and prints what stands below it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from patchstack.cache import cache_dir

PAGE = Path(__file__).parents[1] / "docs/reference/python-api.md"
EXAMPLES = re.findall(
    r"^## (.*?)$.*?```python\n(.*?)```\n\n```text\n(.*?)```", PAGE.read_text(), re.MULTILINE | re.DOTALL
)


def test_there_is_an_example_of_each_part() -> None:
    assert [title for title, _, _ in EXAMPLES] == re.findall(r"^## (.*)$", PAGE.read_text(), re.MULTILINE)


@pytest.mark.needs_reference
@pytest.mark.parametrize(("title", "code", "printed"), EXAMPLES, ids=[title for title, _, _ in EXAMPLES])
def test_an_example_prints_what_the_page_says(title: str, code: str, printed: str, tmp_path: Path) -> None:
    environment = os.environ | {"PATCHSTACK_CACHE": str(cache_dir())}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (printed, "")
