"""The gate ``lint``: only lines that the range wrote, judged by the tree's own settings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compat_trees import TreeRepository, of_rule
from gate_contexts import run_gate
from patchstack.tree.git import Tree
from skips import lacks, pip
from stackproof.gates.lint.formatters import ToolNotRunError, tool
from stackproof.gates.lint.patterns import CONFIG_PATH, read_patterns
from stackproof.gates.lint.spec import SPEC as LINT
from stackproof.model import GateResult, Verdict

METAL = "aten/src/ATen/native/mps/kernels/Paint.metal"
PYTHON = "torch/paint.py"
STYLE = "BasedOnStyle: LLVM\nIndentWidth: 2\n"
RUFF = '[tool.ruff]\nline-length = 88\n[tool.ruff.lint]\nselect = ["F", "B"]\n'
TIDY = "kernel void fade(device float *x) { x[0] = 1; }\n"
SETTINGS = {".clang-format": STYLE, "pyproject.toml": RUFF, METAL: TIDY, PYTHON: "x = 1\n"}
# The keys of an adapter's message, in its order.
SHAPE = ["path", "line", "char", "code", "severity", "name", "original", "replacement", "description"]


def judged(tmp_path: Path, after: dict[str, str | bytes], before: dict[str, str] | None = None) -> GateResult:
    lab = TreeRepository(tmp_path / "tree")
    base = lab.commit(SETTINGS if before is None else before)
    return run_gate(LINT, lab.context(base, lab.commit(after, parents=(base,))))


def has(name: str) -> bool:
    try:
        tool(name)
    except ToolNotRunError:
        return False
    return True


needs_clang_format = pytest.mark.skipif(not has("clang-format"), reason=lacks("no clang-format", pip("clang-format")))
needs_ruff = pytest.mark.skipif(not has("ruff"), reason=lacks("no ruff", pip("ruff")))


@needs_clang_format
@needs_ruff
def test_tidy_lines_pass(tmp_path: Path) -> None:
    result = judged(tmp_path, {METAL: TIDY + TIDY.replace("fade", "glow"), PYTHON: "x = 2\n"})
    assert (result.verdict, result.cases, list(result.findings)) == (Verdict.PASSED, 2, [])


UNTIDY = "kernel void   glow(device float*x){x[0]=1;}\n"


@needs_clang_format
def test_untidy_lines_that_are_only_moved_are_a_note_and_one_more_of_them_fails(tmp_path: Path) -> None:
    before = {**SETTINGS, METAL: UNTIDY + TIDY}
    moved = judged(tmp_path / "moved", {METAL: TIDY + UNTIDY}, before)
    assert moved.verdict is Verdict.PASSED
    assert [finding.fails for finding in of_rule(moved, "CLANGFORMAT/format")] in ([], [False])
    more = judged(tmp_path / "more", {METAL: UNTIDY + TIDY + UNTIDY.replace("glow", "shine")}, before)
    assert [finding.fails for finding in of_rule(more, "CLANGFORMAT/format")] == [True]


def test_blanks_of_a_moved_line_are_a_note_and_the_blanks_of_other_lines_excuse_nothing(tmp_path: Path) -> None:
    before = {**SETTINGS, PYTHON: "def f():\n    x = 1  \n    y = 2\n    return x + y\n"}
    moved = judged(tmp_path / "moved", {PYTHON: "def f():\n    y = 2\n    x = 1  \n    return x + y\n"}, before)
    assert [finding.fails for finding in of_rule(moved, "SPACES/trailing spaces")] in ([], [False])
    blank = {**SETTINGS, PYTHON: "x = 1\n  \ny = 2\n"}
    more = judged(tmp_path / "more", {PYTHON: "x = 1\n  \ny = 2\n   \nz = 3\n"}, blank)
    assert [(one.line, one.fails) for one in of_rule(more, "SPACES/trailing spaces")] == [(4, True)]


@needs_clang_format
def test_a_badly_formatted_kernel_fails_with_what_was_expected(tmp_path: Path) -> None:
    result = judged(tmp_path, {METAL: TIDY + "kernel void   glow(device float*x){x[0]=1;}\n"})
    assert result.verdict is Verdict.FAILED
    (finding,) = of_rule(result, "CLANGFORMAT/format")
    assert (finding.path, finding.line) == (METAL, 2)
    assert "kernel void glow(device float *x) { x[0] = 1; }" in finding.message


@needs_clang_format
def test_old_lines_are_not_judged(tmp_path: Path) -> None:
    untidy = "kernel void   glow(device float*x){x[0]=1;}\n"
    before = SETTINGS | {METAL: untidy, PYTHON: "import os \n"}
    result = judged(tmp_path, {METAL: untidy + "\n" + TIDY, PYTHON: "import os \nx = 1\n"}, before)
    assert result.verdict is Verdict.PASSED


@needs_clang_format
def test_the_nearest_style_file_decides(tmp_path: Path) -> None:
    wide = {"aten/src/ATen/native/mps/.clang-format": "BasedOnStyle: LLVM\nIndentWidth: 8\n"}
    body = "kernel void glow(device float *x) {\n        x[0] = 1;\n        x[1] = 2;\n}\n"
    assert judged(tmp_path, {METAL: TIDY + body}, SETTINGS | wide).verdict is Verdict.PASSED
    assert judged(tmp_path / "plain", {METAL: TIDY + body}).verdict is Verdict.FAILED


@needs_ruff
def test_ruff_runs_with_the_rules_of_the_tree(tmp_path: Path) -> None:
    result = judged(tmp_path, {PYTHON: "import os\n\n\ndef f(x=[]):\n    return x\n\n\ny: int= 1\n"})
    assert {finding.rule for finding in result.findings} == {"RUFF/F401", "RUFF/B006"}
    assert {finding.line for finding in result.findings} == {1, 4}


@needs_ruff
def test_python_that_does_not_parse_fails(tmp_path: Path) -> None:
    assert judged(tmp_path, {PYTHON: "def f(:\n"}).verdict is Verdict.FAILED


@pytest.mark.parametrize(
    ("content", "rule", "line"),
    [
        (b"x = 1\ny = 2 \n", "SPACES/trailing spaces", 2),
        (b"x = 1\ny = 2\t\n", "SPACES/trailing spaces", 2),
        (b"x = 1\nif x:\n\ty = 2\n", "TABS/saw some tabs", 3),
        (b"x = 1\r\n", "NEWLINE/CRLF", 1),
        (b"x = 1\ny = 2", "NEWLINE/trailing newline", 2),
        (b"x = 1\ny = 2\n\n", "NEWLINE/trailing newline", 3),
    ],
)
def test_each_white_space_fault_is_found_on_its_line(tmp_path: Path, content: bytes, rule: str, line: int) -> None:
    result = judged(tmp_path, {"torch/fresh.txt": content})
    assert result.verdict is Verdict.FAILED
    assert [(finding.rule, finding.line) for finding in result.findings if finding.rule == rule] == [(rule, line)]


def test_the_messages_have_the_shape_of_the_adapters(tmp_path: Path) -> None:
    result = judged(tmp_path, {"torch/fresh.txt": "x = 1 \n"})
    (line,) = result.details["lint_messages"]
    message = json.loads(line)
    assert list(message) == SHAPE
    assert (message["severity"], message["code"], message["char"]) == ("error", "SPACES", 6)


@needs_clang_format
def test_a_formatter_gives_the_whole_file_and_its_replacement_once(tmp_path: Path) -> None:
    result = judged(tmp_path, {METAL: "int  a;\n" + TIDY + "int  b;\n"})
    messages = [json.loads(line) for line in result.details["lint_messages"]]
    assert [message["replacement"] for message in messages] == ["int a;\n" + TIDY + "int b;\n", None]


def test_a_tree_without_style_files_is_not_run(tmp_path: Path) -> None:
    result = judged(tmp_path, {METAL: TIDY + TIDY, PYTHON: "y = 1\n"}, {METAL: TIDY})
    assert result.verdict is Verdict.NOT_RUN
    assert "the tree has no .clang-format" in result.reason
    assert "the tree has no settings for ruff" in result.reason


@needs_clang_format
def test_a_style_that_the_tool_refuses_is_not_run_and_says_so(tmp_path: Path) -> None:
    before = SETTINGS | {".clang-format": "BasedOnStyle: NoSuchStyle\n"}
    result = judged(tmp_path, {METAL: TIDY + TIDY}, before)
    assert result.verdict is Verdict.NOT_RUN
    assert "clang-format refuses" in result.reason


def test_binary_and_removed_files_are_left_alone(tmp_path: Path) -> None:
    result = judged(tmp_path, {"torch/a.png": b"\0\1 \n", PYTHON: "x = 3\n"})
    assert [finding.path for finding in result.findings] == []


LINTRUNNER = """
[[linter]]
code = 'SPACES'
include_patterns = ['**']
exclude_patterns = ['torch/**', '**/*.md']
[[linter]]
code = 'CLANGFORMAT'
include_patterns = ['aten/src/ATen/*.h', 'aten/**/*.metal']
"""


@pytest.mark.parametrize(
    ("code", "path", "applies"),
    [
        ("SPACES", "a.py", True),
        ("SPACES", "torch/a.py", False),
        ("SPACES", "README.md", False),
        ("SPACES", "docs/deep/README.md", False),
        ("CLANGFORMAT", "aten/src/ATen/A.h", True),
        ("CLANGFORMAT", "aten/src/ATen/native/A.h", False),
        ("CLANGFORMAT", "aten/x.metal", True),
        ("CLANGFORMAT", METAL, True),
    ],
)
def test_the_patterns_of_the_tree_decide_who_sees_a_file(tmp_path: Path, code: str, path: str, applies: bool) -> None:
    lab = TreeRepository(tmp_path / "tree")
    context = lab.context(commit := lab.commit({CONFIG_PATH: LINTRUNNER}), commit)
    patterns = read_patterns(Tree.at(context.repository, commit))
    if not patterns.from_tree:
        pytest.skip(lacks("this Python has no TOML reader", pip("tomli")))
    assert patterns.applies(code, path) is applies


def test_an_excluded_file_is_not_judged(tmp_path: Path) -> None:
    result = judged(tmp_path, {"torch/notes.txt": "x \n"}, SETTINGS | {CONFIG_PATH: LINTRUNNER})
    assert of_rule(result, "SPACES/trailing spaces") == []


def test_a_configuration_that_is_no_toml_is_malformed_input(tmp_path: Path) -> None:
    result = judged(tmp_path, {"a.txt": "x\n"}, SETTINGS | {CONFIG_PATH: "[[linter\n"})
    assert result.verdict is Verdict.FAILED
    assert [finding.rule for finding in result.findings] == ["malformed-input"]
