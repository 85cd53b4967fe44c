"""A few processes that run units of work, and survive what compiled kernels can do to a process.

A kernel that reads far outside its buffers takes its process down. That is a result, not an accident: the unit that
was running is reported with the signal, and the remaining units go to a fresh process. The standard pools give up on
all work instead.
"""

from __future__ import annotations

import pickle
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import Generic, TypeVar

from stackproof.metal_run.processes import WorkerProcess, WorkerStartError, start_worker

__all__ = ["Died", "WorkerStartError", "run_tasks"]

Task = TypeVar("Task")
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Died:
    """A task that did not come back.

    Attributes:
        reason: ``killed by SIGSEGV``, ``exit status 1``, ``no answer within 60 s``.
    """

    reason: str


@dataclass
class _Worker(Generic[Task]):
    process: WorkerProcess
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

    Raises:
        WorkerStartError: a process could not be started, which says nothing about the tasks.
    """
    waiting = deque(tasks)
    workers: list[_Worker[Task]] = []
    try:
        while waiting or any(worker.task is not None for worker in workers):
            while waiting and len(workers) < min(jobs, len(tasks)):
                workers.append(_Worker(start_worker(work)))
            for worker in workers:
                if worker.task is None and waiting:
                    worker.task, worker.started = waiting.popleft(), time.monotonic()
                    worker.process.send(worker.task)
            for worker in _ready(workers, timeout):
                answer = _answer(worker, timeout)
                assert worker.task is not None
                yield worker.task, answer
                worker.task = None
                if isinstance(answer, Died):
                    workers.remove(worker)
    finally:
        for worker in workers:
            worker.process.end()


def _ready(workers: Sequence[_Worker[Task]], timeout: float) -> list[_Worker[Task]]:
    """Busy workers with an answer, without a process, or out of time; waits a moment for one."""
    busy = [worker for worker in workers if worker.task is not None]
    readable = wait([worker.process.pipe for worker in busy], timeout=1.0)
    now = time.monotonic()
    return [worker for worker in busy if worker.process.pipe in readable or now - worker.started > timeout]


def _answer(worker: _Worker[Task], timeout: float) -> Answer | Died:
    pipe = worker.process.pipe
    if not pipe.poll():
        worker.process.end()
        return Died(f"no answer within {timeout:g} s")
    try:
        answer: Answer = pickle.loads(pipe.recv_bytes())
    except (EOFError, ConnectionResetError):
        return Died(_ending(worker.process.status()))
    return answer


def _ending(status: int) -> str:
    return f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
