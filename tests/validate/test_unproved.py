"""A run whose gates pass without launching a kernel of the stack is no pass: it names the kernels, with exit code 5."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

import fake_gates
from launching_gates import ALL, HALF, NONE, NOTHING, REAL
from skips import cannot
from stackproof import cli
from stackproof.cli import prove
from stackproof.engines.errors import ToolchainError
from stackproof.engines.metal.toolchain import find_toolchain
from stackproof.gates.spec import Spec
from stackproof.gates.table import GATES, PROVING

SOURCE = "aten/src/ATen/native/mps/kernels/Tint.metal"
KERNELS = """\
#include <metal_stdlib>
template <typename T>
kernel void tint(device T* out [[buffer(0)]], uint i [[thread_position_in_grid]]) { out[i] = T(1); }
template [[host_name("tint_float")]] kernel void tint<float>(device float*, uint);
template [[host_name("tint_half")]] kernel void tint<half>(device half*, uint);
"""
PASSING, FAILING, NOT_RUN = fake_gates.THREE


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATCHSTACK_CACHE", str(tmp_path / ".cache"))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A branch that brings two kernels."""
    root = tmp_path / "tree"
    git = ["git", "-C", str(root), "-c", "user.name=A", "-c", "user.email=a@b.c"]
    subprocess.run(["git", "init", "-q", "-b", "main", str(root)], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "base"], check=True)
    subprocess.run([*git, "checkout", "-q", "-b", "stack/grid_sampler"], check=True)
    (root / SOURCE).parent.mkdir(parents=True)
    (root / SOURCE).write_text(KERNELS)
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "head"], check=True)
    return root


@pytest.fixture
def compiler() -> None:
    try:
        find_toolchain()
    except ToolchainError as error:
        pytest.skip(cannot(f"{error}"))


def invoked(
    repository: Path, monkeypatch: pytest.MonkeyPatch, gates: Sequence[Spec], *arguments: str
) -> tuple[int, str]:
    monkeypatch.setattr(prove, "GATES", tuple(gates))
    result = CliRunner().invoke(cli.command, ["--repo", str(repository), *arguments])
    return result.exit_code, result.output


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    ("gates", "missing"),
    [
        ([NONE, PASSING], "tint_float, tint_half"),
        ([NOTHING, PASSING], "tint_float, tint_half"),
        ([NONE, HALF, PASSING], "tint_float"),
    ],
    ids=["not run", "passed without a launch", "one of two"],
)
def test_kernels_that_no_gate_launched_are_named_with_exit_code_5(
    repository: Path, monkeypatch: pytest.MonkeyPatch, gates: list[Spec], missing: str
) -> None:
    code, output = invoked(repository, monkeypatch, gates)
    assert code == 5
    assert f"unproved: kernel {missing}: no gate launched" in output
    last = output.splitlines()[-1]
    assert last.startswith(f"verdict: unproved: kernel {missing}; the gates alone: passed: ")


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    "gates", [[NONE, HALF, ALL], [NONE, ALL], [NONE, REAL], [PASSING]], ids=["two", "tests alone", "uncounted", "other"]
)
def test_a_run_passes_where_every_kernel_was_launched_or_no_gate_was_to_launch_any(
    repository: Path, monkeypatch: pytest.MonkeyPatch, gates: list[Spec]
) -> None:
    code, output = invoked(repository, monkeypatch, gates)
    assert code == 0
    assert "unproved" not in output
    assert output.splitlines()[-1].startswith("verdict: passed")


@pytest.mark.usefixtures("compiler")
def test_a_gate_that_failed_stays_the_verdict_and_the_kernels_are_named_all_the_same(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, output = invoked(repository, monkeypatch, [NONE, FAILING])
    assert code == 1
    assert "unproved: kernel tint_float, tint_half" in output
    assert output.splitlines()[-1].startswith("verdict: failed")


@pytest.mark.usefixtures("compiler")
def test_the_reports_for_machines_say_unproved_and_ci_sees_an_error(
    repository: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    files = {kind: tmp_path / f"report.{kind}" for kind in ("json", "junit", "html")}
    options = [word for kind, file in files.items() for word in (f"--{kind}", str(file))]
    assert invoked(repository, monkeypatch, [NONE, HALF], "--each-commit", *options)[0] == 5
    read = json.loads(files["json"].read_text())
    assert read["verdict"] == "unproved"
    assert [one["kernels"] for one in read["unproved"]] == [["tint_float"]]
    assert [commit["verdict"] for commit in read["commits"]] in ([], ["unproved"])
    root = ElementTree.fromstring(files["junit"].read_text())
    assert root.get("errors") == "1"
    (error,) = root.iterfind("testsuite[@name='the whole run']/testcase/error")
    assert "tint_float" in error.get("message", "")
    html = files["html"].read_text()
    assert '<span class="badge unproved">unproved</span>' in html
    assert "unproved: kernel tint_float: no gate launched" in html


def test_without_a_compiler_the_files_are_named_instead_of_their_kernels(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(*_arguments: object) -> object:
        raise ToolchainError("no compiler")

    monkeypatch.setattr("stackproof.engines.metal.brought.find_toolchain", absent)
    code, output = invoked(repository, monkeypatch, [NONE, PASSING])
    assert code == 5
    assert f"unproved: kernel (every one of {SOURCE})" in output


def test_what_a_gate_looked_at_stands_below_the_rows(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = invoked(repository, monkeypatch, [HALF, ALL])[1].splitlines()
    assert "host-run: launched 1 of 2 kernels of the stack, 2 times" in lines
    assert "test-mps: launched 2 of 2 kernels of the stack, 4 times" in lines
    assert "test-mps: calls: tint: none" in lines


def test_a_gate_that_was_not_run_does_not_say_what_a_run_does_not_show(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = invoked(repository, monkeypatch, [NONE, PASSING], "--verbose")[1]
    assert "one: not shown by this: the moon" in output
    assert "metal-run: not shown" not in output


def test_a_required_gate_that_was_not_selected_is_said_to_be_that_with_what_to_type(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gates = [PASSING, fake_gates.PASSING]
    code, output = invoked(repository, monkeypatch, gates, "--only", "one", "--require", "passing,one")
    assert code == 5
    reason = "passing: not selected, --only leaves it out (next: the same command with --only one,passing)"
    assert f"required but not run: {reason}" in output
    assert invoked(repository, monkeypatch, gates, "--only", "one,passing", "--require", "passing,one")[0] == 0


def test_a_required_gate_that_could_not_run_is_named_with_its_reason(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, output = invoked(repository, monkeypatch, [NOT_RUN], "--require", "three")
    assert code == 5
    assert "required but not run: three: needs macOS" in output


def test_the_gates_that_execute_kernels_are_gates() -> None:
    assert {"metal-run", "host-run", "op-run", "test-mps"} == PROVING
    assert {spec.name for spec in GATES} > PROVING
