"""A few processes that run units of work, and survive what compiled kernels can do to a process.

A kernel that reads far outside its buffers takes its process down. That is a result, not an accident: the unit that
was running is reported with the signal, and the remaining units go to a fresh process. The standard pools give up on
all work instead.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Generic, TypeVar

Task = TypeVar("Task")
Answer = TypeVar("Answer")

# Never a fork of this process: after torch has threads that is undefined on macOS, and copies its caches. On Linux a
# server that has done nothing but import torch is forked instead, since importing it takes longer than most tasks.
_SPAWN = multiprocessing.get_context("spawn")
_FORKSERVER = multiprocessing.get_context("forkserver") if sys.platform.startswith("linux") else None
if _FORKSERVER is not None:
    _FORKSERVER.set_forkserver_preload(["torch"])


@dataclass(frozen=True)
class Died:
    """A task that did not come back.

    Attributes:
        reason: ``killed by SIGSEGV``, ``exit status 1``, ``no answer within 60 s``.
    """

    reason: str


@dataclass
class _Worker(Generic[Task]):
    process: BaseProcess
    pipe: Connection
    task: Task | None = None
    started: float = 0.0


def run_tasks(
    tasks: Sequence[Task], work: Callable[[Task], Answer], *, jobs: int, timeout: float = 120.0
) -> Iterator[tuple[Task, Answer | Died]]:
    """Run every task in one of ``jobs`` processes; pairs come in the order of completion.

    Args:
        tasks: picklable.
        work: a picklable function that catches its own exceptions.
        jobs: processes, at least 1.
        timeout: seconds after which a task's process is killed.
    """
    waiting = deque(tasks)
    workers: list[_Worker[Task]] = []
    try:
        while waiting or any(worker.task is not None for worker in workers):
            while waiting and len(workers) < min(jobs, len(tasks)):
                workers.append(_start(work))
            for worker in workers:
                if worker.task is None and waiting:
                    worker.task, worker.started = waiting.popleft(), time.monotonic()
                    worker.pipe.send(worker.task)
            for worker in _ready(workers, timeout):
                answer = _answer(worker, timeout)
                assert worker.task is not None
                yield worker.task, answer
                worker.task = None
                if isinstance(answer, Died):
                    workers.remove(worker)
    finally:
        for worker in workers:
            worker.process.kill()
            worker.process.join()


def _start(work: Callable[[Task], Answer]) -> _Worker[Task]:
    here, there = _SPAWN.Pipe()
    start = _FORKSERVER.Process if _FORKSERVER is not None else _SPAWN.Process
    process = start(target=_serve, args=(there, work, dict(os.environ)), daemon=True)
    process.start()
    there.close()
    return _Worker(process, here)


def _serve(pipe: Connection, work: Callable[[Task], Answer], environment: Mapping[str, str]) -> None:
    os.environ.clear()  # the server's is that of when it was started
    os.environ.update(environment)
    while True:
        try:
            task = pipe.recv()
        except EOFError:
            return
        pipe.send(work(task))


def _ready(workers: Sequence[_Worker[Task]], timeout: float) -> list[_Worker[Task]]:
    """Busy workers with an answer, without a process, or out of time; waits a moment for one."""
    busy = [worker for worker in workers if worker.task is not None]
    readable = wait([worker.pipe for worker in busy], timeout=1.0)
    now = time.monotonic()
    return [worker for worker in busy if worker.pipe in readable or now - worker.started > timeout]


def _answer(worker: _Worker[Task], timeout: float) -> Answer | Died:
    if worker.pipe.poll():
        try:
            answer: Answer = worker.pipe.recv()
        except EOFError:
            worker.process.join()
            return Died(_ending(worker.process.exitcode))
        return answer
    worker.process.kill()
    worker.process.join()
    return Died(f"no answer within {timeout:g} s")


def _ending(status: int | None) -> str:
    if status is not None and status < 0:
        return f"killed by {signal.Signals(-status).name}"
    return f"exit status {status}"
