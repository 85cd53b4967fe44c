"""``--check``: the commits are compiled by another program before the branch moves."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from checkouts import Checkout
from checkouts.lab import BRANCH

PASSED = [{"name": "metal-check", "verdict": "passed"}, {"name": "host-check", "verdict": "passed"}]
FAILED = {
    "name": "host-check",
    "verdict": "failed",
    "findings": [{"path": "aten/Fade.mm", "line": 7, "message": "no such thing as 'mix'", "fails": True}],
}


@pytest.fixture
def proof(checkout: Checkout, tmp_path: Path) -> Any:
    """Puts a ``validate-stack`` on the path that answers with a report; its arguments go to a file."""

    def make(report: Mapping[str, Any] | str) -> Path:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        asked = tmp_path / "asked.json"
        text = report if isinstance(report, str) else json.dumps(report)
        program = folder / "validate-stack"
        program.write_text(
            f"#!{sys.executable}\nimport json, subprocess, sys\n"
            f"head = sys.argv[sys.argv.index('--head') + 1]\nrepo = sys.argv[sys.argv.index('--repo') + 1]\n"
            "command = ['git', '-C', repo, 'for-each-ref', '--contains', head]\n"
            "refs = subprocess.run(command, capture_output=True, text=True)\n"
            f"json.dump([sys.argv[1:], refs.returncode, refs.stdout], open({str(asked)!r}, 'w'))\nprint({text!r})\n"
        )
        program.chmod(0o755)
        checkout.lab.env["PATH"] = f"{folder}:{checkout.lab.env['PATH']}"
        return asked

    return make


def test_what_compiles_is_applied_and_was_looked_at_before_a_ref_named_it(checkout: Checkout, proof: Any) -> None:
    asked = proof({"gates": PASSED, "commits": []})
    run = checkout.run("--check").require()
    arguments, status, refs = json.loads(asked.read_text())
    assert arguments[arguments.index("--only") + 1] == "metal-check,host-check"
    assert arguments[arguments.index("--head") + 1] == checkout.tip()
    assert "--each-commit" in arguments
    assert (status, refs) == (0, "")
    assert "--check: metal-check, host-check passed on each commit" in run.out


def test_what_does_not_compile_moves_nothing_and_the_findings_are_shown(checkout: Checkout, proof: Any) -> None:
    proof({"gates": [PASSED[0], FAILED], "commits": []})
    run = checkout.run("--check")
    run.refused(3, "the stack does not compile", "aten/Fade.mm:7: no such thing as 'mix'")
    assert BRANCH not in checkout.git("for-each-ref")


def test_a_commit_below_the_tip_that_does_not_compile_is_named(checkout: Checkout, proof: Any) -> None:
    proof({"gates": PASSED, "commits": [{"commit": "0123456789abcdef", "gates": [FAILED]}]})
    checkout.run("--check").refused(3, "0123456789ab host-check", "no such thing as 'mix'")


@pytest.mark.parametrize("report", ["", "[]", '{"gates": []}', "Traceback"])
def test_a_program_without_a_report_is_no_pass(checkout: Checkout, proof: Any, report: str) -> None:
    proof(report)
    checkout.run("--check").refused(5, "validate-stack gave no report", "nothing was moved")
    assert BRANCH not in checkout.git("for-each-ref")


def test_a_gate_for_files_of_the_stack_that_could_not_be_run_is_no_pass(checkout: Checkout, proof: Any) -> None:
    not_run = [{"name": gate["name"], "verdict": "not run", "reason": "no compiler"} for gate in PASSED]
    proof({"gates": not_run, "commits": []})
    checkout.run("--check").refused(5, "was not run", "no compiler")
    assert BRANCH not in checkout.git("for-each-ref")


def test_a_dry_run_has_no_commits_to_compile(checkout: Checkout) -> None:
    checkout.run("--check", "--dry-run").refused(2, "--dry-run")
