"""The JSON report: strict, and with the facts where they are documented to be."""

from __future__ import annotations

import json
from typing import NoReturn

from stackproof.report import RunReport
from stackproof.report.json import plain, render


def _refuse(constant: str) -> NoReturn:
    raise AssertionError(f"{constant} is not JSON")


def test_the_json_is_strict_although_an_error_is_infinite(report: RunReport) -> None:
    read = json.loads(render(report), parse_constant=_refuse)
    gate = read["gates"][0]
    assert gate["worst_error"] == "inf"
    assert gate["details"]["table"][2]["errors"]["grad_grid"] == "inf"
    assert gate["findings"][1]["details"]["case"] == "nan"


def test_verdict_and_gates_of_the_whole_are_at_the_top_and_commits_below(report: RunReport) -> None:
    read = json.loads(render(report))
    assert (read["verdict"], read["partial"]) == ("failed", True)
    assert [gate["name"] for gate in read["gates"]] == ["metal-run", "fc-window", "build", "lint"]
    for gate in read["gates"]:
        assert {"name", "verdict", "cases", "failed", "worst_error", "seconds", "reason", "limits"} <= set(gate)
    assert [commit["verdict"] for commit in read["commits"]] == ["passed", "failed"]
    assert [gate["name"] for gate in read["commits"][0]["gates"]] == ["fc-window", "build"]


def test_the_trees_that_were_judged_are_named_and_the_command_too(report: RunReport) -> None:
    read = json.loads(render(report))
    assert (read["base_tree"], read["head_tree"], read["command"]) == ("a" * 40, "c" * 40, "validate-stack")
    assert [(commit["base_tree"], commit["tree"]) for commit in read["commits"]] == [
        ("a" * 40, "b" * 40),
        ("b" * 40, "c" * 40),
    ]


def test_what_json_does_not_know_becomes_text() -> None:
    assert plain({1: {3}, "path": b"x", "tuple": (1, None, True, 0.5)}) == {
        "1": [3],
        "path": "b'x'",
        "tuple": [1, None, True, 0.5],
    }
