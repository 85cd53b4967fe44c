"""The pages of the tutorial: every command is typed, and prints what its page says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import tutorial
from patchstack.cache import cache_dir
from references import require_reference
from skips import require_packages
from tutorial import Answer, Reader, Step, rewritten, same, steps


@pytest.mark.slow
@pytest.mark.needs_reference
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.stem, marks=[pytest.mark.exhaustive] if page.stem == "your-own-op" else [])
        for page in tutorial.PAGES
    ],
)
def test_every_command_of_a_page_prints_what_the_page_says(page: Path, tmp_path: Path) -> None:
    require_packages("torch", "numpy", "ziglang", "lief", "expecttest", "ghstack", "graphql")
    require_reference("2.11")
    answers = list(Reader(tmp_path / "home", cache_dir()).follow(page.read_text()))
    assert "\n\n".join(filter(None, (answer.differs for answer in answers))) == ""
    assert len(answers) >= 5


def test_a_page_is_files_and_commands_with_what_they_print() -> None:
    file, other = '```cpp title="a/b.cpp"\nint a;\n```\n', "```bash\n$ not this\n```\n"
    page = f"# A\n\n{file}\n```console\n$ one\n1\n2\n$ two \\\n  more\n```\n\n{other}"
    assert list(steps(page)) == [Step("a/b.cpp", "int a;\n"), Step("", "one", "1\n2"), Step("", "two \\\n  more")]


@pytest.mark.parametrize(
    ("page", "printed", "is_same"),
    [
        ("a\nb", "a\nb", True),
        ("a\nb", "a\nc", False),
        ("a\n...\nd", "a\nb\nc\nd", True),
        ("a\n...\nd", "a\nb\nc", False),
        ("learned: ...", "learned: much", True),
        ("learned: ...", "forgot: much", False),
        ("0123abc  3.5 s on 2026-12-01", "9876fed  12.25 s on 2027-01-31", True),
        ("passed  3", "passed  4", False),
        ("a", "a\nb", False),
        ("a\nb", "a", False),
    ],
)
def test_output_is_compared_without_what_is_another_each_time(page: str, printed: str, is_same: bool) -> None:
    assert same(page, printed) is is_same


def test_what_a_command_prints_now_is_written_where_it_differs() -> None:
    page = "```console\n$ one\n1\n$ one\n...\n```\n"
    first, second = steps(page)
    answers = [Answer(first, 0, "7", 0.0), Answer(second, 0, "8\n9", 0.0)]
    assert rewritten(page, answers) == "```console\n$ one\n7\n$ one\n...\n```\n"


def test_a_reader_keeps_folder_and_sees_their_own_home(tmp_path: Path) -> None:
    page = "```console\n$ mkdir x && cd x\n$ pwd; echo $HOME; false\n/home/you/x\n```\n"
    first, second = Reader(tmp_path / "home", tmp_path / "cache").follow(page)
    assert (first.differs, second.printed, second.status) == ("", "/home/you/x\n/home/you", 1)
    assert "ended with status 1" in second.differs
    assert os.environ["HOME"] != str(tmp_path / "home")
