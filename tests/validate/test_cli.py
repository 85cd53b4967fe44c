"""``validate-stack``: gates by name, verdicts that are never mixed up, exit codes."""

from __future__ import annotations

import datetime
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

import fake_gates
from documents import document
from patchstack.messages.results import read_results
from skips import cannot
from stackproof import cli
from stackproof.cli import prove
from stackproof.cli.prove import typed
from stackproof.gates.spec import Spec
from stackproof.gates.table import GATES
from stackproof.model import Finding, GateResult, Verdict
from stackproof.report import RunReport, as_json, lines, overall
from stackproof.report.github import workflow_commands

PASSED = GateResult("one", Verdict.PASSED, cases=3, worst_error=0.5)
FAILED = GateResult("two", Verdict.FAILED, cases=3, failed=1, findings=[Finding("bad", "a/b.metal", 7, "race")])
NOT_RUN = GateResult("three", Verdict.NOT_RUN, reason="needs macOS")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=A", "-c", "user.email=a@b.c"]
    subprocess.run(["git", "init", "-q", "-b", "main", str(tmp_path)], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "base"], check=True)
    subprocess.run([*git, "checkout", "-q", "-b", "stack/grid_sampler"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "head"], check=True)
    return tmp_path


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / ".cache"
    monkeypatch.setenv("PATCHSTACK_CACHE", str(folder))
    return folder


@pytest.fixture
def three_gates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prove, "GATES", fake_gates.THREE)


@pytest.fixture
def every_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prove, "GATES", fake_gates.EVERY)


def invoke(repository: Path, *arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli.command, ["--repo", str(repository), *arguments])
    return result.exit_code, result.output


def test_the_list_names_every_gate_of_the_design() -> None:
    output = CliRunner().invoke(cli.command, ["--list"]).output
    for name in (
        "metal-check",
        "metal-run",
        "host-check",
        "host-run",
        "op-run",
        "build",
        "test-mps",
        "fc-window",
        "c-shim",
        "bench",
    ):
        assert name in output


@pytest.mark.parametrize("spec", GATES, ids=lambda spec: spec.name)
def test_every_gate_that_is_listed_can_be_loaded_and_has_the_folder_of_its_name(spec: Spec) -> None:
    assert callable(spec.load().run)
    assert spec.module == f"stackproof.gates.{spec.name.replace('-', '_')}.spec"
    assert spec.summary


@pytest.mark.usefixtures("three_gates")
def test_a_required_gate_that_is_not_run_is_exit_code_5(repository: Path) -> None:
    assert invoke(repository, "--only", "three", "--require", "three")[0] == 5


@pytest.mark.skipif(sys.platform == "darwin", reason=cannot("only where PyTorch cannot be built"))
def test_the_build_gate_is_not_run_away_from_macos_and_exit_code_5_when_required(repository: Path) -> None:
    code, output = invoke(repository, "--only", "build", "--json", "-")
    assert (code, document(output)["gates"][0]["verdict"]) == (0, "not run")
    assert "needs macOS and Xcode" in document(output)["gates"][0]["reason"]
    assert invoke(repository, "--only", "build", "--require", "build")[0] == 5


@pytest.mark.usefixtures("three_gates")
@pytest.mark.parametrize(
    ("only", "require", "code"),
    [("one", "", 0), ("one,three", "", 0), ("one,three", "three", 5), ("two", "", 1), ("one,two,three", "three", 1)],
)
def test_the_exit_code_follows_the_verdicts(repository: Path, only: str, require: str, code: int) -> None:
    assert invoke(repository, "--only", only, *(["--require", require] if require else []))[0] == code


@pytest.mark.usefixtures("three_gates")
def test_the_json_has_one_entry_a_gate_with_the_documented_keys(repository: Path, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    invoke(repository, "--json", str(file))
    report = json.loads(file.read_text())
    assert report["verdict"] == "failed"
    assert [gate["name"] for gate in report["gates"]] == ["one", "two", "three"]
    for gate in report["gates"]:
        assert {"name", "verdict", "cases", "failed", "worst_error", "seconds", "reason"} <= set(gate)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--only", "nonsense"], "no gate 'nonsense'"),
        (["--run-modes", "plane"], "no run mode 'plane'; expected some of plain, detectors"),
        (["--head", "nowhere"], "no such commit"),
        (["--base", "nowhere"], "no such commit"),
        (["--series", "nonsense"], "no series 'nonsense'"),
        (["--reference", "2.11"], "do not go together"),
        (["--json", "/nowhere/report.json"], "no such folder"),
        (["--junit", "/nowhere/report.xml"], "no such folder"),
        (["--html", "/"], "cannot be written"),
    ],
)
def test_bad_usage_is_one_sentence_and_exit_code_2(
    repository: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], expected: str
) -> None:
    with pytest.raises(SystemExit) as done:
        cli.main(["--repo", str(repository), *arguments])
    error = capsys.readouterr().err
    assert done.value.code == 2
    assert expected in error
    assert "Traceback" not in error
    assert error.count("\n") == 1


def test_the_three_verdicts_are_never_mixed_up() -> None:
    assert overall([PASSED, NOT_RUN]) is Verdict.PASSED
    assert overall([PASSED, FAILED]) is Verdict.FAILED
    assert overall([NOT_RUN]) is Verdict.NOT_RUN
    with pytest.raises(ValueError, match="reason"):
        GateResult("x", Verdict.NOT_RUN)
    with pytest.raises(ValueError, match="at least one case"):
        GateResult("x", Verdict.PASSED)


def test_the_table_names_findings_limits_and_reasons() -> None:
    limited = GateResult("one", Verdict.PASSED, cases=1, limits=["Apple's compiler"])
    text = "\n".join(lines([limited, FAILED, NOT_RUN]))
    assert "two: a/b.metal:7: bad [race]" in text
    assert "needs macOS" in text
    assert "not shown by this: Apple's compiler" in text
    assert text.endswith("verdict: failed: 1 of 3 gates; 1 not run")


def test_findings_become_workflow_commands_with_escapes() -> None:
    finding = Finding("100% wrong\nreally", "a,b:c.py", 3, "rule", fails=False)
    (line,) = workflow_commands([GateResult("g", Verdict.FAILED, findings=[finding])])
    assert line == "::notice title=g rule,file=a%2Cb%3Ac.py,line=3::100%25 wrong%0Areally"


def test_an_interrupted_report_says_so() -> None:
    report = RunReport("r", "b", "h", [PASSED], partial=True)
    assert as_json(report)["partial"] is True
    assert cli.exit_code(report, ()) == 130


@pytest.mark.usefixtures("every_gate")
def test_a_gate_that_raises_is_a_failed_gate_with_a_report_file_and_no_traceback(repository: Path) -> None:
    code, output = invoke(repository, "--only", "raising,passing")
    assert code == 1
    assert "raising: internal error: RuntimeError: something unforeseen (report: " in output
    assert "Traceback" not in output
    assert "not for the terminal" not in output
    assert re.search(r"passing +passed", output)
    file = Path(re.search(r"\(report: (.*?)\)", output)[1])  # type: ignore[index]
    assert "Traceback" in file.read_text()
    assert "RuntimeError: something" in file.read_text()


@pytest.mark.usefixtures("every_gate")
@pytest.mark.parametrize(
    ("gate", "said"),
    [("crashing", "the gate's process ended by SIGSEGV"), ("unsendable", "internal error: PicklingError")],
)
def test_a_gate_that_cannot_answer_fails_and_the_next_one_runs(repository: Path, gate: str, said: str) -> None:
    code, output = invoke(repository, "--only", f"{gate},passing", "--json", "-")
    first = next(found for found in document(output)["gates"] if found["name"] == gate)
    assert code == 1
    assert first["verdict"] == "failed"
    assert first["findings"][0]["message"].replace("AttributeError", "PicklingError").startswith(said)
    assert {found["name"] for found in document(output)["gates"]} == {gate, "passing"}


@pytest.mark.usefixtures("every_gate")
def test_the_report_of_a_crash_has_the_last_words(repository: Path, cache: Path) -> None:
    invoke(repository, "--only", "crashing")
    (file,) = (cache / "reports").iterdir()
    assert "last words" in file.read_text()


@pytest.mark.usefixtures("every_gate")
@pytest.mark.parametrize("gate", ["missing", "undeclared"])
def test_a_gate_without_its_packages_is_not_run_and_says_what_to_install(repository: Path, gate: str) -> None:
    code, output = invoke(repository, "--only", gate)
    assert code == 0
    assert "needs the package nonsense (next: pip install nonsense)" in output


@pytest.mark.usefixtures("three_gates")
def test_all_files_are_written_and_agree_about_the_verdict(repository: Path, tmp_path: Path) -> None:
    files = {kind: tmp_path / f"report.{kind}" for kind in ("json", "junit", "html")}
    code, _ = invoke(repository, *(word for kind, file in files.items() for word in (f"--{kind}", str(file))))
    assert code == 1
    assert json.loads(files["json"].read_text())["verdict"] == "failed"
    assert ElementTree.parse(files["junit"]).getroot().get("failures") == "2"
    assert "<title>validate-stack: failed</title>" in files["html"].read_text()


def commit_two_more(repository: Path) -> list[str]:
    """The commits of a stack of three: the second has a file ``bad``, which the third takes away."""
    git = ["git", "-C", str(repository), "-c", "user.name=A", "-c", "user.email=a@b.c"]
    (repository / "bad").touch()
    subprocess.run([*git, "add", "bad"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "[MPS] Add grid_sampler_2d_backward"], check=True)
    subprocess.run([*git, "rm", "-q", "bad"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "third"], check=True)
    listed = subprocess.run([*git, "rev-list", "--reverse", "HEAD"], check=True, capture_output=True, text=True)
    return listed.stdout.split()


@pytest.mark.usefixtures("every_gate")
def test_each_commit_is_judged_against_its_parent_and_the_whole_against_the_base(repository: Path) -> None:
    base, *stack = commit_two_more(repository)
    code, output = invoke(repository, "--each-commit", "--only", "passing", "--json", "-")
    report = document(output)
    asked = [commit["gates"][0]["details"] for commit in report["commits"]]
    assert code == 0
    assert [(one["base"], one["head"]) for one in asked] == list(zip([base, *stack], stack, strict=False))
    assert (report["gates"][0]["details"]["base"], report["gates"][0]["details"]["head"]) == (base, stack[-1])
    assert [commit["title"] for commit in report["commits"]] == ["head", "[MPS] Add grid_sampler_2d_backward", "third"]


@pytest.mark.usefixtures("every_gate")
def test_a_commit_is_asked_for_the_ops_of_the_changes_up_to_it(repository: Path) -> None:
    commit_two_more(repository)
    report = document(invoke(repository, "--each-commit", "--only", "passing", "--json", "-")[1])
    options = [commit["gates"][0]["details"]["options"] for commit in report["commits"]]
    assert [one["ops"] for one in options] == [[], ["grid_sampler_2d_backward"], ["grid_sampler_2d_backward"]]


@pytest.mark.usefixtures("every_gate")
def test_the_whole_stack_is_asked_for_the_ops_of_its_changes_where_titles_tell(repository: Path) -> None:
    untold = document(invoke(repository, "--only", "passing", "--json", "-")[1])
    commit_two_more(repository)
    told = document(invoke(repository, "--only", "passing", "--json", "-")[1])
    assert untold["gates"][0]["details"]["options"]["ops"] == []
    assert told["gates"][0]["details"]["options"]["ops"] == ["grid_sampler_2d_backward"]


@pytest.mark.usefixtures("every_gate")
def test_a_bad_commit_in_the_middle_fails_the_run_although_the_whole_stack_passes(repository: Path) -> None:
    commit_two_more(repository)
    assert invoke(repository, "--only", "on-head")[0] == 0
    code, output = invoke(repository, "--each-commit", "--only", "on-head", "--json", "-")
    report = document(output)
    assert (code, report["verdict"], report["gates"][0]["verdict"]) == (1, "failed", "passed")
    assert [commit["verdict"] for commit in report["commits"]] == ["passed", "failed", "passed"]


@pytest.mark.usefixtures("every_gate")
def test_a_report_can_be_quoted_in_the_message_of_the_commit_it_judged(
    repository: Path, tmp_path: Path, three_gates: None
) -> None:
    file = tmp_path / "report.json"
    invoke(repository, "--each-commit", "--json", str(file))
    git = ["git", "-C", str(repository), "rev-parse", "main^{tree}", "stack/grid_sampler^{tree}"]
    base, tree = subprocess.run(git, check=True, capture_output=True, text=True).stdout.split()
    run = read_results(file).of(base, tree)
    assert run is not None
    assert run.command == "validate-stack --each-commit"
    assert str(tmp_path) not in run.command


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (cli.Request(), ""),
        (cli.Request(repo=Path("/here"), jobs=7, verbose=True), ""),
        (cli.Request(only=("lint", "build"), each_commit=True), " --each-commit --only lint,build"),
        (cli.Request(series="/some/where", require=("lint",)), " --require lint"),
        (cli.Request(series="grid_sampler", reference="2.11"), " --reference 2.11 --series grid_sampler"),
        (cli.Request(options={"today": datetime.datetime(2026, 11, 30)}), " --today 2026-11-30"),
        (cli.Request(options={"ops": ("take", "renorm"), "small": True}), " --ops take,renorm --small"),
        (cli.Request(options={"match": "one row; bilinear"}), " --match 'one row; bilinear'"),
        (
            cli.Request(options={"run_modes": ("plain", "fast math"), "kinds": ("values",), "tests": ("test_a",)}),
            " --run-modes 'plain,fast math' --kinds values --tests test_a",
        ),
    ],
)
def test_the_command_in_a_report_has_no_path_of_this_machine(request_: cli.Request, words: str) -> None:
    assert typed(request_) == f"validate-stack{words}"


@pytest.mark.usefixtures("every_gate")
def test_parts_of_gates_reach_the_gates_of_each_commit(repository: Path) -> None:
    arguments = ["--each-commit", "--only", "passing", "--ops", "take", "--match", "one row", "--small"]
    arguments += ["--run-modes", "plain", "--kinds", "values,vmap", "--tests", "test_take", "--json", "-"]
    _, output = invoke(repository, *arguments)
    report = document(output)
    expected = {"ops": ["take"], "match": "one row", "small": True, "run_modes": ["plain"]}
    expected |= {"kinds": ["values", "vmap"], "tests": ["test_take"]}
    for gates in (report["gates"], *(commit["gates"] for commit in report["commits"])):
        assert expected.items() <= gates[0]["details"]["options"].items()


@pytest.mark.usefixtures("every_gate")
def test_the_only_commit_of_a_stack_is_judged_once(repository: Path) -> None:
    _, output = invoke(repository, "--each-commit", "--only", "passing")
    assert len(re.findall(r"^passing +passed", output, re.MULTILINE)) == 1


def test_a_dry_run_prints_the_builds_commands_and_runs_nothing(repository: Path, cache: Path) -> None:
    code, output = invoke(repository, "--only", "build", "--dry-run")
    assert code == 0
    assert "USE_MPS=1" in output
    assert "git worktree add" in output
    assert "env -u PYTORCH_ENABLE_MPS_FALLBACK" in output
    assert not (cache / "build").exists()


@pytest.mark.usefixtures("every_gate")
def test_a_dry_run_of_other_gates_says_that_they_have_no_commands(repository: Path) -> None:
    code, output = invoke(repository, "--only", "passing,missing", "--dry-run")
    assert code == 0
    assert "no commands of its own" in output
    assert "needs the package nonsense" in output


def test_an_error_of_the_command_itself_is_one_line_and_a_report_file(
    repository: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(prove, "find_target", lambda **_: 1 / 0)
    with pytest.raises(SystemExit) as done:
        cli.main(["--repo", str(repository)])
    error = capsys.readouterr().err
    assert done.value.code == 1
    assert error.startswith("validate-stack: internal error: ZeroDivisionError")
    assert error.count("\n") == 1
    (file,) = (cache / "reports").iterdir()
    assert "Traceback" in file.read_text()


def test_a_reader_that_goes_away_changes_nothing_about_the_exit_code(repository: Path, cache: Path) -> None:
    code = f"import sys; sys.path[:] = {sys.path!r}; import fake_gates; from stackproof.cli import main, prove; \
prove.GATES = fake_gates.THREE; main(['--repo', {str(repository)!r}, '--verbose'])"
    driver = subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "PATCHSTACK_CACHE": str(cache)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert driver.stdout is not None
    assert driver.stderr is not None
    driver.stdout.close()
    errors = driver.stderr.read()
    assert driver.wait() == 1
    assert errors == b""
    driver.stderr.close()


def test_the_list_says_of_each_gate_whose_code_it_runs() -> None:
    listed = {line.split()[0]: line for line in CliRunner().invoke(cli.command, ["--list"]).output.splitlines()}
    assert {name for name, line in listed.items() if line.endswith("[runs no code of the tree]")} == {
        "metal-check",
        "lint",
    }
    assert listed["c-shim"].endswith("[runs the tree's torchgen]")
    assert listed["test-mps"].endswith("[runs the tree's tests, the stack's host functions and kernels]")


def test_without_code_of_the_tree_gates_that_need_it_are_not_run(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needing = replace(fake_gates.POOLED, runs="the moon's code")
    doing_without = replace(fake_gates.CONFINED, runs="the sun's code", can_do_without=True)
    monkeypatch.setattr(prove, "GATES", (needing, doing_without, fake_gates.PASSING))
    _, text = invoke(repository, "--no-tree-code", "--json", "-")
    report = document(text)
    assert [(gate["name"], gate["verdict"], gate["reason"]) for gate in report["gates"]] == [
        ("pooled", "not run", "it runs the moon's code, which --no-tree-code forbids"),
        ("confined", "not run", "code of a test would have to be run, and --no-tree-code forbids it"),
        ("passing", "passed", ""),
    ]
    assert "--no-tree-code" in report["command"]


def test_the_report_says_what_was_taken_from_code_of_the_tree(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prove, "GATES", (fake_gates.CONFINED, fake_gates.PASSING))
    _, text = invoke(repository, "--json", "-")
    confined, passing = document(text)["gates"]
    (note,) = (one for one in confined["findings"] if one["rule"] == "confined")
    assert (confined["verdict"], note["fails"], note["details"]["what"]) == ("passed", False, "code of a test")
    assert note["details"]["held"]["environment"] is True
    assert note["message"].startswith("code of a test ran confined: no variables but those it needs; ")
    assert not any(one["rule"] == "confined" for one in passing["findings"])
