"""New code is exempt from the window only while no existing code leads to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat_trees import BLEND, START, TreeRepository, of_rule, with_functions
from stackproof.model import Verdict

GLOW = "glow(Tensor self) -> Tensor"
OLD = "import torch\n\n\ndef shine(x):\n    return x\n\n\nclass Lamp:\n    def forward(self, x):\n        return x\n"
NEW_FUNCTION = "\n\ndef bright(x):\n    return torch.glow(x)\n"


def verdict(tmp_path: Path, after: dict[str, str]) -> tuple[Verdict, list[str]]:
    """Verdict and rules for a stack that adds ``glow`` and turns ``torch/paint.py`` into something else."""
    lab = TreeRepository(tmp_path / "tree")
    base = lab.commit(with_functions(BLEND) | {"torch/paint.py": OLD, "torch/other.py": "x = 1\n"})
    head = lab.commit(with_functions(BLEND, GLOW) | after, parents=(base,))
    result = lab.judge(base, head, today=START)
    return result.verdict, [finding.rule for finding in result.findings if finding.rule.startswith("window")]


def test_a_new_function_that_nobody_calls_is_exempt(tmp_path: Path) -> None:
    assert verdict(tmp_path, {"torch/paint.py": OLD + NEW_FUNCTION}) == (Verdict.PASSED, ["window-new-code"])


def test_a_new_file_is_exempt(tmp_path: Path) -> None:
    assert verdict(tmp_path, {"torch/fresh.py": "import torch" + NEW_FUNCTION}) == (Verdict.PASSED, ["window-new-code"])


def test_a_new_module_level_name_is_exempt(tmp_path: Path) -> None:
    assert verdict(tmp_path, {"torch/paint.py": OLD + "\nbright = torch.glow\n"})[0] is Verdict.PASSED


@pytest.mark.parametrize(
    "after",
    [
        {"torch/paint.py": OLD.replace("    return x\n\n\nclass", "    return bright(x)\n\n\nclass") + NEW_FUNCTION},
        {"torch/paint.py": OLD + NEW_FUNCTION, "torch/other.py": "from torch.paint import bright\nx = bright(1)\n"},
        {"torch/paint.py": OLD + NEW_FUNCTION, "torch/other.py": "from torch.paint import bright as b\nx = b(1)\n"},
        {
            "torch/paint.py": OLD.replace("x\n\n\nclass", "mid(x)\n\n\nclass")
            + NEW_FUNCTION
            + "\n\ndef mid(x):\n    return bright(x)\n"
        },
        {
            "torch/fresh.py": "import torch" + NEW_FUNCTION,
            "torch/other.py": "import torch.fresh\nx = torch.fresh.bright(1)\n",
        },
        {"torch/paint.py": OLD.replace("        return x\n", "        return torch.glow(x)\n")},
        {"torch/paint.py": OLD + "\n    def backward(self, x):\n        return torch.glow(x)\n"},
    ],
    ids=["same-file", "other-file", "import-as", "through-another", "new-file", "existing-method", "new-method"],
)
def test_new_code_that_existing_code_leads_to_must_wait(tmp_path: Path, after: dict[str, str]) -> None:
    found, rules = verdict(tmp_path, after)
    assert found is Verdict.FAILED
    assert rules == ["window"]


def test_a_new_class_is_exempt_though_its_methods_have_common_names(tmp_path: Path) -> None:
    new = "\n\nclass Beacon:\n    def forward(self, x):\n        return torch.glow(x)\n"
    assert verdict(tmp_path, {"torch/paint.py": OLD + new}) == (Verdict.PASSED, ["window-new-code"])


def test_a_name_that_existing_code_called_before_the_schema_is_not_new(tmp_path: Path) -> None:
    lab = TreeRepository(tmp_path / "tree")
    old = OLD.replace("return x\n\n\nclass", "return x.glow()\n\n\nclass")
    base = lab.commit(with_functions(BLEND) | {"torch/paint.py": old})
    with_method = with_functions(BLEND, GLOW) | {
        "torch/paint.py": old.replace("        return x", "        return x.glow()")
    }
    head = lab.commit(with_method, parents=(base,))
    result = lab.judge(base, head, today=START)
    assert result.verdict is Verdict.PASSED
    assert len(of_rule(result, "window-existing")) == 2
