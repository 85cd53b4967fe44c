"""The table of torch versions by trees: what stands in a cell, and what becomes of a torch that cannot be installed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "bench/torch_versions.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script, as a module."""
    spec = importlib.util.spec_from_file_location("torch_versions", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["torch_versions"] = module
    spec.loader.exec_module(module)
    return module


def test_a_cell_has_the_verdict_the_cases_and_why_it_did_not_pass(script: ModuleType) -> None:
    found = {"verdict": "failed", "cases": 7, "findings": [{"message": "a note", "fails": False}, {"message": "wrong"}]}
    failed = script.cell_of("2.13.0", "2.6", "test-mps", found)
    assert (str(failed), failed.reason) == ("failed (7)", "wrong")
    absent = script.cell_of("2.13.0", "2.14", "test-mps", {"verdict": "not run", "reason": "no tests", "findings": []})
    assert (str(absent), absent.reason) == ("not run", "no tests")
    assert script.table([failed, absent], ["2.13.0"]).splitlines() == [
        "| tree | gate | torch 2.13.0 |",
        "|---|---|---|",
        "| 2.6 | test-mps | failed (7) |",
        "| 2.14 | test-mps | not run |",
        "",
        "- test-mps, tree 2.6, torch 2.13.0: wrong",
        "- test-mps, tree 2.14, torch 2.13.0: no tests",
    ]


def test_a_torch_that_pip_refuses_is_not_run_and_the_other_trees_are_still_judged(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(script, "environment_of", lambda version, _folder: (Path("python"), f"no torch {version}"))
    monkeypatch.setattr(script, "stack_on", lambda _tree, _series, _folder: "")
    cells = script.rows(["9.9"], ["2.6"], tmp_path, tmp_path)
    assert [(one.gate, one.verdict, one.reason) for one in cells] == [
        (gate, "not run", "no torch 9.9") for gate in ("host-check", "op-run", "test-mps")
    ]
