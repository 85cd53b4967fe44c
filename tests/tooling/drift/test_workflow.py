"""The nightly workflow: its YAML, and its shell steps run against a local upstream and a stand-in for ``gh``.

What GitHub itself does with it (schedules, permissions, the real ``gh``) was not run.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml

import fake_gh
from checkouts import Lab
from checkouts.lab import SOURCE, Checkout
from checkouts.sources import HOST, METAL, TREE
from skips import apt, lacks
from upstream_history import Step, write_history

TEXT = files("patchstack.drift").joinpath("workflow.yml").read_text(encoding="utf-8")
WORKFLOW: dict[Any, Any] = yaml.safe_load(TEXT)
JOB = WORKFLOW["jobs"]["drift"]
STEPS: dict[str, dict[str, Any]] = {step["name"]: step for step in JOB["steps"]}
BROKEN = {METAL: TREE[METAL].replace(b"void brighten(", b"void brighten_up(")}


class Night:
    """One runner: the workflow's steps, ``gh`` and ``apply-stack`` on PATH, a local upstream.

    Attributes:
        upstream: stands for GitHub's.
        env: what the workflow sets, and GitHub.
    """

    def __init__(self, lab: Lab, upstream: Checkout, since: str) -> None:
        self.lab = lab
        self.upstream = upstream
        self.issues_file = lab.root / "issues.json"
        tools = lab.root / "tools"
        tools.mkdir()
        self._tool(tools / "gh", str(Path(fake_gh.__file__)))
        self._tool(tools / "apply-stack", "-m patchstack.cli")
        self.env = {
            **lab.env,
            "PATH": f"{tools}{os.pathsep}{lab.env['PATH']}",
            "PYTHONPATH": str(SOURCE),
            "FAKE_GH": str(self.issues_file),
            "SINCE": since,
            "SERIES": str(lab.series),
            "UPSTREAM": f"file://{upstream.path}",
            "LABEL": JOB["env"]["LABEL"],
        }

    @staticmethod
    def _tool(path: Path, what: str) -> None:
        path.write_text(f'#!/bin/sh\nexec {sys.executable} {what} "$@"\n')
        path.chmod(0o755)

    def step(self, name: str, folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
        """Run one step as GitHub does."""
        script = folder / "step.sh"
        script.write_text(STEPS[name]["run"])
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)]
        whole = {**self.env, "GITHUB_STEP_SUMMARY": str(folder / "summary.md"), **env}
        return subprocess.run(command, cwd=folder, env=whole, capture_output=True, text=True, check=False)

    def run(self) -> list[dict[str, Any]]:
        """A whole night on a fresh runner; the issues after it."""
        folder = self.lab.root / f"runner {len(list(self.lab.root.glob('runner *')))}"
        folder.mkdir()
        for name in ("Fetch upstream", "Look for drift", "File reports"):
            done = self.step(name, folder)
            assert done.returncode == 0, f"{name}: {done.stdout}{done.stderr}"
        return self.issues()

    def issues(self) -> list[dict[str, Any]]:
        return list(json.loads(self.issues_file.read_text())) if self.issues_file.exists() else []

    def move(self, title: str, files: dict[str, bytes]) -> None:
        """One more commit of upstream."""
        write_history(self.upstream.path, [Step(title, files)], start=self.upstream.tip("main"))


@pytest.fixture
def night(lab: Lab) -> Night:
    upstream = lab.checkout("upstream")
    since = upstream.tip("main")
    write_history(upstream.path, [Step("a"), Step("b", {HOST: TREE[HOST] + b"// b\n"})], start=since)
    return Night(lab, upstream, since)


def test_it_is_run_by_schedule_and_by_hand_with_no_more_rights_than_it_needs() -> None:
    triggers = WORKFLOW[True]  # YAML 1.1 reads the key `on` as a truth value
    assert re.fullmatch(r"\d+ \d+ \* \* \*", triggers["schedule"][0]["cron"])
    assert "workflow_dispatch" in triggers
    assert WORKFLOW["permissions"] == {"contents": "read", "issues": "write"}
    assert "group" in WORKFLOW["concurrency"]
    assert WORKFLOW["defaults"]["run"]["shell"] == "bash"


def test_no_shell_text_holds_an_expression_that_github_would_paste_into_it() -> None:
    assert STEPS.keys() >= {"Fetch upstream", "Look for drift", "File reports"}
    for step in JOB["steps"]:
        assert "${{" not in step.get("run", "")
        assert "uses" in step or "run" in step
        assert re.fullmatch(r"[\w/-]+@v\d+", step.get("uses", "a@v1"))


@pytest.mark.parametrize("name", [name for name, step in STEPS.items() if "run" in step])
def test_each_shell_step_is_bash(name: str) -> None:
    done = subprocess.run(["bash", "-n"], input=STEPS[name]["run"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_apply_stack_prints_it_as_it_is(lab: Lab) -> None:
    assert lab.run("drift", "--print-workflow").require().out == TEXT


@pytest.mark.skipif(shutil.which("jq") is None, reason=lacks("no jq here", apt("jq")))
def test_what_the_stand_in_answers_is_what_jq_makes_of_the_same_expression() -> None:
    issue = {"number": 3, "body": "text", "state": "CLOSED", "stateReason": "COMPLETED"}
    for expression, answer in fake_gh.ANSWERS.items():
        data: Any = [issue, issue] if "[]" in expression else issue
        done = subprocess.run(
            ["jq", "-r", expression], input=json.dumps(data), capture_output=True, text=True, check=True
        )
        assert done.stdout.rstrip("\n") == answer(data)
        assert expression in STEPS["File reports"]["run"]


def test_a_quiet_night_files_nothing(night: Night) -> None:
    assert night.run() == []


def test_a_break_is_filed_once_however_many_nights_it_lasts(night: Night) -> None:
    night.move("Rename (#7)", BROKEN)
    (first,) = night.run()
    assert (first["state"], first["labels"]) == ("OPEN", ["drift"])
    assert "pytorch/pytorch#7" in first["title"]
    night.move("Something else", {HOST: TREE[HOST] + b"// c\n"})
    assert night.run() == [first]


def test_two_breaks_are_two_reports(night: Night) -> None:
    night.move("Rename (#7)", BROKEN)
    night.run()
    night.move("Rename the host function (#8)", {HOST: TREE[HOST].replace(b"brighten_mps", b"brighter_mps")})
    titles = [issue["title"] for issue in night.run()]
    assert len(titles) == 2
    assert "#8" in titles[1]


def test_a_report_is_closed_when_upstream_mends_it_and_reopened_when_the_same_thing_is_back(night: Night) -> None:
    night.move("Rename (#7)", BROKEN)
    night.run()
    broken_at = night.upstream.tip("main")
    night.move("Put it back (#8)", {METAL: TREE[METAL]})
    (issue,) = night.run()
    assert (issue["state"], len(issue["comments"])) == ("CLOSED", 1)
    night.upstream.git("update-ref", "refs/heads/main", broken_at)
    (issue,) = night.run()
    assert (issue["state"], len(issue["comments"])) == ("OPEN", 2)


def test_a_report_that_a_person_closed_as_not_planned_stays_closed_and_is_not_filed_again(night: Night) -> None:
    night.move("Rename (#7)", BROKEN)
    night.run()
    issues = night.issues()
    issues[0].update(state="CLOSED", stateReason="NOT_PLANNED")
    night.issues_file.write_text(json.dumps(issues))
    assert night.run() == issues


def test_an_issue_of_that_label_that_is_no_report_is_left_alone(night: Night) -> None:
    mine = {
        "number": 1,
        "title": "Mine",
        "body": "About drift",
        "labels": ["drift"],
        "state": "OPEN",
        "stateReason": "",
    }
    night.issues_file.write_text(json.dumps([mine]))
    night.move("Rename (#7)", BROKEN)
    issues = night.run()
    assert issues[0] == mine
    assert len(issues) == 2


@pytest.mark.parametrize("command", ["issue list", "issue view"])
def test_a_list_that_cannot_be_read_fails_the_run_rather_than_filing_twice(night: Night, command: str) -> None:
    """The seeded fault: GitHub answers with an error while the reports are looked up."""
    night.move("Rename (#7)", BROKEN)
    before = night.run()
    runner = next(night.lab.root.glob("runner 0"))
    assert night.step("File reports", runner, FAKE_GH_FAILS=command).returncode != 0
    assert night.issues() == before


def test_a_since_that_is_not_set_or_not_on_main_fails_the_run_and_files_nothing(night: Night) -> None:
    folder = night.lab.root / "runner"
    folder.mkdir()
    done = night.step("Fetch upstream", folder, SINCE="")
    assert done.returncode != 0
    assert "DRIFT_SINCE" in done.stderr
    side = write_history(night.upstream.path, [Step("Side")], ref="refs/heads/side", start=night.env["SINCE"])
    assert night.step("Fetch upstream", folder, SINCE=side).returncode == 0
    done = night.step("Look for drift", folder)
    assert done.returncode == 4
    assert "on the line of first parents" in done.stderr or "shallow" in done.stderr


def test_the_summary_of_the_run_is_the_report_without_annotations(night: Night) -> None:
    night.move("Rename (#7)", BROKEN)
    night.run()
    summary = (night.lab.root / "runner 0" / "summary.md").read_text()
    assert "1 of 3 changes needs a person" in summary
    assert "::error" not in summary
