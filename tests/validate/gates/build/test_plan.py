"""The plan of a build, made on any system for a Mac that is not there."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from gate_contexts import options_of, run_gate
from patchstack.tree.git import GitCommitHash, Repository
from stackproof.engines.mac_build.folder import BuildFolder, BuiltTree, built_tree
from stackproof.engines.mac_build.machine import Machine
from stackproof.engines.mac_build.plan import (
    FALLBACK,
    BuildRequest,
    Command,
    build_variables,
    plan_build,
    plan_tests,
    shell_lines,
    test_patterns,
)
from stackproof.gates.build import gate
from stackproof.gates.build.spec import SPEC as BUILD
from stackproof.model import GateContext, Verdict

OP = "grid_sampler_2d_backward"
MAC = Machine("Darwin", "arm64", "/Applications/Xcode.app/Contents/Developer", "/usr/bin/metal", "", "/usr/bin/python3")
HEAD = GitCommitHash("a" * 40)
WHOLE_TREE = ("setup.py", "CMakeLists.txt", "requirements.txt")

test_patterns.__test__ = False  # type: ignore[attr-defined]


def request_for(folder: Path, **changes: object) -> BuildRequest:
    request = BuildRequest(Path("/my pytorch"), HEAD, BuildFolder(folder), 8, ("grid_sampler_2d_backward",))
    return replace(request, **changes)  # type: ignore[arg-type]


def by_name(commands: tuple[Command, ...]) -> dict[str, Command]:
    return {command.name: command for command in commands}


def test_the_commands_come_in_the_order_in_which_they_need_each_other(tmp_path: Path) -> None:
    names = [command.name for command in plan_build(MAC, request_for(tmp_path))]
    assert names == [
        "worktree", "submodules", "virtual environment", "build requirements", "build", "check the build",
    ]  # fmt: skip


def test_a_second_build_keeps_worktree_and_environment(tmp_path: Path) -> None:
    commands = plan_build(MAC, request_for(tmp_path, worktree_exists=True, environment_exists=True))
    assert "virtual environment" not in by_name(commands)
    assert commands[0].arguments == ("git", "checkout", "--quiet", "--detach", HEAD)
    assert commands[0].folder == tmp_path / "pytorch"


def test_the_build_has_mps_and_leaves_out_what_the_tests_do_not_touch(tmp_path: Path) -> None:
    build = by_name(plan_build(MAC, request_for(tmp_path)))["build"]
    assert build.is_build
    assert build.variables["USE_MPS"] == "1"
    assert build.variables["USE_CUDA"] == build.variables["USE_DISTRIBUTED"] == build.variables["BUILD_TEST"] == "0"
    assert build.variables["MAX_JOBS"] == "8"
    assert build.variables["CMAKE_GENERATOR"] == "Ninja"
    assert not any("LAUNCHER" in name for name in build.variables)


@pytest.mark.parametrize(("launcher", "has_base"), [("/opt/bin/ccache", True), ("/opt/bin/sccache", False)])
def test_a_compiler_cache_is_used_for_every_language_where_there_is_one(
    tmp_path: Path, launcher: str, has_base: bool
) -> None:
    variables = build_variables(replace(MAC, compiler_launcher=launcher), request_for(tmp_path))
    launchers = {variables[f"CMAKE_{language}_COMPILER_LAUNCHER"] for language in ("C", "CXX", "OBJC", "OBJCXX")}
    assert launchers == {launcher}
    assert ("CCACHE_BASEDIR" in variables) is has_base


def test_the_tests_are_those_of_the_ops_and_run_without_the_fallback(tmp_path: Path) -> None:
    command = plan_tests(BuiltTree(tmp_path, tmp_path / "python"), ["some_op_backward", "other_op", "some_op"])
    assert command.arguments[1:] == ("test/test_mps.py", "--verbose", "-k", "some_op", "-k", "other_op")
    assert command.unset == (FALLBACK,)


def test_a_printed_command_is_what_the_shell_would_run(tmp_path: Path) -> None:
    command = Command("say", ("sh", "-c", 'echo "$WHAT" "${GONE-unset}"'), tmp_path, {"WHAT": "it's  me"}, ("GONE",))
    done = subprocess.run(
        ["sh", "-c", command.as_shell()], env={"GONE": "1", "PATH": "/usr/bin:/bin"}, capture_output=True, check=True
    )
    assert done.stdout == b"it's  me unset\n"


def test_every_line_of_the_plan_is_a_comment_or_valid_shell(tmp_path: Path) -> None:
    text = "\n".join(shell_lines(MAC, request_for(tmp_path / "with 'quotes' & blanks")))
    assert subprocess.run(["sh", "-n"], input=text.encode(), check=False).returncode == 0
    assert "# not run here" not in text
    assert "# not run here: needs macOS and Xcode, this is Plan9" in "\n".join(
        shell_lines(Machine("Plan9", "mips"), request_for(tmp_path))
    )


@pytest.mark.parametrize(
    ("machine", "reason"),
    [
        (Machine("Linux", "x86_64"), "needs macOS and Xcode, this is Linux"),
        (replace(MAC, developer_folder=""), "xcode-select --install"),
        (replace(MAC, metal=""), "xcodebuild -downloadComponent MetalToolchain"),
        (MAC, ""),
    ],
)
def test_a_machine_that_cannot_build_says_what_it_lacks(machine: Machine, reason: str) -> None:
    assert reason in machine.not_able
    assert bool(machine.not_able) is bool(reason)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    git = ["git", "-C", str(folder), "-c", "user.name=A", "-c", "user.email=a@b.c"]
    subprocess.run(["git", "init", "-q", "-b", "main", str(folder)], check=True)
    for number, name in enumerate(WHOLE_TREE):
        (folder / name).write_text(str(number))
        subprocess.run([*git, "add", name], check=True)
        subprocess.run([*git, "commit", "-q", "-m", name], check=True)
    return folder


def context_for(repository: Path, tmp_path: Path, head: str = "main") -> GateContext:
    opened = Repository.open(repository)
    commit = opened.resolve_commit(head)
    assert commit is not None
    return GateContext(opened, commit, commit, tmp_path / "cache")


def test_the_worktree_command_leaves_the_checkout_alone_and_can_be_repeated(repository: Path, tmp_path: Path) -> None:
    context = context_for(repository, tmp_path, "main~1")
    folder = BuildFolder.of(context.repository, context.cache)
    folder.path.mkdir(parents=True)
    before = (repository / ".git" / "HEAD").read_text()
    for head, exists in ((context.head, False), (context_for(repository, tmp_path).head, True)):
        request = BuildRequest(repository, head, folder, 1, (), worktree_exists=exists)
        command = plan_build(MAC, request)[0]
        subprocess.run(command.arguments, cwd=command.folder, check=True)
        checked_out = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=folder.worktree, check=True, capture_output=True, text=True
        )
        assert checked_out.stdout.strip() == head
    assert (repository / ".git" / "HEAD").read_text() == before


def test_the_plan_of_the_gate_can_be_printed_anywhere(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Machine, "here", lambda: Machine("Linux", "x86_64"))
    text = "\n".join(gate.plan(context_for(repository, tmp_path), options_of(BUILD, ops=[OP])))
    assert "# not run here: needs macOS" in text
    assert "USE_MPS=1" in text
    assert "not run on this tree" not in text
    assert not (tmp_path / "cache").exists()


def test_a_tree_that_is_not_whole_is_not_built(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Machine, "here", lambda: MAC)
    result = run_gate(BUILD, context_for(repository, tmp_path, "main~1"), ops=[OP])
    assert result.verdict is Verdict.NOT_RUN
    assert "this tree has no requirements.txt" in result.reason


def test_no_build_is_offered_before_there_is_one_and_for_another_commit(repository: Path, tmp_path: Path) -> None:
    context = context_for(repository, tmp_path)
    folder = BuildFolder.of(context.repository, context.cache)
    assert built_tree(context.repository, context.head, context.cache) is None
    folder.path.mkdir(parents=True)
    folder.mark_built(context.head)
    assert built_tree(context.repository, context.head, context.cache) == BuiltTree(folder.worktree, folder.python)
    assert built_tree(context.repository, HEAD, context.cache) is None
    folder.stamp.write_text("not JSON")
    assert built_tree(context.repository, context.head, context.cache) is None
