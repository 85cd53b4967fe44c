"""A fragment beside a definition is compiled wherever the file is, not only where that definition is."""

from __future__ import annotations

import pytest

from edit_bench import applied, edit_from, plan_on
from patchstack.edits import Status

ADDED = b"void added() {}\n"
GUARD = b"#ifndef A_H\n#define A_H\n\nstruct Params {\n  int a;\n};\n\n#endif\n"
LANDS = {
    "before the #if around it": (
        "before: {kernel: shade}",
        b"int a;\n\n// Fast.\n#if FAST\nkernel void shade() {}\n#endif\n",
        b"int a;\n\nADDED\n// Fast.\n#if FAST\nkernel void shade() {}\n#endif\n",
    ),
    "behind the #if around it": (
        "after: {kernel: shade}",
        b"int a;\n#if FAST\nkernel void shade() {}\n#else\nint c;\n#endif\nint b;\n",
        b"int a;\n#if FAST\nkernel void shade() {}\n#else\nint c;\n#endif\n\nADDED\nint b;\n",
    ),
    "outside of two": (
        "after: {function: shade}",
        b"int a = 1;\n#if A\n#ifdef B\nvoid shade() {}\n#endif\n#endif\nint b;\n",
        b"int a = 1;\n#if A\n#ifdef B\nvoid shade() {}\n#endif\n#endif\n\nADDED\nint b;\n",
    ),
    "with others of its scope in the #if": (
        "after: {function: shade}",
        b"#if A\nvoid shade() {}\nvoid also() {}\n#endif\nvoid last() {}\n",
        b"#if A\nvoid shade() {}\nvoid also() {}\n#endif\n\nADDED\nvoid last() {}\n",
    ),
    "in its namespace": (
        "after: {function: shade, in: n}",
        b"int a = 1;\n#if A\nnamespace n {\nvoid shade() {}\n\nvoid last() {}\n}\n#endif\n",
        b"int a = 1;\n#if A\nnamespace n {\nvoid shade() {}\n\nADDED\nvoid last() {}\n}\n#endif\n",
    ),
    "in an include guard": ("after: {struct: Params}", GUARD, GUARD.replace(b"};\n", b"};\n\nADDED")),
    "in an #if around all that the file has": (
        "after: {function: shade}",
        b"#include <a.h>\n#ifdef USE_MPS\nvoid shade() {}\n\nvoid last() {}\n#endif\n",
        b"#include <a.h>\n#ifdef USE_MPS\nvoid shade() {}\n\nADDED\nvoid last() {}\n#endif\n",
    ),
    "in the #if where the anchor says so": (
        "after: {function: shade, inside_if: true}",
        b"#if A\nvoid shade() {}\n#endif\nvoid last() {}\n",
        b"#if A\nvoid shade() {}\n\nADDED\n#endif\nvoid last() {}\n",
    ),
    "behind the last of two branches": (
        "after: {function: shade, matches: 2, pick: last}",
        b"int a = 1;\n#if A\nvoid shade() {}\n#else\nvoid shade() {}\n#endif\nint b;\n",
        b"int a = 1;\n#if A\nvoid shade() {}\n#else\nvoid shade() {}\n#endif\n\nADDED\nint b;\n",
    ),
}


@pytest.mark.parametrize(("place", "before", "after"), LANDS.values(), ids=LANDS.keys())
def test_a_fragment_lands(place: str, before: bytes, after: bytes) -> None:
    edit = edit_from(f"{{kind: place-fragment, path: a.metal, fragment: new, {place}}}", {"a.metal": ADDED})
    assert applied(edit, before).decode() == after.replace(b"ADDED", ADDED).decode()


def test_a_definition_that_stands_in_both_branches_is_two() -> None:
    edit = edit_from(
        "{kind: place-fragment, path: a.metal, fragment: new, after: {function: shade}}", {"a.metal": ADDED}
    )
    outcome = plan_on(edit, b"#if A\nvoid shade() {}\n#else\nvoid shade() {}\n#endif\nint b;\n")
    assert (outcome.status, outcome.matches) == (Status.CONFLICT, (2, 4))
