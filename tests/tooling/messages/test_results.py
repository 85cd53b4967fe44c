"""A report of validate-stack is believed about the trees it judged, and about nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from patchstack.errors import UsageError
from patchstack.messages.results import GateLine, read_results

GATE = {"name": "metal-run", "verdict": "passed", "cases": 3, "failed": 0, "worst_error": 0.25, "details": {}}
REPORT: dict[str, Any] = {
    "partial": False,
    "command": "validate-stack --each-commit",
    "environment": {"platform": "Linux-6.1-x86_64-with-glibc2.36"},
    "base_tree": "a" * 40,
    "head_tree": "c" * 40,
    "gates": [GATE],
    "commits": [
        {"base_tree": "a" * 40, "tree": "b" * 40, "gates": [GATE]},
        {"base_tree": "b" * 40, "tree": "c" * 40, "gates": [GATE]},
    ],
}


def written(folder: Path, **changes: Any) -> Path:
    file = folder / "results.json"
    file.write_text(json.dumps({**REPORT, **changes}))
    return file


def test_a_run_is_found_by_both_of_its_trees(tmp_path: Path) -> None:
    results = read_results(written(tmp_path))
    run = results.of("b" * 40, "c" * 40)
    assert run is not None
    assert (run.system, run.gates) == ("Linux x86_64", (GateLine("metal-run", "passed", 3, 0, "0.25"),))


@pytest.mark.parametrize(("base", "tree"), [("a", "d"), ("d", "b"), ("b", "a")])
def test_another_tree_above_or_below_is_no_match(tmp_path: Path, base: str, tree: str) -> None:
    assert read_results(written(tmp_path)).of(base * 40, tree * 40) is None


def test_a_report_of_a_whole_range_counts_for_a_stack_of_one_commit(tmp_path: Path) -> None:
    run = read_results(written(tmp_path, commits=[])).of("a" * 40, "c" * 40)
    assert run is not None


def test_the_unit_of_an_error_is_kept(tmp_path: Path) -> None:
    gate = {**GATE, "details": {"error_unit": "tolerances"}}
    assert read_results(written(tmp_path, gates=[gate])).runs[-1].gates[0].error == "0.25 (tolerances)"


def test_an_interrupted_run_is_not_quoted(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="interrupted"):
        read_results(written(tmp_path, partial=True))


BAD = {
    "not there": None,
    "not JSON": b"<html>",
    "not UTF-8": b"\xff\xfe",
    "a list": b"[]",
    "an older report": json.dumps({k: v for k, v in REPORT.items() if k != "command"}).encode(),
    "two lines as a verdict": json.dumps({**REPORT, "gates": [{**GATE, "verdict": "passed\n\nx"}]}).encode(),
    "a number as a name": json.dumps({**REPORT, "gates": [{**GATE, "name": 7}]}).encode(),
    "nested without end": b"[" * 200_000,
    "a surrogate as a name": json.dumps({**REPORT, "gates": [{**GATE, "name": "a\ud800"}]}).encode(),
    "a NUL in the command": json.dumps({**REPORT, "command": "a\0b"}).encode(),
    "an endless count": json.dumps({**REPORT, "gates": [{**GATE, "cases": float("inf")}]}).encode(),
    "an error beyond all numbers": json.dumps({**REPORT, "gates": [{**GATE, "worst_error": 10**400}]}).encode(),
    "no tree": json.dumps({**REPORT, "commits": [], "head_tree": None}).encode(),
    "a number as a tree": json.dumps({**REPORT, "commits": [{**REPORT["commits"][0], "tree": 5}]}).encode(),
    "no count": json.dumps({**REPORT, "gates": [{**GATE, "cases": "many"}]}).encode(),
}


@pytest.mark.parametrize("content", BAD.values(), ids=list(BAD))
def test_another_file_is_refused_in_one_sentence(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "results.json"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        read_results(file)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)
