"""Files that are not what they should be: one clear finding with the line, and exit status 2; never a traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from compat_trees import BLEND, WEIGH, TreeRepository, functions, with_functions
from patchstack.errors import ExitCode
from stackproof.gates.common.errors import MALFORMED_RULE, MalformedTreeError
from stackproof.gates.common.functions import FUNCTIONS_PATH, TAGS_PATH
from stackproof.gates.fc_window.allowlist import CHECKER_PATH
from stackproof.model import Finding, Verdict

GOOD = functions(BLEND, WEIGH)
MEBIBYTE = 1 << 20


def judged(tmp_path: Path, files: dict[str, str | bytes]) -> Finding:
    """The one finding about a head tree with these files; the base tree is good."""
    lab = TreeRepository(tmp_path / "tree")
    base = lab.commit(with_functions(BLEND, WEIGH))
    result = lab.judge(base, lab.commit(files, parents=(base,)))
    assert result.verdict is Verdict.FAILED
    (finding,) = result.findings
    assert finding.rule == MALFORMED_RULE
    assert result.reason.startswith(finding.path)
    return finding


@pytest.mark.parametrize(
    ("content", "line", "said"),
    [
        (GOOD.replace("  variants: function, method\n", "  variants: [function\n", 1), 4, "not YAML"),
        (GOOD.replace("  variants: function, method\n", "\tvariants: function\n", 1), 2, "not YAML"),
        (GOOD.replace("  variants", "  func: weigh() -> Tensor\n  variants", 1), 2, "the key 'func' stands twice"),
        (GOOD + "\n" + functions(BLEND), 7, "aten::blend is defined twice; found line 1"),
        (f"{GOOD}<<<<<<< ours\n=======\n>>>>>>> theirs\n", 6, "unresolved merge conflict"),
        (GOOD + "\n=======\n", 7, "unresolved merge conflict"),
        (GOOD.replace("int scale", "int"), 4, "the schema cannot be read"),
        (GOOD.replace("-> Tensor", "", 1), 1, "the schema cannot be read"),
        (GOOD + "\n- variants: function\n", 7, "the entry has no 'func' key"),
        (GOOD + "\n- just text\n", 7, "expected a mapping"),
        (GOOD + "\n- func: [a, b]\n", 7, "expected plain text"),
        ("func: one mapping\n", 1, "expected a list of functions"),
        ("", 1, "expected a list of functions"),
        (
            GOOD + "\n- func: f() -> Tensor\n  dispatch:\n    CPU, MPS: f\n    MPS: g\n",
            10,
            "the dispatch key MPS stands twice",
        ),
        (GOOD + "\n- func: f() -> Tensor\n  dispatch: f\n", 8, "expected a mapping"),
        (GOOD.encode() + b"\n# \xff\xfe\n", 7, "the text is not UTF-8"),
        ("[" * 5000, 0, "nest"),
    ],
    ids=[
        "open-bracket",
        "tab",
        "duplicate-key",
        "duplicate-operator",
        "merge-markers",
        "one-merge-marker",
        "no-name",
        "no-returns",
        "no-func",
        "text-entry",
        "list-func",
        "mapping",
        "empty",
        "comma-key-twice",
        "text-dispatch",
        "not-utf-8",
        "deep",
    ],
)
def test_each_fault_of_the_functions_file_is_one_finding_with_its_line(
    tmp_path: Path, content: str | bytes, line: int, said: str
) -> None:
    finding = judged(tmp_path, {FUNCTIONS_PATH: content})
    assert finding.path == FUNCTIONS_PATH
    assert said in finding.message
    if line:
        assert finding.line == line


def test_a_file_of_100_megabytes_is_refused_without_being_read(tmp_path: Path) -> None:
    finding = judged(tmp_path, {FUNCTIONS_PATH: b"#" * (100 * MEBIBYTE)})
    assert "too large to be what its name says; found 100 MiB" in finding.message


def test_a_fault_of_the_base_tree_says_which_tree_it_is_in(tmp_path: Path) -> None:
    lab = TreeRepository(tmp_path / "tree")
    base = lab.commit({FUNCTIONS_PATH: GOOD.replace("int scale", "int")})
    result = lab.judge(base, lab.commit({FUNCTIONS_PATH: GOOD}, parents=(base,)))
    assert result.findings[0].message.startswith("in the base tree, the schema cannot be read")


@pytest.mark.parametrize(
    ("path", "content", "line"),
    [
        (TAGS_PATH, "- tag: core\n- desc: none\n", 2),
        (TAGS_PATH, "- tag: [\n", 2),
        (CHECKER_PATH, "x = 1\ndef broken(:\n", 2),
        (CHECKER_PATH, "import datetime\nALLOW_LIST = [('aten::(', datetime.date(2030, 1, 1))]\n", 2),
    ],
    ids=["tag-without-name", "tags-not-yaml", "checker-not-python", "bad-pattern"],
)
def test_a_fault_of_another_file_is_found_in_that_file(tmp_path: Path, path: str, content: str, line: int) -> None:
    finding = judged(tmp_path, {path: content})
    assert (finding.path, finding.line) == (path, line)


def test_the_error_carries_the_exit_status_for_unusable_input() -> None:
    error = MalformedTreeError("not YAML", where="a/b.yaml:7")
    assert error.exit_code is ExitCode.USAGE
    assert error.place == ("a/b.yaml", 7)


def test_a_tree_that_is_not_pytorch_is_not_run(tmp_path: Path) -> None:
    lab = TreeRepository(tmp_path / "tree")
    base = lab.commit({"README.md": "hello"})
    result = lab.judge(base, base)
    assert result.verdict is Verdict.NOT_RUN
    assert "not a PyTorch tree" in result.reason


def test_the_command_ends_with_exit_code_2_and_one_clear_sentence(tmp_path: Path) -> None:
    lab = TreeRepository(tmp_path / "tree")
    base = lab.commit(with_functions(BLEND))
    head = lab.commit({FUNCTIONS_PATH: GOOD + "\n=======\n"}, parents=(base,))
    command = [sys.executable, "-m", "stackproof.cli", "--repo", str(tmp_path / "tree"), "--only", "fc-window"]
    done = subprocess.run([*command, "--base", base, "--head", head], capture_output=True, text=True, check=False)
    assert done.returncode == ExitCode.USAGE
    assert f"{FUNCTIONS_PATH}:7" in done.stdout
    assert "unresolved merge conflict" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
