"""The series as it lands on the reference trees, judged by settings of the kind that upstream has."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from skips import lacks, pip
from stack_lab import METAL_FILE, StackLab, applied
from stackproof.gates.lint.formatters import ToolNotRunError, tool
from stackproof.gates.lint.spec import SPEC as LINT
from stackproof.model import Verdict

TEST_FILE = "test/test_mps.py"


@pytest.fixture(scope="module")
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StackLab]:
    for name in ("clang-format", "ruff"):
        try:
            tool(name)
        except ToolNotRunError:
            pytest.skip(lacks(f"no {name}", pip("clang-format", "ruff")))
    with applied(request.param, tmp_path_factory.mktemp("lint") / "tree") as lab:
        yield lab


@pytest.mark.parametrize("lab", ["2.11", "2.13"], indirect=True)
def test_the_whole_series_is_formatted_as_the_tree_wants_it(lab: StackLab) -> None:
    result = lab.judge(LINT)
    assert [(finding.path, finding.line, finding.message) for finding in result.findings] == []
    assert result.verdict is Verdict.PASSED
    assert result.details["patterns"] == "the tree's .lintrunner.toml"


@pytest.mark.parametrize("lab", ["2.11"], indirect=True)
@pytest.mark.parametrize(
    ("path", "old", "new", "rule"),
    [
        (METAL_FILE, "  const int32_t n = ", "  const  int32_t n = ", "CLANGFORMAT/format"),
        (TEST_FILE, "import torch\n", "import torch\nimport colorsys\n", "RUFF/F401"),
        (TEST_FILE, "import torch\n", "import torch  \n", "SPACES/trailing spaces"),
    ],
)
def test_a_fault_of_each_kind_is_found_there(lab: StackLab, path: str, old: str, new: str, rule: str) -> None:
    text = lab.text(path)
    assert old in text
    result = lab.judge(LINT, lab.changed({path: text.replace(old, new, 1)}))
    assert (path, rule) in [(finding.path, finding.rule) for finding in result.findings]
