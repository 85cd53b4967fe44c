"""The pool runs everything once, and a task that takes its process down costs that task only."""

from __future__ import annotations

import os
import signal
import time

import pytest

from stackproof.engines.pool.tasks import Died, run_tasks


def work(task: int) -> int:
    if task == 3:
        os.kill(os.getpid(), signal.SIGSEGV)
    if task == 5:
        os._exit(7)
    if task == 6:
        time.sleep(60)
    return task * task


def test_every_task_is_answered_whatever_happens_to_its_process() -> None:
    answers = dict(run_tasks(range(9), work, jobs=2, timeout=2.0))
    assert {task: answer for task, answer in answers.items() if task not in (3, 5, 6)} == {
        task: task * task for task in (0, 1, 2, 4, 7, 8)
    }
    assert answers[3] == Died("killed by SIGSEGV")
    assert answers[5] == Died("exit status 7")
    assert answers[6] == Died("no answer within 2 s")


def test_no_tasks_start_no_process() -> None:
    assert list(run_tasks([], work, jobs=2)) == []


def environment(name: str) -> str | None:
    return os.environ.get(name)


def test_a_process_has_the_environment_of_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STACKPROOF_TEST", "before")
    assert list(run_tasks(["STACKPROOF_TEST"], environment, jobs=1)) == [("STACKPROOF_TEST", "before")]
    monkeypatch.delenv("STACKPROOF_TEST")
    assert list(run_tasks(["STACKPROOF_TEST"], environment, jobs=1)) == [("STACKPROOF_TEST", None)]
