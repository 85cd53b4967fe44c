"""``validate-stack apple-kernels`` with files: what it prints, as text and as JSON, and how it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import metallib_bytes
from documents import document
from skips import require_packages
from stackproof.cli import main


@pytest.fixture
def metallib(tmp_path: Path) -> Path:
    path = tmp_path / "some.metallib"
    path.write_bytes(metallib_bytes.container({"add_float": b"one", "add_half": b"two", "mul_float": b"three"}))
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = 0
    try:
        main(["apple-kernels", *arguments])
    except SystemExit as done:
        code = int(done.code or 0)
    out, error = capsys.readouterr()
    return code, out, error


def test_list_prints_a_line_for_each_kernel_and_the_count(metallib: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, error = run(capsys, "list", "--file", str(metallib), "--name", "add", "--name", "float")
    assert (code, error) == (0, "")
    first, last = out.splitlines()
    assert first.startswith("add_float  3  ")
    assert last == "1 of 3 functions of some.metallib"


def test_list_as_json_has_the_digests(metallib: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _error = run(capsys, "list", "--file", str(metallib), "--json")
    listed = document(out)
    assert code == 0
    assert [kernel["name"] for kernel in listed["kernels"]] == ["add_float", "add_half", "mul_float"]
    assert all(len(kernel["sha256"]) == 64 for kernel in listed["kernels"])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["show", "nope"], "nope: no such kernel; expected one of the 3 of some.metallib"),
        (["list", "--name", "("], "(: not a regular expression"),
    ],
)
def test_a_refusal_is_one_sentence_and_json_on_request(
    metallib: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    code, out, error = run(capsys, *arguments, "--file", str(metallib), "--json")
    assert code == 2
    assert error.startswith(f"validate-stack: {sentence}")
    assert error.count("\n") == 1
    assert json.loads(out)["error"]["problem"]


def test_bitcode_that_llvm_cannot_read_is_named(metallib: Path, capsys: pytest.CaptureFixture[str]) -> None:
    require_packages("llvmlite")
    code, _out, error = run(capsys, "show", "add_half", "--file", str(metallib))
    assert code == 2
    assert error.startswith("validate-stack: add_half: LLVM cannot read the bitcode")


def test_a_release_without_a_wheel_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    code, _out, error = run(capsys, "list", "--release", "2.6")
    assert code == 2
    assert "does not come from a wheel" in error


def test_an_option_before_the_subcommand_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as done:
        main(["--jobs", "3", "apple-kernels", "list"])
    assert done.value.code == 2
    assert "--jobs stands before 'apple-kernels', which has options of its own" in capsys.readouterr().err
