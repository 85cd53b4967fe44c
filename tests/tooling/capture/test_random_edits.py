"""Any edit of any file comes back byte for byte, or is refused with the file's name."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from capture_lab import FILES, Checkout
from patchstack.capture.choose import applied, choose
from patchstack.capture.commits import changed_lines
from patchstack.capture.model import CaptureError, FileChange
from patchstack.capture.run import capture
from patchstack.tree.git import Repository, Tree

_CODE = st.sampled_from(
    [
        "",
        "}",
        "{",
        "#endif",
        "#if 1",
        "// fragment: x",
        "// A comment.",
        "#include <ops/More.h>",
        "int more(int a) {\n  return a;\n}",
        "\nint more(int a);\n",
        "namespace other {\nint x = 1;\n} // namespace other\n",
        "  int local = more(1);",
        "  return more(2);",
        "    def test_more(self):\n        pass",
        '    "more": None,',
        "def more():\n    return 1",
        "    MPS: tint_mps",
        "- func: more(Tensor self) -> Tensor",
        "Line 3 of the notes.",
        "a\r",
    ]
)
_EDIT = st.tuples(st.integers(0, 40), st.integers(0, 3), st.lists(_CODE, max_size=3))


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tree]:
    path = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", path], check=True)
    with Repository.open(path) as repository:
        empty = repository.git("hash-object", "-w", "-t", "tree", "--stdin", stdin=b"").decode().strip()
        yield Tree(repository, empty, {path: text.encode() for path, text in FILES.items()})  # type: ignore[arg-type]


def _edited(text: str, edits: list[tuple[int, int, list[str]]]) -> str:
    lines = text.split("\n")
    for at, gone, come in edits:
        lines[min(at, len(lines)) : at + gone] = come
    return "\n".join(lines)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(sorted(FILES)), st.lists(_EDIT, min_size=1, max_size=3), st.booleans())
def test_the_edits_chosen_for_a_random_change_give_its_bytes(
    tree: Tree, path: str, edits: list[tuple[int, int, list[str]]], ends: bool
) -> None:
    before = FILES[path]
    after = _edited(before, edits) if ends else _edited(before, edits).rstrip("\n")
    if after == before:
        return
    change = FileChange(path, before.encode(), after.encode())
    lines = changed_lines(tree.repository, before.encode(), after.encode())
    choices = list(choose(tree, change, lines))
    assert applied(tree, [choice.edit for choice in choices]) == after.encode()
    assert sum(choice.hunks for choice in choices) == len(lines)


@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from(sorted(FILES)), _EDIT), min_size=1, max_size=4))
def test_a_random_commit_is_captured_whole_or_refused_by_the_name_of_its_file(
    tmp_path_factory: pytest.TempPathFactory, edits: list[tuple[str, tuple[int, int, list[str]]]]
) -> None:
    path = tmp_path_factory.mktemp("checkout")
    place = Checkout(path)
    place.git("checkout", "-q", "-b", "work")
    files = {name: _edited(FILES[name], [edit]) for name, edit in edits}
    if all(FILES[name] == text for name, text in files.items()):
        return
    place.commit("Change something", files)
    folder: Path = path.parent / f"{path.name}-series"
    refusal = ""
    with Repository.open(path) as repository:
        try:
            assert capture(repository, "main..HEAD", folder).is_written  # which compares the bytes
        except CaptureError as error:
            refusal = str(error)
    assert not refusal or any(name in refusal for name in files)
