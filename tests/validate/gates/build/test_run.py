"""Running a plan and reading its output, with commands that only pretend to build."""

from __future__ import annotations

import fcntl
import subprocess
from pathlib import Path

import pytest

from gate_contexts import run_gate
from patchstack.confine import take
from patchstack.tree.git import Repository
from stackproof.engines.mac_build.execute import run_commands
from stackproof.engines.mac_build.folder import BuildFolder, built_tree
from stackproof.engines.mac_build.machine import Machine
from stackproof.engines.mac_build.ninja import NinjaOutput, failures
from stackproof.engines.mac_build.plan import BuildRequest, Command
from stackproof.gates.build import gate
from stackproof.gates.build.spec import SPEC as BUILD
from stackproof.model import GateContext, GateResult, Verdict

MAC = Machine("Darwin", "arm64", "/Xcode", "/usr/bin/metal")
FAILING_BUILD = """\
  [1/3] Building CXX object a.o
  [2/3] Building OBJCXX object b.o
  FAILED: caffe2/b.o
  ../aten/src/ATen/native/mps/operations/GridSampler.mm:12:3: error: no member named 'frobnicate'
  {worktree}/c10/metal/utils.h:7:1: fatal error: 'nothing.h' file not found
  ../aten/src/ATen/native/mps/operations/GridSampler.mm:12:3: error: no member named 'frobnicate'
  /usr/include/stdio.h:1:1: warning: never mind
  ninja: build stopped: subcommand failed.
"""


def fed(text: str) -> NinjaOutput:
    output = NinjaOutput()
    for line in text.splitlines():
        output.feed(line)
    return output


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("[12/3456] Building CXX object x.o", (12, 3456, "Building CXX object x.o")),
        ("  [1/2]  Linking", (1, 2, "Linking")),
        ("[100%] Built target x", None),
        ("list[1/2] of something", None),
        ("[a/b] nothing", None),
    ],
)
def test_ninjas_steps_are_recognised(line: str, step: tuple[int, int, str] | None) -> None:
    output = NinjaOutput()
    assert output.feed(line) is (step is not None)
    assert (output.done, output.total, output.what) == (step or (0, 0, ""))


def test_each_compiler_error_is_one_finding_with_its_place_in_the_tree(tmp_path: Path) -> None:
    found = list(failures(fed(FAILING_BUILD.format(worktree=tmp_path)), "build", 1, tmp_path))
    places = [(finding.path, finding.line, finding.rule) for finding in found]
    assert places == [
        ("aten/src/ATen/native/mps/operations/GridSampler.mm", 12, "compile"),
        ("c10/metal/utils.h", 7, "compile"),
        ("", 0, "build"),
    ]
    assert found[2].message == "build ended with status 1: ninja: build stopped: subcommand failed."
    assert found[2].details["failed_targets"] == ["caffe2/b.o"]


def test_a_command_that_says_nothing_still_gives_a_finding(tmp_path: Path) -> None:
    (finding,) = failures(NinjaOutput(), "submodules", 128, tmp_path)
    assert finding.message == "submodules ended with status 128: no output"


def shell(name: str, script: str, folder: Path, *, is_build: bool = False) -> Command:
    return Command(name, ("sh", "-c", script), folder, {"WORD": "set"}, ("HOME",), is_build)


def test_commands_run_until_one_fails_and_all_output_is_in_the_log(tmp_path: Path) -> None:
    commands = [
        shell("first", 'echo "$WORD ${HOME-unset}"', tmp_path),
        shell("second", "echo '[1/2] one'; echo '[2/2] two' >&2", tmp_path, is_build=True),
        shell("third", "exit 7", tmp_path),
        shell("fourth", "echo never", tmp_path),
    ]
    steps: list[tuple[int, int, str]] = []
    results = list(run_commands(commands, tmp_path / "log", lambda *step: steps.append(step)))
    assert [result.status for result in results] == [0, 0, 7]
    assert steps == [(0, 0, "first"), (0, 0, "second"), (1, 2, "one"), (2, 2, "two"), (0, 0, "third")]
    log = (tmp_path / "log").read_text()
    assert "set unset" in log
    assert "[2/2] two" in log
    assert "never" not in log


def test_a_program_that_does_not_exist_is_a_failed_command(tmp_path: Path) -> None:
    (result,) = run_commands([Command("x", ("/no/such/program",), tmp_path)], tmp_path / "log", lambda *step: None)
    assert result.status == 127
    assert "/no/such/program" in result.output.tail[-1]


@pytest.fixture
def context(tmp_path: Path) -> GateContext:
    folder = tmp_path / "checkout"
    git = ["git", "-C", str(folder), "-c", "user.name=A", "-c", "user.email=a@b.c"]
    subprocess.run(["git", "init", "-q", "-b", "main", str(folder)], check=True)
    for name in ("setup.py", "CMakeLists.txt", "requirements.txt"):
        (folder / name).write_text("")
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "whole"], check=True)
    repository = Repository.open(folder)
    head = repository.resolve_commit("main")
    assert head is not None
    return GateContext(repository, head, head, tmp_path / "cache")


def built(context: GateContext, monkeypatch: pytest.MonkeyPatch, *scripts: str) -> GateResult:
    """The gate on a Mac of the imagination, whose plan is these scripts."""

    def plan(machine: Machine, request: BuildRequest) -> tuple[Command, ...]:
        return tuple(shell(f"step {n}", script, request.folder.path, is_build=True) for n, script in enumerate(scripts))

    monkeypatch.setattr(gate, "plan_build", plan)
    monkeypatch.setattr(Machine, "here", lambda: MAC)
    return run_gate(BUILD, context, ops=["op"])


def test_a_build_that_succeeds_is_left_for_the_tests(context: GateContext, monkeypatch: pytest.MonkeyPatch) -> None:
    result = built(context, monkeypatch, "echo '[9/9] done'", "true")
    assert (result.verdict, result.cases, result.failed) == (Verdict.PASSED, 2, 0)
    assert result.details["steps"]["step 0"]["ninja_steps"] == 9
    assert result.limits
    assert built_tree(context.repository, context.head, context.cache) is not None


def test_a_build_that_fails_takes_back_what_an_earlier_one_left(
    context: GateContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    built(context, monkeypatch, "true")
    result = built(context, monkeypatch, "true", "echo oh no; exit 3", "true")
    assert (result.verdict, result.cases, result.failed) == (Verdict.FAILED, 3, 1)
    assert [finding.message for finding in result.findings] == ["step 1 ended with status 3: oh no"]
    assert built_tree(context.repository, context.head, context.cache) is None


def test_two_builds_do_not_share_a_folder_at_once(context: GateContext, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = BuildFolder.of(context.repository, context.cache).path
    folder.mkdir(parents=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        result = built(context, monkeypatch, "true")
    assert result.verdict is Verdict.NOT_RUN
    assert "another validate-stack is building there" in result.reason


def test_the_build_gets_no_token_and_a_home_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("GITHUB_TOKEN", "secret"), ("SSH_AUTH_SOCK", "/agent"), ("CMAKE_PREFIX_PATH", "/deps")):
        monkeypatch.setenv(name, value)
    take()
    show = ("sh", "-c", "echo [$GITHUB_TOKEN$SSH_AUTH_SOCK] $HOME $CMAKE_PREFIX_PATH")
    commands = [Command("git", show, tmp_path), Command("build", show, tmp_path, is_build=True)]
    list(run_commands(commands, tmp_path / "log", lambda done, total, what: None))
    said = [line for line in (tmp_path / "log").read_text().splitlines() if line.startswith("[")]
    assert said[0].startswith("[secret/agent]")
    assert said[1] == f"[] {tmp_path}/home /deps"
    (confined,) = take()
    assert confined.what == "the tree's build"
    assert "NOT prevented: what breaks «the home folder is neither read nor written»" in confined.sentence
