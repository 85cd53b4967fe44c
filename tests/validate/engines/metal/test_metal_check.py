"""The gate "metal-check": what it rejects, where it points, and which lines it holds against a stack."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from gate_contexts import run_gate
from metal_kernels import KERNELS as SOURCES
from patchstack.tree.git import GitCommitHash, Repository, Tree
from references import clone_of
from stackproof.engines.metal.build import Source
from stackproof.engines.metal.rules import apply_rules
from stackproof.engines.metal.typecheck import check_source
from stackproof.gates.common.sources import KERNELS
from stackproof.gates.metal_check.gate import metal_versions
from stackproof.gates.metal_check.spec import SPEC as METAL_CHECK
from stackproof.model import Finding, GateContext, GateResult, Verdict

PATH = f"{KERNELS}/kernels/Some.metal"
CLEAN = """#include <metal_stdlib>
using namespace metal;
kernel void some(device float* out, uint i [[thread_position_in_grid]]) {
  out[i] = 1;
}
"""


def expected_lines(name: str) -> dict[int, set[str]]:
    lines = (SOURCES / name).read_text().splitlines()
    marks = {n: re.search(r"// ([a-z0-9+ -]+)$", line) for n, line in enumerate(lines, 1)}
    return {
        n: set(mark[1].split()) for n, mark in marks.items() if mark and n > 1 and not lines[n - 1].startswith("//")
    }


@pytest.mark.parametrize("version", ["3.1", "4.0"])
def test_every_seeded_error_is_found_at_its_line_and_nothing_else(version: str) -> None:
    expected = expected_lines("rejected.metal")
    if version == "4.0":
        expected = {line: rules for line, rules in expected.items() if rules != {"pre-c++17-compat"}}
    checked = check_source(Source(SOURCES / "rejected.metal", metal_version=version))
    found: dict[int, set[str]] = {}
    for one in (*checked.errors, *checked.warnings):
        # The instantiation of a template with an error fails too, where it is written.
        if "no matching function for call to 'narrows'" not in one.message:
            found.setdefault(one.line, set()).add(one.flag or "compile")
    assert found == expected


def test_a_variable_that_may_be_unset_is_a_warning(tmp_path: Path) -> None:
    source = tmp_path / "unset.metal"
    source.write_text(
        "kernel void k(device float* out, constant int& n) {\n  float x;\n  if (n > 3)\n    x = 1;\n  out[0] = x;\n}\n"
    )
    checked = check_source(Source(source))
    assert checked.errors == ()
    assert [(one.flag, one.line) for one in checked.warnings] == [("sometimes-uninitialized", 3)]


def test_messages_speak_metal() -> None:
    checked = check_source(Source(SOURCES / "rejected.metal"))
    message = next(one.message for one in checked.errors if one.line == 10)
    assert "threadgroup float" in message
    assert "__local" not in message


def test_every_broken_rule_is_found_at_its_line_and_nothing_else() -> None:
    checked = check_source(Source(SOURCES / "objectionable.metal"))
    assert checked.errors == ()
    found: dict[int, set[str]] = {}
    for one in apply_rules(checked):
        found.setdefault(one.line, set()).add(one.rule)
    assert found == expected_lines("objectionable.metal")


@pytest.mark.parametrize("name", ["clean.metal", "functions.metal"])
def test_correct_kernels_have_no_findings(name: str) -> None:
    checked = check_source(Source(SOURCES / name))
    assert checked.errors == ()
    broken = [one for one in apply_rules(checked) if one.rule != "missing-dtype"]
    assert broken == []


def test_bfloat_is_unknown_before_metal_3_1(tmp_path: Path) -> None:
    source = tmp_path / "old.metal"
    source.write_text("#include <metal_stdlib>\nkernel void k(device bfloat* out) {\n  out[0] = 1;\n}\n")
    assert check_source(Source(source, metal_version="3.1")).errors == ()
    assert "bfloat" in check_source(Source(source, metal_version="3.0")).errors[0].message


def test_functions_need_an_include_and_types_do_not(tmp_path: Path) -> None:
    source = tmp_path / "bare.metal"
    source.write_text("kernel void k(device float4* out) {\n  out[0] = float4(1);\n}\n")
    assert check_source(Source(source)).errors == ()
    source.write_text("kernel void k(device float* out) {\n  out[0] = metal::sqrt(2.0f);\n}\n")
    assert check_source(Source(source)).errors[0].line == 2


class Stack:
    """A repository with a base commit and one commit on top."""

    def __init__(self, folder: Path, base: Mapping[str, str], head: Mapping[str, str]) -> None:
        self.folder = folder
        self.git("init", "-q")
        self.base, self.head = self.commit(base), self.commit(head)

    def git(self, *arguments: str) -> str:
        identity = ["-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]
        done = subprocess.run(
            ["git", *identity, *arguments], cwd=self.folder, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def commit(self, files: Mapping[str, str]) -> str:
        for path, text in files.items():
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / path).write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "change")
        return self.git("rev-parse", "HEAD")

    def judge(self, cache: Path) -> GateResult:
        repository = Repository.open(self.folder)
        base, head = repository.resolve_commit(self.base), repository.resolve_commit(self.head)
        assert base is not None
        assert head is not None
        return run_gate(METAL_CHECK, GateContext(repository, base, head, cache))


def failing(result: GateResult) -> list[tuple[str, str, int]]:
    return [(one.rule, one.path, one.line) for one in result.findings if one.fails]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "repository"
    path.mkdir()
    return path


def test_a_stack_without_metal_is_not_run(folder: Path, tmp_path: Path) -> None:
    stack = Stack(folder, {PATH: CLEAN}, {"README.md": "words\n"})
    result = stack.judge(tmp_path / "cache")
    assert result.verdict is Verdict.NOT_RUN
    assert "touches no Metal source" in result.reason


def test_a_correct_stack_passes_once_per_metal_version(folder: Path, tmp_path: Path) -> None:
    cmake = {"aten/src/ATen/CMakeLists.txt": 'metal_to_air(a b "-std=metal3.1")\nmetal_to_air(a b "-std=metal4.0")\n'}
    stack = Stack(folder, cmake, {PATH: CLEAN})
    result = stack.judge(tmp_path / "cache")
    assert (result.verdict, result.cases, result.failed) == (Verdict.PASSED, 2, 0)
    assert [row["metal_version"] for row in result.details["files"]] == ["3.1", "4.0"]
    assert result.limits


def test_an_error_is_one_finding_at_the_line_of_the_tree(folder: Path, tmp_path: Path) -> None:
    wrong = CLEAN.replace("out[i] = 1;", "out[i] = lost;")
    result = Stack(folder, {PATH: CLEAN}, {PATH: wrong}).judge(tmp_path / "cache")
    assert result.verdict is Verdict.FAILED
    assert failing(result) == [("compile", PATH, 4)]


def test_a_touched_header_brings_its_sources(folder: Path, tmp_path: Path) -> None:
    header = f"{KERNELS}/kernels/Some.h"
    using = CLEAN.replace("using", f"#include <{header.removeprefix('aten/src/')}>\nusing").replace("= 1", "= one()")
    good = "#pragma once\ninline float one() {\n  return 1;\n}\n"
    stack = Stack(folder, {PATH: using, header: good}, {header: good.replace("return 1", "return none")})
    assert failing(stack.judge(tmp_path / "cache")) == [("compile", header, 3)]


def test_a_missing_include_is_a_finding(folder: Path, tmp_path: Path) -> None:
    result = Stack(folder, {}, {PATH: "#include <c10/metal/absent.h>\n" + CLEAN}).judge(tmp_path / "cache")
    assert result.verdict is Verdict.FAILED
    assert "absent.h" in result.findings[0].message


CMAKE = {"aten/src/ATen/CMakeLists.txt": 'metal_to_air(a b "-std=metal3.1")\n'}
OLD = CLEAN + "kernel void old(constant float* in, device float* out) {\n  out[0] = in[0];\n}\n"
LOST = CLEAN + "kernel void old(device float* out) {\n  out[0] = lost;\n}\n"


def informed(result: GateResult) -> list[tuple[str, int]]:
    notes: list[Finding] = [one for one in result.findings if not one.fails]
    assert all("(as before the stack)" in one.message for one in notes)
    return [(one.rule, one.line) for one in notes]


def test_a_rule_fails_on_what_the_stack_adds_and_informs_of_what_the_base_has(folder: Path, tmp_path: Path) -> None:
    new = OLD + "kernel void recent(constant float* in, device float* out) {\n  out[0] = in[0];\n}\n"
    result = Stack(folder, {**CMAKE, PATH: OLD}, {PATH: new}).judge(tmp_path / "cache")
    assert failing(result) == [("constant-data", PATH, 9)]
    assert informed(result) == [("constant-data", 6)]


def test_a_fault_of_the_base_that_only_moves_is_a_note(folder: Path, tmp_path: Path) -> None:
    moved = OLD.replace("using namespace metal;\n", "using namespace metal;\n\n// Words.\n\n")
    result = Stack(folder, {**CMAKE, PATH: OLD}, {PATH: moved}).judge(tmp_path / "cache")
    assert result.verdict is Verdict.PASSED
    assert informed(result) == [("constant-data", 9)]


def test_a_fault_that_is_added_to_a_definition_with_another_one_fails(folder: Path, tmp_path: Path) -> None:
    worse = OLD.replace("constant float* in,", "constant float* in, constant half* more,")
    result = Stack(folder, {**CMAKE, PATH: OLD}, {PATH: worse}).judge(tmp_path / "cache")
    assert [finding.message.split()[1] for finding in result.findings if finding.fails] == ["in", "more"]


def test_the_same_statement_with_the_same_fault_once_more_fails(folder: Path, tmp_path: Path) -> None:
    old = LOST.replace("lost;", "lost;\n  out[1] = 0;")
    twice = old.replace("out[1] = 0;", "out[0] = lost;")
    result = Stack(folder, {**CMAKE, PATH: old}, {PATH: twice}).judge(tmp_path / "cache")
    assert (result.verdict, len(failing(result)), len(informed(result))) == (Verdict.FAILED, 1, 1)


def test_an_error_of_the_base_is_a_note_and_its_file_counts_as_not_checked(folder: Path, tmp_path: Path) -> None:
    edited = LOST.replace("out[i] = 1;", "out[i] = 2;")
    other = PATH.replace("Some", "Other")
    stack = Stack(folder, {**CMAKE, PATH: LOST}, {PATH: edited})
    result = stack.judge(tmp_path / "cache")
    assert (result.verdict, result.reason) == (
        Verdict.NOT_RUN,
        "what the stack touches does not compile, as before the stack",
    )
    assert informed(result) == [("compile", 7)]
    stack.head = stack.commit({other: CLEAN})
    result = stack.judge(tmp_path / "cache")
    assert (result.verdict, result.cases) == (Verdict.PASSED, 1)
    stack.head = stack.commit({PATH: edited.replace("out[i] = 2;", "out[i] = missing;")})
    result = stack.judge(tmp_path / "cache")
    assert failing(result) == [("compile", PATH, 4)]
    assert informed(result) == [("compile", 7)]


@pytest.mark.exhaustive
@pytest.mark.needs_reference
def test_all_kernels_of_pytorch_2_6_type_check_unmodified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clone = Clone(clone_of("2.6", tmp_path / "tree.git"))
    assert metal_versions(Tree.at(clone.repository, clone.head)) == ("3.0", "3.1")
    monkeypatch.setattr("stackproof.gates.metal_check.gate.metal_versions", lambda tree: ("3.1",))
    context = GateContext(clone.repository, clone.with_other_kernels(), clone.head, tmp_path)
    result = run_gate(METAL_CHECK, context)
    assert result.verdict is Verdict.PASSED
    assert len(result.details["files"]) == 15
    assert result.cases == 196


class Clone:
    """A bare clone of a reference tree, and a commit of which every Metal source differs from the tree's."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.repository = Repository.open(path)
        head = self.repository.resolve_commit("main")
        assert head is not None
        self.head = head

    def git(self, *arguments: str, text: bytes = b"") -> str:
        env = {**os.environ, "GIT_INDEX_FILE": str(self.path / "other-index")}
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *arguments]
        done = subprocess.run(command, cwd=self.path, env=env, input=text, check=True, capture_output=True)
        return done.stdout.decode().strip()

    def with_other_kernels(self) -> GitCommitHash:
        tree = Tree.at(self.repository, self.head)
        self.git("read-tree", self.head)
        for path in tree.walk("aten/src/ATen/native/mps"):
            if path.endswith(".metal"):
                blob = self.git("hash-object", "-w", "--stdin", text=(tree.read(path) or b"") + b"// other\n")
                self.git("update-index", "--cacheinfo", f"100644,{blob},{path}")
        return GitCommitHash(self.git("commit-tree", "-m", "Other kernels", self.git("write-tree")))
