"""The workflow that spreads the gates over machines: its YAML, and its shell steps with stand-ins for what GitHub and a
Mac have.

The commands ``apply-stack`` and ``validate-stack`` are the real ones where a step needs what they say, and recorded
where it is only asked what they are given. What GitHub itself does with the workflow was not run.
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

from references import require_reference
from skips import apt, lacks
from stackproof.cli.main import main

TEXT = files("stackproof.cli").joinpath("workflow.yml").read_text(encoding="utf-8")
WORKFLOW: dict[Any, Any] = yaml.safe_load(TEXT)
JOBS = WORKFLOW["jobs"]
SOURCE = Path(__file__).parents[2]

needs_jq = pytest.mark.skipif(shutil.which("jq") is None, reason=lacks("no jq here", apt("jq")))

# Records its arguments; for `gh api` it answers with the id that the test wants.
RECORDER = """#!/bin/sh
printf '%s' "$(basename "$0")" >> "$CALLS"
for one; do printf '\\t%s' "$one" >> "$CALLS"; done
echo >> "$CALLS"
case "$(basename "$0") $*" in
  "gh api --paginate"*) printf '%s\\n' "$COMMENT" ;;
  "xcrun"*) exit "$XCRUN" ;;
  "validate-stack --repo"*)
    while [ "$1" != --json ]; do shift; done
    cp "$REPORT" "$2"; exit "$VERDICT" ;;
  "validate-stack summary"*) shift; exec "$PYTHON" -m stackproof.cli summary "$@" ;;
esac
"""
PASSED = {"verdict": "passed", "gates": []}


class Runner:
    """A machine of GitHub's: a folder, the environment of a job, and commands that record what they are given."""

    def __init__(self, folder: Path, job: str) -> None:
        self.folder = folder
        self.steps = {step["name"]: step for step in JOBS[job]["steps"]}
        self.tools = folder / "tools"
        self.work = folder / "work"
        self.tools.mkdir()
        self.work.mkdir()
        self.calls_file = folder / "calls"
        report = folder / "report.json"
        report.write_text(json.dumps(PASSED))
        self.env = {
            **os.environ,
            "PATH": f"{self.tools}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": f"{SOURCE / 'tooling'}{os.pathsep}{SOURCE / 'validate'}",
            "PYTHON": sys.executable,
            "CALLS": str(self.calls_file),
            "REPORT": str(report),
            "VERDICT": "0",
            "XCRUN": "0",
            "COMMENT": "",
            "SERIES": "",
            "BASE": "main",
            "GITHUB_OUTPUT": str(folder / "output"),
            "GITHUB_ENV": str(folder / "env"),
            "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
        }

    def record(self, *names: str) -> None:
        """Let these commands be recorded and do nothing."""
        for name in names:
            (self.tools / name).write_text(RECORDER)
            (self.tools / name).chmod(0o755)

    def real(self, name: str, module: str) -> None:
        """Let a command be this project's own."""
        (self.tools / name).write_text(f'#!/bin/sh\nexec {sys.executable} -m {module} "$@"\n')
        (self.tools / name).chmod(0o755)

    def run(self, step: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run a step as GitHub does."""
        script = self.folder / "step.sh"
        script.write_text(self.steps[step]["run"])
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=self.work,
            env={**self.env, **env},
            capture_output=True,
            text=True,
            check=False,
        )

    def calls(self) -> list[list[str]]:
        """What was recorded."""
        if not self.calls_file.exists():
            return []
        return [line.split("\t") for line in self.calls_file.read_text().splitlines()]

    def output(self) -> dict[str, str]:
        """What a step passes on to other jobs."""
        lines = Path(self.env["GITHUB_OUTPUT"]).read_text().splitlines()
        return {name: value for name, _, value in (line.partition("=") for line in lines)}


def test_the_command_prints_it_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--print-workflow"])
    assert capsys.readouterr().out == TEXT


def test_it_has_no_more_rights_than_it_needs_and_no_expression_in_shell_text() -> None:
    assert WORKFLOW["permissions"] == {"contents": "read", "pull-requests": "write"}
    for job in JOBS.values():
        for step in job["steps"]:
            assert "${{" not in step.get("run", "")
            assert re.fullmatch(r"[\w/-]+@v\d+", step.get("uses", "a@v1"))
            done = subprocess.run(
                ["bash", "-n"], input=step.get("run", ""), capture_output=True, text=True, check=False
            )
            assert (done.returncode, done.stderr) == (0, "")


def test_every_job_installs_in_the_same_way() -> None:
    assert len({step["run"] for job in JOBS.values() for step in job["steps"] if step["name"] == "Install"}) == 1


def test_every_variable_that_a_step_reads_is_set_or_is_githubs() -> None:
    for job in JOBS.values():
        known = {*WORKFLOW["env"], *job.get("env", ()), "RUNNER_OS"}
        for step in job["steps"]:
            text = step.get("run", "")
            own = set(re.findall(r"(?:^|[\s(])(\w+)=|\bfor (?:\(\()?(\w+)|--arg(?:json)? (\w+)", text))
            own = {name for names in own for name in names}
            read = set(re.findall(r"\$\{?#?(\w+)", text)) - own
            assert {name for name in read - known - set(step.get("env", ())) if not name.startswith("GITHUB_")} == set()


@pytest.mark.parametrize(
    ("source", "requirement"),
    [
        ("git+https://example.org/a/b", "patchstack[validate,apple] @ git+https://example.org/a/b"),
        ("https://example.org/p.whl", "patchstack[validate,apple] @ https://example.org/p.whl"),
        ("dist/patchstack.whl", "dist/patchstack.whl[validate,apple]"),
    ],
)
def test_what_is_installed_is_what_the_user_named(tmp_path: Path, source: str, requirement: str) -> None:
    runner = Runner(tmp_path, "plan")
    runner.record("python")
    assert runner.run("Install", STACKPROOF=source).returncode == 0
    assert runner.calls() == [["python", "-m", "pip", "install", "--quiet", requirement]]


def test_a_project_that_is_not_named_ends_the_run_with_what_to_set(tmp_path: Path) -> None:
    done = Runner(tmp_path, "plan").run("Install", STACKPROOF="")
    assert done.returncode != 0
    assert "set the variable STACKPROOF" in done.stderr


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def committed(folder: Path, count: int) -> None:
    """A repository with ``main`` and a branch of that many commits above it, checked out."""
    git(folder, "init", "-q", "-b", "main")
    git(folder, "commit", "-q", "--allow-empty", "-m", "base")
    git(folder, "checkout", "-q", "-b", "stack/x")
    for number in range(count):
        git(folder, "commit", "-q", "--allow-empty", "-m", str(number))


@needs_jq
def test_each_commit_of_a_checkout_is_a_job_on_linux_and_one_on_a_mac(tmp_path: Path) -> None:
    runner = Runner(tmp_path, "plan")
    committed(runner.work, 2)
    assert runner.run("Find the commits", TREES="here").returncode == 0
    entries = json.loads(runner.output()["matrix"])["include"]
    assert [(one["tree"], one["commit"], one["of"], one["system"]) for one in entries] == [
        ("here", number, 2, system) for number in (1, 2) for system in ("linux", "mac")
    ]
    assert {one["runner"] for one in entries} == {"ubuntu-latest", "macos-15"}


@needs_jq
def test_a_checkout_without_a_commit_of_its_own_ends_the_run(tmp_path: Path) -> None:
    runner = Runner(tmp_path, "plan")
    committed(runner.work, 0)
    done = runner.run("Find the commits", TREES="here")
    assert done.returncode == 1
    assert "no tree has a commit to judge" in done.stdout


@needs_jq
def test_more_jobs_than_github_takes_end_the_run(tmp_path: Path) -> None:
    runner = Runner(tmp_path, "plan")
    committed(runner.work, 1)
    done = runner.run("Find the commits", TREES=" ".join(["here"] * 129))
    assert done.returncode == 1
    assert "258 jobs are more than the 256" in done.stdout


@needs_jq
@pytest.mark.slow
@pytest.mark.needs_reference
def test_the_commits_of_a_reference_tree_are_found_with_the_real_command(tmp_path: Path) -> None:
    require_reference("2.11")
    runner = Runner(tmp_path, "plan")
    runner.real("apply-stack", "patchstack.cli")
    done = runner.run("Find the commits", TREES="2.11", SERIES="grid_sampler")
    assert done.returncode == 0, done.stderr
    entries = json.loads(runner.output()["matrix"])["include"]
    assert [(one["tree"], one["commit"], one["of"]) for one in entries[::2]] == [("2.11", n, 3) for n in (1, 2, 3)]
    assert runner.output()["refused"] == ""


@needs_jq
def test_a_tree_that_the_series_does_not_fit_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    runner = Runner(tmp_path, "plan")
    committed(runner.work, 1)
    (runner.tools / "apply-stack").write_text("#!/bin/sh\nexit 3\n")
    (runner.tools / "apply-stack").chmod(0o755)
    done = runner.run("Find the commits", TREES="2.13 here")
    assert done.returncode == 0
    assert "::error title=2.13::the series does not apply to this tree" in done.stdout
    assert runner.output()["refused"] == " 2.13"
    assert [one["tree"] for one in json.loads(runner.output()["matrix"])["include"]] == ["here", "here"]


JOB = {"TREE": "here", "NUMBER": "1", "COUNT": "3", "SYSTEM": "mac", "GATES": "metal-check"}


def test_a_job_judges_its_commit_against_its_parent_and_keeps_three_reports(tmp_path: Path) -> None:
    runner = Runner(tmp_path, "judge")
    runner.record("validate-stack")
    assert runner.run("Judge", **JOB).returncode == 0
    judged = runner.calls()[0]
    assert judged[1:7] == ["--repo", ".", "--base", "HEAD~3", "--head", "HEAD~2"]
    assert judged[7:9] == ["--only", "metal-check"]
    name = "reports/here-1-of-3-mac"
    assert judged[9:] == ["--github", "--json", f"{name}.json", "--junit", f"{name}.xml", "--html", f"{name}.html"]
    assert "| here-1-of-3-mac | ✅ passed |" in Path(runner.env["GITHUB_STEP_SUMMARY"]).read_text()


@pytest.mark.parametrize("status", ["1", "2", "5"])
def test_a_commit_that_fails_fails_its_job_after_its_report_is_shown(tmp_path: Path, status: str) -> None:
    runner = Runner(tmp_path, "judge")
    runner.record("validate-stack")
    assert runner.run("Judge", VERDICT=status, **JOB).returncode == int(status)
    assert Path(runner.env["GITHUB_STEP_SUMMARY"]).exists()


def test_a_mac_without_the_metal_compiler_asks_xcode_for_it(tmp_path: Path) -> None:
    runner = Runner(tmp_path, "judge")
    runner.record("xcrun", "xcodebuild", "brew")
    assert runner.run("Prepare the Mac", XCRUN="1", BUILD="", **JOB).returncode == 0
    assert runner.calls()[1:] == [["xcodebuild", "-downloadComponent", "MetalToolchain"]]
    assert not Path(runner.env["GITHUB_ENV"]).exists()


def test_a_build_is_made_only_where_it_was_asked_for(tmp_path: Path) -> None:
    runner = Runner(tmp_path, "judge")
    runner.record("xcrun", "xcodebuild", "brew")
    assert runner.run("Prepare the Mac", BUILD="true", **{**JOB, "TREE": "2.11"}).returncode == 0
    assert not Path(runner.env["GITHUB_ENV"]).exists()
    assert runner.run("Prepare the Mac", BUILD="true", **JOB).returncode == 0
    assert "build" in Path(runner.env["GITHUB_ENV"]).read_text()


def reported(runner: Runner, *verdicts: str) -> None:
    (runner.work / "reports").mkdir()
    for number, verdict in enumerate(verdicts):
        (runner.work / f"reports/2.11-{number}.json").write_text(json.dumps({**PASSED, "verdict": verdict}))
    runner.real("validate-stack", "stackproof.cli")


PULL = {"REFUSED": "", "PULL_REQUEST": "7", "MAY_COMMENT": "true", "GH_REPO": "o/r", "GH_TOKEN": "t"}


def test_the_table_of_all_reports_becomes_a_comment_of_the_pull_request(tmp_path: Path) -> None:
    runner = Runner(tmp_path, "summary")
    runner.record("gh")
    reported(runner, "passed", "passed")
    assert runner.run("Summarise", **PULL).returncode == 0
    text = (runner.work / "summary.md").read_text()
    assert text.startswith("<!-- validate-stack -->\n| report |")
    assert text.count("✅ passed") == 2
    assert text in Path(runner.env["GITHUB_STEP_SUMMARY"]).read_text()
    posted = runner.calls()[-1]
    assert posted[:5] == ["gh", "api", "--method", "POST", "repos/o/r/issues/7/comments"]
    assert "body=@summary.md" in posted


def test_a_second_run_changes_the_comment_of_the_first(tmp_path: Path) -> None:
    runner = Runner(tmp_path, "summary")
    runner.record("gh")
    reported(runner, "passed")
    assert runner.run("Summarise", COMMENT="42", **PULL).returncode == 0
    assert runner.calls()[-1][:5] == ["gh", "api", "--method", "PATCH", "repos/o/r/issues/comments/42"]


@pytest.mark.parametrize("changed", [{"MAY_COMMENT": "false"}, {"PULL_REQUEST": ""}])
def test_nothing_is_written_where_there_is_no_right_or_no_pull_request(tmp_path: Path, changed: dict[str, str]) -> None:
    runner = Runner(tmp_path, "summary")
    runner.record("gh")
    reported(runner, "passed")
    assert runner.run("Summarise", **{**PULL, **changed}).returncode == 0
    assert runner.calls() == []


@pytest.mark.parametrize(
    ("verdicts", "refused"), [(["passed", "failed"], ""), (["passed"], "2.13"), ([], ""), (["unproved"], "")]
)
def test_a_run_in_which_something_failed_fails_and_says_so_in_the_comment(
    tmp_path: Path, verdicts: list[str], refused: str
) -> None:
    runner = Runner(tmp_path, "summary")
    runner.record("gh")
    reported(runner, *verdicts)
    assert runner.run("Summarise", **{**PULL, "REFUSED": refused}).returncode == 1
    assert runner.calls()[-1][3] == "POST"
    assert ("does not apply to 2.13" in (runner.work / "summary.md").read_text()) == bool(refused)
