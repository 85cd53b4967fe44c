"""A Python file that is parsed from another version of itself is the file that is parsed from nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tree_sitter import Node

from patchstack.tree import python
from patchstack.tree.python import PythonFile, parse_python

LINES = (
    b"NAMES = [\n",
    b"    'a',  # first\n",
    b"]\n",
    b"def f(x):\n",
    b"    return {'k': 1}\n",
    b"class C:\n",
    b"    def g(self):\n",
    b'        """Text\n',
    b'    """\n',
    b"\n",
    b"    pass\n",
    b"\\\n",
    b"x = (1,\n",
    b")\n",
)
SOURCE = b"".join(b"def f%d(a, b=[1, 2]):\n    return {'k': a, 'l': b}\n\n\n" % number for number in range(60))


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    python._recent.clear()
    python._originals.clear()
    yield
    python._recent.clear()
    python._originals.clear()


def shape(node: Node) -> list[tuple[str, int, int, bool]]:
    """Every node of a syntax tree: kind, offsets, and whether something is wrong in it."""
    found, todo = [], [node]
    while todo:
        at = todo.pop()
        found.append((at.type, at.start_byte, at.end_byte, at.has_error))
        todo += at.children
    return found


@pytest.mark.exhaustive
@settings(max_examples=80, deadline=None)
@given(
    versions=st.lists(
        st.tuples(st.integers(0, 240), st.integers(0, 3), st.lists(st.sampled_from(LINES), max_size=4)), max_size=4
    )
)
def test_whatever_lines_change_from_version_to_version(versions: list[tuple[int, int, list[bytes]]]) -> None:
    parse_python(SOURCE)
    lines = SOURCE.splitlines(keepends=True)
    for at, gone, new in versions:
        lines[at : at + gone] = new
        data = b"".join(lines)
        parsed, alone = parse_python(data), PythonFile(data)
        assert shape(parsed.root) == shape(alone.root)


def test_a_version_is_parsed_from_the_one_before_and_a_file_unlike_it_from_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parse_python(SOURCE)
    made: list[object] = []
    spliced = PythonFile.spliced
    monkeypatch.setattr(PythonFile, "spliced", lambda file, splices: (made.append(1), spliced(file, splices))[1])
    parse_python(SOURCE + b"# more\n")
    assert len(made) == 1
    parse_python(SOURCE[: len(SOURCE) // 2])
    assert len(made) == 1
