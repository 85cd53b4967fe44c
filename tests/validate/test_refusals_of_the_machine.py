"""Where the machine refuses something, each gate that would need it is not run and says what to type."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from patchstack.tree.git.process import run_git
from privileges import run_obeying_modes, run_with_mount
from skips import cannot
from stack_lab import StackLab, applied
from stackproof.gates.spec import Keeps
from stackproof.gates.table import GATES

NOEXEC = "the cache is on a file system that is mounted noexec, so that nothing compiled there can be loaded"
VARIABLE = "(next: export PATCHSTACK_CACHE=FOLDER, a folder of your own"
OPEN = """
import sys
from pathlib import Path
from stackproof.engines.metal.native import open_library
try:
    open_library(Path(sys.argv[1]))
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> StackLab:
    with applied("2.11", tmp_path_factory.mktemp("refusals") / "tree", "grid_sampler_2d_backward") as lab:
        return lab


def environment(cache: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PATCHSTACK_CACHE": str(cache)}


def command(*gates: str) -> list[str]:
    return [sys.executable, "-m", "stackproof.cli", "--only", ",".join(gates), "--json", "-"]


def gates_of(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.stderr == ""
    return {gate["name"]: gate for gate in json.loads(done.stdout)["gates"]}


def that_keep(*what: Keeps) -> tuple[str, ...]:
    return tuple(spec.name for spec in GATES if spec.keeps in what)


def test_a_cache_that_is_mounted_noexec_is_the_cause_and_no_kernel_is_charged(lab: StackLab, tmp_path: Path) -> None:
    loading = that_keep(Keeps.PROGRAMS)
    assert set(loading) == {"metal-run", "host-run", "op-run", "test-mps", "apple-kernels", "bench"}
    done = run_with_mount(tmp_path, "noexec", command(*loading, "fc-window"), cwd=lab.path, env=environment(tmp_path))
    gates = gates_of(done)
    assert {name: gate["verdict"] for name, gate in gates.items() if name != "fc-window"} == dict.fromkeys(
        loading, "not run"
    )
    for name in loading:
        assert gates[name]["reason"] == f"{tmp_path}: {NOEXEC} {VARIABLE} elsewhere)"
    assert gates["fc-window"]["verdict"] == "passed"


def test_a_library_on_such_a_file_system_is_refused_with_the_cause(tmp_path: Path) -> None:
    import _ctypes

    script = f"cp {_ctypes.__file__} {tmp_path}/a.so && exec {sys.executable} -c '{OPEN}' {tmp_path}/a.so"
    done = run_with_mount(tmp_path, "noexec", ["sh", "-c", script], cwd=Path("/"), env=environment(tmp_path))
    assert done.stdout == f"ToolchainError {tmp_path}: {NOEXEC} {VARIABLE} elsewhere)\n"


@pytest.mark.parametrize("part", ["", "metal-run", "metal-run/sources"])
def test_a_cache_of_another_user_is_one_sentence_with_the_variable_to_set(
    lab: StackLab, tmp_path: Path, part: str
) -> None:
    if os.geteuid():
        pytest.skip(cannot("only root may give a folder to another user"))
    cache = tmp_path / "cache"
    foreign = cache / part
    foreign.mkdir(parents=True)
    shutil.chown(foreign, 65534)
    keeping = that_keep(Keeps.PROGRAMS, Keeps.FILES)
    done = run_obeying_modes(command(*keeping), cwd=lab.path, env=environment(cache))
    gates = gates_of(done)
    assert {name: gate["verdict"] for name, gate in gates.items()} == dict.fromkeys(keeping, "not run")
    for gate in gates.values():
        assert gate["reason"] == f"{foreign}: the cache cannot be written; found a folder of another user {VARIABLE})"


def test_a_write_that_is_refused_in_the_middle_of_a_gate_is_no_failure_of_the_stack(
    lab: StackLab, tmp_path: Path
) -> None:
    schema = lab.text("aten/src/ATen/native/native_functions.yaml").replace(
        "- func: glu(Tensor self, int dim=-1) -> Tensor", "- func: glu(Tensor self, Dimname dim) -> Tensor"
    )
    head = lab.changed({"aten/src/ATen/native/native_functions.yaml": schema})
    cache = tmp_path / "cache"
    (cache / "torchgen-package").mkdir(parents=True)
    (cache / "torchgen-package").chmod(0o555)
    done = run_obeying_modes([*command("fc-window"), "--head", head], cwd=lab.path, env=environment(cache))
    (gate,) = gates_of(done).values()
    assert gate["verdict"] == "not run"
    assert gate["reason"].startswith(f"{cache / 'torchgen-package'}: the cache cannot be written")


@pytest.mark.parametrize("program", ["patchstack.cli", "stackproof.cli"])
def test_a_repository_of_another_user_names_the_command_that_trusts_it(tmp_path: Path, program: str) -> None:
    if os.geteuid():
        pytest.skip(cannot("only root may give a folder to another user"))
    tree = tmp_path / "tree"
    run_git(tmp_path, ["init", "-q", str(tree)])
    for path in (tree, tree / ".git"):
        shutil.chown(path, 65534)
    said = refusal(program, tree, tmp_path)
    assert f"(next: git config --global --add safe.directory {tree})" in said


@pytest.mark.parametrize("program", ["patchstack.cli", "stackproof.cli"])
def test_a_repository_of_a_newer_git_names_its_extension(tmp_path: Path, program: str) -> None:
    tree = tmp_path / "tree"
    run_git(tmp_path, ["init", "-q", str(tree)])
    run_git(tree, ["config", "core.repositoryFormatVersion", "1"])
    run_git(tree, ["config", "extensions.foo", "bar"])
    said = refusal(program, tree, tmp_path)
    assert "found unknown repository extension extensions.foo; see docs/" in said
    assert "(next: use the git that made it)" in said


def refusal(program: str, tree: Path, home: Path) -> str:
    words = [sys.executable, "-m", program, "--repo", str(tree)]
    words += ["--onto", "main"] if program == "patchstack.cli" else []
    variables = {**environment(home / "cache"), "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(words, cwd=home, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode in (2, 4)
    assert done.stderr.count("\n") == 1
    return done.stderr
