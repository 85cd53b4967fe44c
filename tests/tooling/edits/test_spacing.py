"""Blank lines around a fragment are a property of the edit, wherever the overlay's markers stand."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edit_bench import applied, edit_from
from patchstack.errors import ManifestError
from patchstack.tree.cxx_digest import code_digest

ADDED = b"void added() {}\n"
FIRST, LAST = b"void first() {}\n", b"void last() {}\n"


def placed(source: bytes, text: bytes, place: str = "after: {function: first}", more: str = "") -> bytes:
    entry = f"{{kind: place-fragment, path: a.mm, fragment: new, {place}{', ' if more else ''}{more}}}"
    return applied(edit_from(entry, {"a.mm": text}), source)


@settings(max_examples=60, deadline=None)
@given(
    above=st.integers(0, 3),
    below=st.integers(0, 3),
    between=st.integers(0, 1),
    place=st.sampled_from(["after: {function: first}", "before: {function: last}", "end_of: {file: end}"]),
    blank=st.sampled_from([b"\n", b"  \n"]),
)
def test_definitions_have_one_blank_line_between_them(
    above: int, below: int, between: int, place: str, blank: bytes
) -> None:
    after = placed(FIRST + b"\n" * between + LAST, blank * above + ADDED + blank * below, place)
    expected = [FIRST, LAST, ADDED] if "file" in place else [FIRST, ADDED, LAST]
    assert [line for line in after.splitlines(keepends=True) if line.strip()] == expected
    assert not re.search(rb"\n[ \t]*\n[ \t]*\n", after)
    assert not after.endswith(b"\n\n")
    assert ADDED + b"\n" in after or after.endswith(ADDED)
    assert b"\n\n" + ADDED in after


@settings(max_examples=40, deadline=None)
@given(text=st.lists(st.sampled_from([b"\n", b"void added() {}\n", b"// a\n"]), min_size=2, max_size=6))
def test_an_exact_fragment_lands_byte_for_byte(text: list[bytes]) -> None:
    fragment = b"".join([*text, ADDED.replace(b"added", b"also"), b"\n\n"])
    if fragment.count(b"added") > 1:
        fragment = fragment.replace(b"void added() {}\n", b"", fragment.count(b"added") - 1)
    assert placed(FIRST + LAST, fragment, more="spacing: exact") == FIRST + fragment + LAST


WANTED = {
    "none": ("blank_lines: {before: 0, after: 0}", FIRST + ADDED + LAST),
    "two above": ("blank_lines: {before: 2}", FIRST + b"\n\n" + ADDED + b"\n" + LAST),
    "two below": ("blank_lines: {after: 2}", FIRST + b"\n" + ADDED + b"\n\n" + LAST),
}


@pytest.mark.parametrize(("more", "after"), WANTED.values(), ids=WANTED.keys())
def test_the_edit_says_how_many_blank_lines_there_are(more: str, after: bytes) -> None:
    assert placed(FIRST + LAST, ADDED, more=more) == after


def test_blank_lines_that_the_tree_has_count() -> None:
    assert placed(FIRST + b"\n" + LAST, ADDED, more="blank_lines: {after: 2}") == (
        FIRST + b"\n" + ADDED + b"\n\n" + LAST
    )


def test_include_lines_have_none_between_them() -> None:
    after = placed(b"#include <a.h>\n#include <c.h>\n", b"\n#include <b.h>\n\n", "into: {include_block: a.h}")
    assert after == b"#include <a.h>\n#include <b.h>\n#include <c.h>\n"


def test_members_of_a_python_class_have_one_above_them() -> None:
    entry = "{kind: place-fragment, path: a.py, fragment: new, end_of: [{class: A}]%s}"
    source, text = b"class A:\n    a = 1\n", b"\n\n    def f(self): ...\n\n"
    assert applied(edit_from(entry % "", {"a.py": text}), source) == source + b"\n    def f(self): ...\n"
    exact = applied(edit_from(entry % ", spacing: exact", {"a.py": text}), source)
    assert exact == source + text


@pytest.mark.parametrize(
    "more",
    [
        "spacing: wide",
        "blank_lines: {before: many}",
        "blank_lines: {above: 1}",
        "spacing: exact, blank_lines: {after: 1}",
    ],
)
def test_a_spacing_that_is_none_is_refused_on_load(more: str) -> None:
    with pytest.raises(ManifestError):
        placed(FIRST, ADDED, more=more)


def test_what_is_removed_leaves_no_run_of_blank_lines() -> None:
    macro = "#define REGISTER(T) \\\n  void shade_##T() {}\n"
    source = f"int a;\n\n{macro}\nREGISTER(x);\nREGISTER(y);\n\nREGISTER(z);\n\nint b;\n".encode()
    entry = "{kind: remove-unused-definition, path: a.metal, definition: {macro: REGISTER}, replaces: ['%s']}"
    assert applied(edit_from(entry % code_digest(macro.encode())), source) == b"int a;\n\nint b;\n"
    at_the_end = source.removesuffix(b"\nint b;\n")
    assert applied(edit_from(entry % code_digest(macro.encode())), at_the_end) == b"int a;\n"
