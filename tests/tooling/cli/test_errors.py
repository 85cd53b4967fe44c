"""Every way to call the command wrongly ends in one sentence, the right exit code, and never in a traceback."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from checkouts import Checkout, Lab
from checkouts.lab import command_line, run_command
from terminal_signals import as_at_a_terminal

REPO = ["--repo", "{repo}"]
SERIES = ["--series", "{series}"]
HERE = [*REPO, *SERIES]

# Arguments, exit code, words of the complaint.
WRONG: dict[str, tuple[list[str], int, list[str]]] = {
    "nothing": ([], 2, ["--onto", "apply-stack --help"]),
    "no onto": (HERE, 2, ["--onto"]),
    "no beginning for a subcommand": (["drift", *HERE, "--onto", "main"], 2, ["--since", "apply-stack drift --help"]),
    "an unknown option": ([*HERE, "--onto", "main", "--upward"], 2, ["--upward"]),
    "a word too many": ([*HERE, "--onto", "main", "again"], 2, ["again"]),
    "an option without its value": ([*HERE, "--onto"], 2, ["--onto"]),
    "a branch that is not there": ([*HERE, "--onto", "master"], 2, ["--onto master", "one of main"]),
    "a tree instead of a commit": ([*HERE, "--onto", "main^{tree}"], 2, ["no such branch or commit"]),
    "a file instead of a commit": ([*HERE, "--onto", "main:README.md"], 2, ["no such branch or commit"]),
    "an upstream that is not there": ([*HERE, "--onto", "main@{upstream}"], 2, ["no such branch or commit"]),
    "an option as a commit": ([*HERE, "--onto", "--all"], 2, ["--onto"]),
    "two lines as a commit": ([*HERE, "--onto", "main\nmain"], 2, ["no such branch or commit"]),
    "an empty branch": ([*HERE, "--onto", "main", "--branch", ""], 2, ["--branch", "not a branch name"]),
    "a folder for patches with a name too long": (
        [*HERE, "--onto", "main", "--format-patch", "n" * 300],
        2,
        ["the patches cannot be written", "too long"],
    ),
    "an empty commit": ([*HERE, "--onto", ""], 2, ["no such branch or commit"]),
    "the branch to build on as branch to write": ([*HERE, "--onto", "main", "--branch", "main"], 2, ["--branch"]),
    "a branch name with a blank": ([*HERE, "--onto", "main", "--branch", "a b"], 2, ["not a branch name", "'a b'"]),
    "a branch name with dots": ([*HERE, "--onto", "main", "--branch", "a..b"], 2, ["not a branch name"]),
    "the previous branch by its nickname": ([*HERE, "--onto", "main", "--branch", "@{-1}"], 2, ["not a branch name"]),
    "HEAD as a branch": ([*HERE, "--onto", "main", "--branch", "HEAD"], 2, ["not a branch name"]),
    "a full ref name": ([*HERE, "--onto", "main", "--branch", "refs/heads/x"], 2, ["without refs/heads/"]),
    "a branch name like an option": ([*HERE, "--onto", "main", "--branch=-x"], 2, ["not a branch name"]),
    "a change that is not there": ([*HERE, "--onto", "main", "--only", "nope"], 2, ["'nope'", "fade_tests"]),
    "a change without what it needs": ([*HERE, "--onto", "main", "--only", "fade_tests"], 2, ["--only fade"]),
    "a series that is not there": ([*REPO, "--series", "nope", "--onto", "main"], 2, ["no series 'nope'"]),
    "a repository and a reference": ([*HERE, "--reference", "2.11", "--onto", "main"], 2, ["--repo and --reference"]),
    "a reference that is no release": ([*SERIES, "--reference", "old", "--onto", "main"], 2, ["old", "latest"]),
    "a release that pip cannot find": ([*SERIES, "--reference", "1.0", "--onto", "main"], 4, ["1.0"]),
    "a dry run that checks out": ([*HERE, "--onto", "main", "--dry-run", "--checkout"], 2, ["--dry-run"]),
    "a dry run with patches": ([*HERE, "--onto", "main", "--dry-run", "--format-patch", "x"], 2, ["--dry-run"]),
    "a folder that is not there": ([*SERIES, "--onto", "main", "--repo", "/nowhere"], 4, ["/nowhere"]),
    "an empty repository name": ([*SERIES, "--onto", "main", "--repo", ""], 4, []),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_call_gets_one_sentence(checkout: Checkout, name: str) -> None:
    arguments, status, words = WRONG[name]
    known = {"{repo}": str(checkout.path), "{series}": str(checkout.lab.series)}
    given = [known.get(text, text) for text in arguments]
    with checkout.nothing_written():
        result = checkout.lab.run(*given)
        result.refused(status, *words)
        assert result.out == ""
        as_json = checkout.lab.run(*given, "--json") if name != "an option without its value" else None
    if as_json:
        facts = as_json.require(status).json
        assert facts["exit_code"] == status
        assert facts["error"]["problem"] in as_json.err


def test_a_process_of_its_own_says_the_same(checkout: Checkout) -> None:
    """The runs above are forks; this one is not."""
    result = run_command([*checkout.arguments(onto="master"), "--json"], cwd=checkout.path, env=checkout.lab.env)
    result.refused(2, "--onto master")
    assert result.json["error"]["where"] == "--onto master"


def test_a_conflict_is_told_on_standard_output_with_exit_code_3(checkout: Checkout) -> None:
    checkout.commit("Rename", {"aten/src/ATen/native/mps/kernels/Fade.metal": "kernel void lighten() {}\n"})
    with checkout.nothing_written():
        result = checkout.run().require(3)
        facts = checkout.run("--json").require(3).json
    assert "conflict" in result.out
    assert "nothing was written" in result.out
    assert [conflict["path"] for conflict in facts["conflicts"]] == ["aten/src/ATen/native/mps/kernels/Fade.metal"]
    assert (facts["tip"], facts["exit_code"]) == (None, 3)


def test_a_message_that_would_mislead_ghstack_is_refused_in_a_dry_run_too(checkout: Checkout) -> None:
    (checkout.lab.series / "fade.md").write_text("Thanks to @painter.\n")
    for more in ([], ["--dry-run"]):
        with checkout.branch_kept():
            checkout.run(*more).refused(2, "without @")


def test_a_current_folder_that_is_gone_is_named(checkout: Checkout) -> None:
    gone = checkout.lab.root / "gone"
    gone.mkdir()
    script = f"cd '{gone}' && rmdir '{gone}' && exec \"$@\""
    command = ["sh", "-c", script, "sh", *command_line(["--onto", "main", "--series", str(checkout.lab.series)])]
    done = subprocess.run(command, env=checkout.lab.env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.startswith("apply-stack: the current folder does not exist any more")


def with_a_fault(lab: Lab, fault: str) -> dict[str, str]:
    """An environment in which the planner does something unforeseen."""
    folder = lab.root / "fault"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        "import patchstack.planning.planner as planner\n"
        f"def broken(*args, **kwargs):\n    {fault}\n"
        "planner._Planner.change = broken\n"
    )
    return {**lab.env, "PYTHONPATH": f"{folder}{os.pathsep}{lab.env['PYTHONPATH']}"}


def test_an_internal_error_leaves_a_report_file_and_no_traceback(checkout: Checkout) -> None:
    env = with_a_fault(checkout.lab, "raise ZeroDivisionError('a bug')")
    with checkout.nothing_written():
        result = run_command(checkout.arguments("--json"), cwd=checkout.path, env=env)
    result.refused(1, "internal error: ZeroDivisionError: a bug", "report: ")
    report = Path(result.json["error"]["report"])
    assert report.is_relative_to(checkout.lab.home / "cache")
    assert "Traceback" in report.read_text()
    assert "ZeroDivisionError: a bug" in report.read_text()
    assert str(checkout.path) in report.read_text()


def test_an_internal_error_is_told_even_where_no_report_can_be_written(checkout: Checkout) -> None:
    env = with_a_fault(checkout.lab, "raise ZeroDivisionError('a bug')")
    env["PATCHSTACK_CACHE"] = str(checkout.path / "README.md" / "cache")
    result = run_command(checkout.arguments(), cwd=checkout.path, env=env)
    result.refused(1, "internal error", "none, the cache folder cannot be written")


def test_a_git_command_that_fails_unforeseen_is_no_internal_error(checkout: Checkout) -> None:
    env = with_a_fault(checkout.lab, "args[2].repository.git('frobnicate')")
    result = run_command(checkout.arguments(), cwd=checkout.path, env=env)
    result.refused(4, "git frobnicate")


def test_ctrl_c_is_one_sentence_and_leaves_the_branch_alone(checkout: Checkout) -> None:
    env = with_a_fault(checkout.lab, "import time; print('planning', flush=True); time.sleep(60)")
    with checkout.branch_kept():
        run = subprocess.Popen(
            command_line(checkout.arguments()),
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=as_at_a_terminal,
        )
        assert run.stdout is not None
        assert run.stdout.readline() == "planning\n"
        run.send_signal(signal.SIGINT)
        _, complaint = run.communicate(timeout=30)
    assert run.returncode == 130
    assert complaint.strip() == "apply-stack: interrupted; the branch is as it was or complete"


def test_sigterm_ends_the_run_at_once(checkout: Checkout) -> None:
    env = with_a_fault(checkout.lab, "import time; print('planning', flush=True); time.sleep(60)")
    with checkout.branch_kept():
        run = subprocess.Popen(command_line(checkout.arguments()), env=env, stdout=subprocess.PIPE, text=True)
        assert run.stdout is not None
        run.stdout.readline()
        run.terminate()
        run.communicate(timeout=30)
    assert run.returncode == -signal.SIGTERM


def test_help_names_every_option_and_the_exit_codes(checkout: Checkout) -> None:
    text = " ".join(checkout.lab.run("--help").require().out.split())
    options = ("onto", "repo", "reference", "series", "branch", "only", "dry-run", "explain", "json", "format-patch")
    for word in (*(f"--{name}" for name in (*options, "checkout", "force")), "2 usage", "3 conflict", "4 not a usable"):
        assert word in text
    assert checkout.lab.run("--version").require().out.startswith("apply-stack, version ")
