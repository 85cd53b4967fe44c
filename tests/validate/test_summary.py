"""``validate-stack summary``: several JSON reports as one Markdown table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from stackproof.cli.main import main
from stackproof.cli.summary import summary


def gate(name: str, verdict: str, cases: int = 0, failed: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "verdict": verdict,
        "cases": cases,
        "failed": failed,
        "reason": "",
        "findings": [],
        **more,
    }


def finding(message: str, line: int = 0, *, fails: bool = True) -> dict[str, Any]:
    return {"message": message, "path": "a.metal", "line": line, "rule": "race", "fails": fails}


def written(folder: Path, name: str, verdict: str, *gates: dict[str, Any], **more: Any) -> str:
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"verdict": verdict, "gates": gates, **more}))
    return str(path)


def printed(*files: str) -> tuple[int, list[str]]:
    done = CliRunner().invoke(summary, files)
    return done.exit_code, done.output.splitlines()


def test_each_report_is_a_line_and_each_gate_a_column(tmp_path: Path) -> None:
    linux = written(
        tmp_path, "2.11-linux", "passed", gate("lint", "passed", 1234), gate("build", "not run", reason="needs macOS")
    )
    mac = written(tmp_path, "2.11-mac", "passed", gate("build", "passed", 5))
    assert printed(linux, mac) == (
        0,
        [
            "| report | verdict | lint | build |",
            "| --- | --- | --- | --- |",
            "| 2.11-linux | ✅ passed | ✅ 1,234 | not run |",
            "| 2.11-mac | ✅ passed |  | ✅ 5 |",
            "",
            "**What was not run**",
            "",
            "- build: needs macOS (2.11-linux)",
        ],
    )


def test_what_failed_is_listed_once_with_the_reports_that_have_it_and_the_exit_code_is_1(tmp_path: Path) -> None:
    bad = gate("metal-run", "failed", 7, 2, findings=[finding("a | b @someone", 3), finding("a note", fails=False)])
    files = [written(tmp_path, name, "failed", bad) for name in ("one", "two")]
    code, lines = printed(*files)
    assert code == 1
    assert "| one | ❌ failed | ❌ 2 of 7 |" in lines
    assert lines[-1] == "- metal-run race, `a.metal:3`: a \\| b @\u200bsomeone (all)"


def test_an_unproved_run_names_the_kernels_and_does_not_pass(tmp_path: Path) -> None:
    file = written(tmp_path, "one", "unproved", gate("metal-run", "passed", 1), unproved=[{"kernels": ["k_half"]}])
    code, lines = printed(file)
    assert (code, lines[-1]) == (1, "- no gate launched k_half (one)")


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"verdict": "passed", "gates": [{}]}', '{"verdict": "?", "gates": []}']
)
def test_a_file_that_is_no_report_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(SystemExit) as ended:
        main(["summary", str(path)])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("validate-stack: ")
    assert "not a report" in said
    assert str(path) in said
