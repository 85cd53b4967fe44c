"""metal-check with Apple's compiler beside it: whose errors count, and what is said where the two disagree.

``xcrun`` is a stand-in. Apple's compiler itself was not run.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

import fake_xcrun
from gate_contexts import run_gate
from kernel_trees import commit
from patchstack.tree.git import Repository
from stackproof.gates.common.sources import KERNELS
from stackproof.gates.metal_check.spec import SPEC
from stackproof.model import GateContext, GateResult, Verdict

PATH = f"{KERNELS}/kernels/Some.metal"
CLEAN = """#include <metal_stdlib>
using namespace metal;
kernel void some(device float* out, uint i [[thread_position_in_grid]]) {
  out[i] = 1;
}
"""
BUILD = {
    "aten/src/ATen/CMakeLists.txt": 'metal_to_air(a b "-std=metal3.1")\n',
    "cmake/Metal.cmake": 'set(METAL_CFLAGS -Wall "-fno-fast-math" ${MORE})\n',
}


class Mac:
    """A machine with the stand-in on its path, and a repository."""

    def __init__(self, folder: Path, log: Path) -> None:
        self.folder = folder
        self.log = log
        self.root = folder / "tree"

    def judge(self, base: Mapping[str, str], head: Mapping[str, str]) -> GateResult:
        commits = []
        for files in ({**BUILD, **base}, head):
            for path, text in files.items():
                (self.root / path).parent.mkdir(parents=True, exist_ok=True)
                (self.root / path).write_text(text)
            commits.append(commit(self.root, "change"))
        repository = Repository.open(self.root)
        below, tip = (repository.resolve_commit(one) for one in commits)
        assert below is not None
        assert tip is not None
        return run_gate(SPEC, GateContext(repository, below, tip, self.folder / "cache"))


@pytest.fixture
def mac(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mac:
    made = Mac(tmp_path, fake_xcrun.install(tmp_path, monkeypatch))
    made.root.mkdir()
    return made


def failing(result: GateResult) -> list[tuple[str, str, int]]:
    return [(one.rule, one.path, one.line) for one in result.findings if one.fails]


def told(result: GateResult) -> list[str]:
    disagreements: list[str] = result.details["apple_compiler"]["disagreements"]
    assert [one.message for one in result.findings if one.rule == "disagreement"] == disagreements
    return disagreements


def test_both_compilers_judge_each_file_with_the_flags_of_the_tree(mac: Mac) -> None:
    result = mac.judge({}, {PATH: CLEAN})
    assert (result.verdict, result.cases, list(result.limits)) == (Verdict.PASSED, 1, [])
    assert result.details["apple_compiler"] == {
        "checks": 1,
        "version": fake_xcrun.VERSION,
        "flags": ["-Wall", "-fno-fast-math"],
        "not_run": [],
        "disagreements": [],
    }
    (compiled,) = [call for call in fake_xcrun.calls(mac.log) if "-c" in call]
    assert {"-Wall", "-fno-fast-math", "-std=metal3.1"} < set(compiled)
    assert not any("$" in word for word in compiled)


def test_an_error_that_only_apples_compiler_sees_fails_at_its_line(mac: Mac) -> None:
    """The seeded fault that this project's front end takes."""
    wrong = CLEAN.replace("= 1;", "= 1;  // apple: error this is not to be")
    result = mac.judge({}, {PATH: wrong})
    assert failing(result) == [("apple-compile", PATH, 4)]
    assert told(result) == [f"{PATH} at Metal 3.1: only Apple's compiler refuses it: this is not to be"]


def test_an_error_that_only_this_project_sees_is_a_note(mac: Mac) -> None:
    result = mac.judge({}, {PATH: CLEAN.replace("= 1;", "= lost;")})
    assert result.verdict is Verdict.PASSED
    assert [text.partition(": ")[2] for text in told(result)] == [
        "only this project refuses it, at line 4: use of undeclared identifier 'lost'"
    ]
    (note,) = [one for one in result.findings if one.rule == "compile"]
    assert "Apple's compiler takes the file" in note.message


def test_what_both_refuse_is_no_disagreement_and_fails_once(mac: Mac) -> None:
    result = mac.judge({}, {PATH: CLEAN.replace("= 1;", "= lost;  // apple: error no such name")})
    assert (failing(result), told(result)) == ([("apple-compile", PATH, 4)], [])


def test_a_kernel_that_only_one_of_them_makes_is_told(mac: Mac) -> None:
    result = mac.judge({}, {PATH: CLEAN + "// apple: without some\n"})
    assert result.verdict is Verdict.PASSED
    assert told(result) == [f"{PATH} at Metal 3.1: only this project finds 1 of the kernels: some"]


def test_what_a_reviewer_would_say_fails_although_apples_compiler_takes_it(mac: Mac) -> None:
    data = CLEAN + "kernel void old(constant float* in, device float* out) {\n  out[0] = in[0];\n}\n"
    assert failing(mac.judge({}, {PATH: data})) == [("constant-data", PATH, 6)]


def test_a_warning_of_apples_is_a_note(mac: Mac) -> None:
    result = mac.judge({}, {PATH: CLEAN.replace("= 1;", "= 1;  // apple: warning think again")})
    assert result.verdict is Verdict.PASSED
    assert [(one.message, one.line) for one in result.findings] == [("think again", 4)]


def test_an_error_of_apples_that_the_base_has_too_is_a_note(mac: Mac) -> None:
    wrong = CLEAN.replace("= 1;", "= 1;  // apple: error old")
    more = CLEAN.partition("kernel")[2].replace("some", "more")
    result = mac.judge({PATH: wrong}, {PATH: f"{wrong}kernel{more}"})
    assert failing(result) == []
    assert "as before the stack" in result.reason


@pytest.mark.parametrize("version", ["9.9"])
def test_a_version_that_this_xcode_does_not_know_is_not_run_there_and_this_project_judges(
    mac: Mac, version: str
) -> None:
    build = {"aten/src/ATen/CMakeLists.txt": f'metal_to_air(a b "-std=metal{version}")\n'}
    result = mac.judge(build, {PATH: CLEAN.replace("= 1;", "= lost;")})
    assert failing(result) == [("compile", PATH, 4)]
    assert result.details["apple_compiler"]["not_run"] == [
        "Metal 9.9: error: invalid value 'metal9.9' in '-std=metal9.9'"
    ]
    assert result.limits


def test_an_xcode_without_the_metal_compiler_is_said_with_what_to_type(
    mac: Mac, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_XCRUN_FAILS", "metal")
    result = mac.judge({}, {PATH: CLEAN})
    assert result.verdict is Verdict.PASSED
    (reason,) = result.details["apple_compiler"]["not_run"]
    assert "xcodebuild -downloadComponent MetalToolchain" in reason


def test_a_linker_that_fails_is_an_error_of_the_file(mac: Mac, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_XCRUN_FAILS", "metallib")
    assert failing(mac.judge({}, {PATH: CLEAN})) == [("apple-compile", PATH, 0)]
