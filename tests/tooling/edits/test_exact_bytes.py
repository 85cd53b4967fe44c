"""Outside the edit every byte stays: line endings, encodings, tabs, trailing blanks, a missing final line feed."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edit_bench import applied, edit_from, inserted_at, plan_on, tree_of
from patchstack.edits import Status
from patchstack.tree.text import Splice, apply_splices, digest, line_ending, with_line_ending

METAL_LINES = [
    b"#include <a.h>",
    b"#include <c.h>",
    b"",
    b"// caf\xe9, latin-1, and a trailing blank ",
    b"namespace paint {",
    b"\tvoid first() {\t}",
    b"",
    b"void anchor(int a) {",
    b'\treturn run("\xff\xfe", a);  ',
    b"}  // anchor",
    b"} // namespace paint",
    b"struct Params {",
    b"  int a;",
    b"};",
]
FRAGMENT = b"// Added.\nvoid added(int a) {\n  run(a);\n}\n"
PLACES = {
    "after a function": ("after: {function: anchor}", FRAGMENT),
    "before a function": ("before: {function: anchor}", FRAGMENT),
    "first in a namespace": ("start_of: {namespace: paint}", FRAGMENT),
    "last in a namespace": ("end_of: {namespace: paint}", FRAGMENT),
    "after a namespace": ("after: {namespace: paint}", FRAGMENT),
    "last in the file": ("end_of: {file: end}", FRAGMENT),
    "last in a struct": ("end_of: {struct: Params}", b"  int b;\n"),
    "into an include block": ("into: {include_block: a.h}", b"#include <b.h>\n"),
}
PYTHON_LINES = [
    b"# -*- coding: latin-1 -*-",
    b"# caf\xe9 ",
    b"NAMES = [",
    b"    'one',\t# first",
    b"    'two',  ",
    b"]",
    b"",
    b"class TestPaint(Base):",
    b"    def test_one(self):",
    b"        pass  ",
    b"",
    b"LAST = 1",
]
YAML_LINES = [
    b"# caf\xe9",
    b"- func: other(Tensor self) -> Tensor",
    b"  dispatch:",
    b"    CPU: other_cpu  ",
    b"",
    b"- func: tint(Tensor self) -> Tensor",
    b"  dispatch:",
    b"    CPU: tint_cpu  # one",
    b"    CUDA: tint_cuda ",
    b"  autogen: tint.out",
    b"",
    b"- func: last(Tensor self) -> Tensor",
]
INSERTIONS = {
    **{
        name: (f"{{kind: place-fragment, path: a.metal, fragment: new, {place}}}", METAL_LINES, text)
        for name, (place, text) in PLACES.items()
    },
    "members of a Python class": (
        "{kind: place-fragment, path: a.py, fragment: new, end_of: [{class: TestPaint}]}",
        PYTHON_LINES,
        b"    def test_added(self):\n        pass\n",
    ),
    "a Python entry": (
        "{kind: add-python-entry, path: a.py, in: [{assign: NAMES}], entry: '\"added\"'}",
        PYTHON_LINES,
        b'    "added",\n',
    ),
    "a dispatch key": (
        "{kind: add-dispatch-key, path: a.yaml, op: tint, key: MPS, function: tint_mps}",
        YAML_LINES,
        b"    MPS: tint_mps\n",
    ),
}

endings = st.sampled_from([b"\n", b"\r\n"])


@st.composite
def files(draw: st.DrawFn, lines: list[bytes]) -> bytes:
    """The lines, each with an ending of its own, perhaps a byte order mark, perhaps no line feed at the end."""
    uniform = draw(st.booleans())
    one = draw(endings)
    text = b"".join(line + (one if uniform else draw(endings)) for line in lines)
    if draw(st.booleans()):
        text = text.rstrip(b"\r\n")
    return draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + text


@pytest.mark.parametrize("name", INSERTIONS)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_taking_the_inserted_bytes_out_again_gives_the_original(name: str, data: st.DataObject) -> None:
    entry, lines, text = INSERTIONS[name]
    edit = edit_from(entry, {"a.metal" if lines is METAL_LINES else "a.py": text})
    before = data.draw(files(lines))
    if before.startswith(b"\xef\xbb\xbf") and lines is PYTHON_LINES:
        before = before.replace(b"latin-1", b"utf-8  ").replace(b"\xe9", b"e")
    after = applied(edit, before)
    at, added = inserted_at(before, after)
    assert after[:at] + after[at + len(added) :] == before
    assert added.strip().replace(b"\r\n", b"\n").splitlines() == text.strip().splitlines()
    assert len(re.findall(rb"\r?\n", added)) <= text.count(b"\n") + 2, "at most a blank line on each side"


@pytest.mark.parametrize("name", INSERTIONS)
def test_an_insertion_has_the_line_endings_of_the_file(name: str) -> None:
    entry, lines, text = INSERTIONS[name]
    edit = edit_from(entry, {"a.metal" if lines is METAL_LINES else "a.py": text})
    for ending in (b"\n", b"\r\n"):
        before = ending.join(lines) + ending
        _, added = inserted_at(before, applied(edit, before))
        assert added.count(b"\n") == added.count(ending) > 0


@pytest.mark.parametrize("name", INSERTIONS)
def test_a_second_run_finds_the_edit_already_there(name: str) -> None:
    entry, lines, text = INSERTIONS[name]
    edit = edit_from(entry, {"a.metal" if lines is METAL_LINES else "a.py": text})
    for ending in (b"\n", b"\r\n"):
        outcome = plan_on(edit, applied(edit, ending.join(lines) + ending))
        assert outcome.status is Status.SATISFIED
        assert outcome.after is None
        assert outcome.matches


@settings(max_examples=60, deadline=None)
@given(before=files(METAL_LINES))
def test_a_replacement_changes_the_definition_and_no_byte_around_it(before: bytes) -> None:
    old = re.search(rb"void anchor.*?// anchor(?:\r?\n|\Z)", before, re.DOTALL)
    assert old is not None
    entry = (
        f"{{kind: replace-definition, path: a.metal, fragment: new, replaces: ['{digest(old.group())}'], "
        "definition: {function: anchor}}"
    )
    text = b"void anchor(int a) {\n  run(a);\n}\n"
    after = applied(edit_from(entry, {"a.metal": text}), before)
    assert after.startswith(before[: old.start()])
    assert after.endswith(before[old.end() :])
    middle = after[old.start() : len(after) - len(before) + old.end()]
    assert middle.replace(b"\r\n", b"\n").strip() == text.strip()


@settings(max_examples=60, deadline=None)
@given(before=files(PYTHON_LINES), name=st.sampled_from([b"'one',\t# first", b"'two',  "]))
def test_a_removal_takes_one_line_and_no_byte_around_it(before: bytes, name: bytes) -> None:
    if before.startswith(b"\xef\xbb\xbf"):
        before = before.replace(b"latin-1", b"utf-8  ").replace(b"\xe9", b"e")
    entry = name[:5].decode()
    edit = edit_from(f'{{kind: remove-python-entry, path: a.py, in: [{{assign: NAMES}}], entry: "{entry}"}}')
    line = re.search(rb"    " + re.escape(name) + rb"\r?\n", before)
    assert line is not None
    assert applied(edit, before) == before[: line.start()] + before[line.end() :]


def test_a_byte_changed_outside_the_insertion_would_be_noticed() -> None:
    with pytest.raises(AssertionError, match="outside the insertion"):
        inserted_at(b"one\r\ntwo\r\n", b"one\ntwo\r\nthree\r\n")


def test_a_created_file_lands_byte_for_byte() -> None:
    content = b"\xef\xbb\xbf// caf\xe9\rint a;\n\tint b; "
    edit = edit_from("{kind: create-file, path: new/File.metal}", {"new/File.metal": content})
    assert edit.plan(tree_of({"old.txt": b""})).after == content


class TestSplices:
    @given(
        data=st.binary(max_size=60),
        spots=st.lists(st.integers(0, 60), max_size=8, unique=True),
        text=st.binary(max_size=4),
    )
    def test_replace_exactly_their_ranges(self, data: bytes, spots: list[int], text: bytes) -> None:
        ends = sorted(spot for spot in spots if spot <= len(data))
        pairs = list(zip(ends[::2], ends[1::2], strict=False))
        expected, at = b"", 0
        for start, end in pairs:
            expected += data[at:start] + text
            at = end
        assert apply_splices(data, [Splice(s, e, text) for s, e in pairs]) == expected + data[at:]

    def test_that_overlap_are_refused(self) -> None:
        with pytest.raises(ValueError, match="overlap"):
            apply_splices(b"abcdef", [Splice(0, 3, b""), Splice(2, 4, b"")])

    @given(text=st.text(alphabet="ab\n", max_size=20))
    def test_a_change_of_line_endings_loses_nothing(self, text: str) -> None:
        data = text.encode()
        assert with_line_ending(with_line_ending(data, b"\r\n"), b"\n") == data

    @pytest.mark.parametrize(
        ("data", "ending"), [(b"", b"\n"), (b"a", b"\n"), (b"a\r\nb\r\nc\n", b"\r\n"), (b"a\r\nb\nc\n", b"\n")]
    )
    def test_the_line_ending_of_a_file_is_that_of_most_lines(self, data: bytes, ending: bytes) -> None:
        assert line_ending(data) == ending
