"""One Metal text from a source and its headers."""

from __future__ import annotations

import pytest

from patchstack.errors import PatchstackError
from stackproof.engines.gpu.embed import embed

SOURCE = "aten/src/ATen/kernels/Some.metal"


def embedded(**files: str) -> list[str]:
    """The lines of the source ``metal`` with headers ``name`` -> ``c10/name.h``; positions and guards left out."""
    paths = {f"c10/{name}.h": text.encode() for name, text in files.items() if name != "metal"}
    text = embed({SOURCE: files["metal"].encode(), **paths}, SOURCE)
    return [
        line for line in text.splitlines() if line.strip() and not line.startswith("#line") and "STACKPROOF" not in line
    ]


def test_a_header_of_the_tree_stands_in_place_of_its_include() -> None:
    assert embedded(metal="before\n#include <c10/a.h>\nafter", a="inside") == ["before", "inside", "after"]


def test_what_the_tree_does_not_have_stays_an_include() -> None:
    assert embedded(metal="#include <metal_stdlib>") == ["#include <metal_stdlib>"]


def test_a_quoted_include_is_looked_for_beside_its_file_first() -> None:
    files = {SOURCE: b'#include "x.h"', "aten/src/ATen/kernels/x.h": b"beside", "x.h": b"top"}
    assert "beside" in embed(files, SOURCE)
    assert "top" not in embed(files, SOURCE)


def test_a_header_comes_once_whoever_includes_it() -> None:
    lines = embedded(
        metal="#include <c10/a.h>\n#include <c10/b.h>",
        a="#pragma once\n#include <c10/b.h>\nA",
        b="#pragma once\n#include <c10/a.h>\nB",
    )
    assert [line for line in lines if not line.startswith("#")] == ["B", "A"]


def test_a_header_under_a_condition_comes_again_outside_of_it() -> None:
    lines = embedded(metal="#if SOMETHING\n#include <c10/a.h>\n#endif\n#include <c10/a.h>", a="#pragma once\nA")
    assert lines.count("A") == 2


@pytest.mark.parametrize(
    ("condition", "seen"),
    [
        ("#ifdef __METAL__", True),
        ("#ifndef __METAL__", False),
        ("#if defined(__METAL_VERSION__)", True),
        ("#if !defined(__METAL__)  // host", False),
        ("#ifdef __METAL__\n#else", False),
        ("#ifndef __METAL__\n#else", True),
        ("#ifndef __METAL__\n#if OTHER", False),
        ("#if OTHER", True),
    ],
)
def test_headers_that_only_the_host_sees_are_dropped(condition: str, seen: bool) -> None:
    end = "\n#endif" * sum(line.startswith("#if") for line in condition.splitlines())
    lines = embedded(metal=f"{condition}\n#include <c10/a.h>{end}\nlast", a="A")
    assert ("A" in lines) is seen
    assert lines[-1] == "last"


def test_messages_of_the_compiler_name_files_and_lines_of_the_tree() -> None:
    text = embed({SOURCE: b"one\n#include <c10/a.h>\nthree", "c10/a.h": b"A"}, SOURCE).splitlines()
    assert text[text.index("A") - 1] == '#line 1 "c10/a.h"'
    assert text[text.index("three") - 1] == f'#line 3 "{SOURCE}"'


def test_a_header_that_includes_itself_without_end_is_refused() -> None:
    with pytest.raises(PatchstackError, match="includes itself"):
        embedded(metal="#include <c10/a.h>", a="#include <c10/a.h>")
