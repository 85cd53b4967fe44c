"""What the build of the stand-in device keeps between runs, and between clones of the project."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stackproof.engines.standin import build
from stackproof.engines.standin.build import precompiled_prefix
from stackproof.engines.standin.clang import find_clang
from stackproof.engines.standin.headers import MpsHeaders
from stackproof.engines.standin.host_file import common_beginning
from stackproof.engines.standin.precompiled import beginning_with, precompile

HEADER = "constexpr int answer = 42;\n"


def test_precompiled_headers_are_made_again_once_a_header_says_something_else(tmp_path: Path, compiler: None) -> None:
    clang = find_clang()
    header, beside = tmp_path / "prefix.h", tmp_path / "beside.h"
    header.write_text('#include "beside.h"\n')
    beside.write_text(HEADER)
    first = precompiled_prefix(clang, tmp_path, header)
    made = first.stat().st_mtime_ns
    assert precompiled_prefix(clang, tmp_path, header).stat().st_mtime_ns == made

    beside.write_text(HEADER.replace("42", "421"))
    again = precompiled_prefix(clang, tmp_path, header)
    assert again == first
    assert again.stat().st_mtime_ns > made


@pytest.mark.parametrize("flag", ["-I", "-isystem"])
def test_a_file_compiles_on_precompiled_headers_that_were_installed_again(
    tmp_path: Path, compiler: None, flag: str
) -> None:
    """A header with another time stamp would be read a second time, though ``#pragma once`` stands in it."""
    clang = find_clang()
    header, beside, user = tmp_path / "prefix.h", tmp_path / "installed/beside.h", tmp_path / "user.mm"
    beside.parent.mkdir()
    beside.write_text("#pragma once\nenum class Answer { known };\n")
    header.write_text("#include <beside.h>\n")
    user.write_text("#include <beside.h>\nAnswer given = Answer::known;\n")
    flags, output = [f"{flag}{beside.parent}"], tmp_path / "prefix.pch"
    for seconds in (1, 2):
        os.utime(beside, (seconds, seconds))
        assert precompile(clang.header_for_this_machine, clang.for_this_machine, flags, header, output) is None
        use = [*flags, *beginning_with(output), "-c", str(user), "-o", str(tmp_path / "user.o")]
        assert clang.for_this_machine(use).errors == ()


def test_headers_that_do_not_compile_leave_nothing_behind(tmp_path: Path, compiler: None) -> None:
    header = tmp_path / "prefix.h"
    header.write_text("no such language")
    with pytest.raises(build.ToolchainError, match="cannot be compiled"):
        precompiled_prefix(find_clang(), tmp_path / "kept", header)
    assert [path.suffix for path in (tmp_path / "kept").iterdir()] == [".lock"]


def test_the_device_of_a_clone_elsewhere_has_the_same_objects(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, compiler: None
) -> None:
    clang = find_clang()
    headers = MpsHeaders(tmp_path / "most", tmp_path / "own", ())
    first = [unit.key for unit in build._device_units(clang, headers)]
    flags = build._torch_flags
    monkeypatch.setattr(build, "_torch_flags", lambda *folders: (*flags(*folders), "-I/another/clone"))
    elsewhere = MpsHeaders(tmp_path / "clone/most", tmp_path / "clone/own", ())
    assert [unit.key for unit in build._device_units(clang, elsewhere)] == first


COMMON = "#include <ATen/native/mps/OperationUtils.h>"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"// words\n#define A\n#include <ATen/core/Tensor.h>\n{COMMON}\nint x;\n", f"#define A\n{COMMON}\n"),
        (f"#ifdef A\n{COMMON}\n#endif\n", ""),
        (f"#define A \\\n  1\n{COMMON}\n", ""),
        (f"int x;\n{COMMON}\n", ""),
        ("#include <ATen/core/Tensor.h>\n", ""),
    ],
)
def test_only_a_file_that_begins_like_most_gets_their_precompiled_headers(text: str, expected: str) -> None:
    assert common_beginning(text) == expected
