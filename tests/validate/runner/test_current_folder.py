"""Whatever folder a command is typed in, and whatever lies there: what is installed is imported, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import fake_gates
from documents import document
from patchstack.python_processes import code_command, import_path, module_command
from stackproof.engines.pool import processes
from stackproof.engines.pool.tasks import WorkerStartError, run_tasks

SHADOWING = ("torch", "torchgen", "functorch", "yaml", "click", "ziglang", "pip", "sitecustomize")
_DRIVER = """
import sys
sys.path[:] = {path!r}
from stackproof.cli import main, prove
import fake_gates
prove.GATES = (fake_gates.POOLED,)
main()
"""


def git(folder: Path, *arguments: str) -> None:
    command = ["git", "-C", str(folder), "-c", "user.name=A", "-c", "user.email=a@b.c", *arguments]
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose packages must not be imported, with a linked worktree beside it."""
    folder = tmp_path / "checkout"
    for place in (folder, folder / "test", folder / "aten"):
        for name in SHADOWING:
            (place / name).mkdir(parents=True)
            (place / name / "__init__.py").write_text(f"raise SystemExit('the {name} of the checkout was imported')\n")
    git(tmp_path, "init", "-q", "-b", "main", str(folder))
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "base")
    git(folder, "commit", "-q", "--allow-empty", "-m", "head")
    git(folder, "worktree", "add", "-q", str(tmp_path / "linked"))
    return folder


def where(name: str) -> str:
    return str(__import__(name).__file__)


@pytest.fixture
def _fresh_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes._Server, "_current", None)


@pytest.mark.usefixtures("_fresh_server")
def test_workers_import_what_is_installed(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(checkout)
    monkeypatch.syspath_prepend("")
    monkeypatch.setenv("PYTHONPATH", ":.")
    answers = dict(run_tasks(["torch", "torchgen"], where, jobs=1))
    assert {name: str(checkout) in str(path) for name, path in answers.items()} == {"torch": False, "torchgen": False}


@pytest.mark.parametrize("spelling", ["", ".", "absolute", "linked"])
def test_the_current_folder_is_left_out_however_it_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spelling: str
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.chdir(tmp_path / "real")
    entry = {"absolute": str(tmp_path / "real"), "linked": str(tmp_path / "link")}.get(spelling, spelling)
    monkeypatch.setattr(sys, "path", [entry, "below", "/elsewhere"])
    assert import_path() == [str(tmp_path / "real/below"), "/elsewhere"]


def test_a_new_python_does_not_look_into_the_current_folder(checkout: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": f":.:{checkout}"}
    for command in (code_command("import yaml; print(yaml.__file__)"), module_command("pip", "--version")):
        done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, str(checkout) in done.stdout + done.stderr) == (0, False)


def _verdicts(checkout: Path, folder: Path, *arguments: str) -> object:
    command = [sys.executable, "-I", "-c", _DRIVER.format(path=["", *sys.path]), "--base", "main~", "--head", "main"]
    environment = {**os.environ, "PATCHSTACK_CACHE": str(checkout.parent / "cache"), "PYTHONPATH": ":."}
    done = subprocess.run(
        [*command, "--json", "-", *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    return [(gate["name"], gate["verdict"], gate["details"]) for gate in document(done.stdout)["gates"]]


@pytest.mark.exhaustive
def test_gates_give_the_same_verdicts_at_the_root_below_in_a_linked_worktree_and_elsewhere(
    checkout: Path, tmp_path: Path
) -> None:
    found = [_verdicts(checkout, checkout / place) for place in (".", "test", "aten", "../linked")]
    found.append(_verdicts(checkout, tmp_path, "--repo", "checkout"))
    ((name, verdict, details),) = found[0]  # type: ignore[misc]
    assert (name, verdict) == ("pooled", "passed")
    assert str(checkout) not in str(details)
    assert all(one == found[0] for one in found)


@pytest.mark.usefixtures("_fresh_server")
def test_a_worker_that_cannot_start_is_said_to_be_that_with_what_it_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_SERVER", "sys.exit('no room for {descriptor}')")
    with pytest.raises(WorkerStartError, match="forked from did not start; found no room for"):
        list(run_tasks(["torch"], where, jobs=1))


def test_work_that_a_worker_cannot_load_is_no_answer_to_a_task() -> None:
    with pytest.raises(WorkerStartError, match=r"a worker process did not start; found .*no such work"):
        list(run_tasks([1], fake_gates.Unloadable(), jobs=1))


def test_a_gate_whose_workers_cannot_start_is_not_run(checkout: Path) -> None:
    driver = _DRIVER.replace("fake_gates.POOLED", "fake_gates.UNSTARTABLE")
    command = [sys.executable, "-I", "-c", driver.format(path=sys.path), "--base", "main~", "--head", "main"]
    environment = {**os.environ, "PATCHSTACK_CACHE": str(checkout.parent / "cache")}
    done = subprocess.run(
        [*command, "--json", "-"], cwd=checkout, env=environment, capture_output=True, text=True, check=False
    )
    (gate,) = document(done.stdout)["gates"]
    assert (done.returncode, gate["verdict"]) == (0, "not run")
    assert "a worker process did not start; found" in gate["reason"]
    assert "no such work" in gate["reason"]
