"""Ctrl-C, a termination, and the worst: no process is left, and the report says how far the run came."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

import fake_gates
from skips import apt, lacks
from stackproof.runner import processes
from stackproof.runner.processes import family, running
from terminal_signals import as_at_a_terminal

_DRIVER = """
import sys
sys.path[:] = {path!r}
import fake_gates
from stackproof.cli import main, prove
prove.GATES = (fake_gates.PASSING, fake_gates.SPAWNING, *fake_gates.THREE)
main()
"""
_PATIENCE = 30.0  # seconds, for a busy machine


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    git = ["git", "-C", str(folder), "-c", "user.name=A", "-c", "user.email=a@b.c"]
    subprocess.run(["git", "init", "-q", "-b", "main", str(folder)], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "base"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "head"], check=True)
    return folder


def start(
    repository: Path, tmp_path: Path, *arguments: str, signals: Callable[[], None] = as_at_a_terminal
) -> tuple[subprocess.Popen[str], list[int]]:
    """``validate-stack`` in the middle of a gate that has started children; the gate's and the children's numbers."""
    pids = tmp_path / "pids"
    command = ["--repo", str(repository), "--base", "main~", "--head", "main", *arguments]
    driver = subprocess.Popen(
        [sys.executable, "-c", _DRIVER.format(path=sys.path), *command],
        env={**os.environ, fake_gates.PIDS: str(pids), "PATCHSTACK_CACHE": str(tmp_path / "cache")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=signals,
    )
    wait_for(pids.exists)
    return driver, [int(pid) for pid in pids.read_text().split()]


def wait_for(condition: object) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def alive(pids: list[int]) -> list[int]:
    return [entry.pid for entry in running() if entry.pid in pids]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_an_interrupted_run_leaves_no_process_and_writes_every_report_as_partial(
    repository: Path, tmp_path: Path, number: signal.Signals
) -> None:
    files = {kind: tmp_path / f"report.{kind}" for kind in ("json", "junit", "html")}
    driver, pids = start(repository, tmp_path, *(word for kind in files for word in (f"--{kind}", str(files[kind]))))
    assert alive(pids) == sorted(pids)
    driver.send_signal(number)
    output, errors = driver.communicate(timeout=_PATIENCE)

    assert driver.returncode == 130
    assert alive(pids) == []
    assert "Traceback" not in output + errors
    assert "partial report: the run was interrupted" in output
    report = json.loads(files["json"].read_text())
    assert report["partial"] is True
    verdicts = {gate["name"]: (gate["verdict"], gate["reason"]) for gate in report["gates"]}
    assert verdicts["passing"] == ("passed", "")
    assert verdicts["spawning"] == ("not run", "interrupted while it ran")
    assert verdicts["one"] == ("not run", "the run was interrupted before it began")
    suites = ElementTree.parse(files["junit"]).getroot()
    assert suites.get("errors") == "0"
    assert len(suites.findall(".//skipped")) == 4
    assert {node.get("value") for node in suites.iterfind(".//property[@name='partial']")} == {"true"}
    assert "Partial report: the run was interrupted" in files["html"].read_text()


def test_ctrl_c_twice_does_not_wait_for_the_gate_to_clear_up(repository: Path, tmp_path: Path) -> None:
    driver, pids = start(repository, tmp_path)
    os.kill(pids[0], signal.SIGSTOP)  # a gate that does not react
    driver.send_signal(signal.SIGINT)
    time.sleep(0.3)
    driver.send_signal(signal.SIGINT)
    driver.communicate(timeout=_PATIENCE)
    assert driver.returncode == 130
    assert alive(pids) == []


def ignore_interrupts_and_hang_ups() -> None:
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def test_a_run_under_nohup_goes_on_when_the_terminal_is_closed(repository: Path, tmp_path: Path) -> None:
    driver, pids = start(repository, tmp_path, signals=ignore_interrupts_and_hang_ups)
    driver.send_signal(signal.SIGHUP)
    time.sleep(0.5)
    assert driver.poll() is None
    driver.terminate()
    driver.communicate(timeout=_PATIENCE)
    assert (driver.returncode, alive(pids)) == (130, [])


def test_a_killed_run_takes_its_gates_with_it(repository: Path, tmp_path: Path) -> None:
    driver, pids = start(repository, tmp_path)
    driver.kill()
    driver.communicate(timeout=_PATIENCE)
    wait_for(lambda: not alive(pids))
    assert alive(pids) == []


def test_a_finished_run_leaves_no_process(repository: Path, tmp_path: Path) -> None:
    command = ["--repo", str(repository), "--base", "main~", "--head", "main", "--only", "passing"]
    driver = subprocess.Popen(
        [sys.executable, "-c", _DRIVER.format(path=sys.path), *command],
        env={**os.environ, "PATCHSTACK_CACHE": str(tmp_path / "cache")},
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    seen: set[int] = set()
    while driver.poll() is None:
        seen |= {entry.pid for entry in family(driver.pid)}
        time.sleep(0.02)
    assert len(seen) > 1
    assert alive(sorted(seen)) == []


def test_a_family_has_those_in_other_sessions_too() -> None:
    code = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], \
start_new_session=True); print('ready', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code], start_new_session=True, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        members = family(parent.pid)
        for entry in members:
            os.kill(entry.pid, signal.SIGKILL)
    assert len(members) == 2
    assert len({entry.group for entry in members}) == 2


@pytest.mark.skipif(shutil.which("ps") is None, reason=lacks("there is no ps", apt("procps")))
def test_both_ways_of_listing_processes_agree() -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True) as child:
        listings = [{entry.pid: entry for entry in listing()} for listing in (processes._from_ps, processes.running)]
        child.kill()
    for listed in listings:
        assert (listed[child.pid].parent, listed[child.pid].group) == (os.getpid(), child.pid)
