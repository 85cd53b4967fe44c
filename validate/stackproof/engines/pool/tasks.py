"""A few processes that run units of work, and survive what compiled kernels can do to a process.

A kernel that reads far outside its buffers takes its process down. That is a result, not an accident: the unit that
was running is reported with the signal, and the remaining units go to a fresh process. The standard pools give up on
all work instead.
"""

from __future__ import annotations

import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import Any, Generic, TypeVar

from stackproof.engines.errors import ToolchainError
from stackproof.engines.pool.building import build
from stackproof.engines.pool.messages import MOST_BYTES, REQUEST, UnreadableAnswerError, from_bytes
from stackproof.engines.pool.processes import WorkerProcess, WorkerStartError, start_worker

__all__ = ["Died", "WorkerStartError", "run_tasks"]

Task = TypeVar("Task")
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Died:
    """A task that did not come back.

    Attributes:
        reason: ``killed by SIGSEGV``, ``exit status 1``, ``no answer within 60 s``.
        last_words: what it said of itself before, see :mod:`stackproof.engines.pool.last_words`.
    """

    reason: str
    last_words: str = ""


class _Asked:
    """A task goes on when something is built."""


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
        OSError, ToolchainError: what a worker asked for could not be built, which says nothing about them either.
    """
    waiting = deque(tasks)
    workers: list[_Worker[Task]] = []
    builders = _Builders(jobs)
    try:
        while waiting or any(worker.task is not None for worker in workers):
            while waiting and len(workers) < min(jobs, len(tasks)):
                workers.append(_Worker(start_worker(work)))
            for worker in workers:
                if worker.task is None and waiting:
                    worker.task, worker.started = waiting.popleft(), time.monotonic()
                    worker.process.send(worker.task)
            builders.raise_failures()
            for worker in _ready(workers, timeout):
                answer: Answer | Died | _Asked = _answer(worker, builders, timeout)
                if isinstance(answer, _Asked):
                    continue
                assert worker.task is not None
                yield worker.task, answer
                worker.task = None
                if isinstance(answer, Died):
                    workers.remove(worker)
    finally:
        for worker in workers:
            worker.process.end()
        builders.end()


class _Builders:
    """Threads that build what workers ask for; the compilers that they start are processes."""

    def __init__(self, jobs: int) -> None:
        self._threads = ThreadPoolExecutor(max_workers=max(jobs, 1))
        self._failures: list[Exception] = []

    def build_for(self, process: WorkerProcess, request: Any) -> None:
        """Build something and send it; an error of the source is raised in the worker that asked."""
        self._threads.submit(self._build, process, request)

    def raise_failures(self) -> None:
        """Raise what this machine could not do."""
        if self._failures:
            raise self._failures[0]

    def end(self) -> None:
        self._threads.shutdown(cancel_futures=True)

    def _build(self, process: WorkerProcess, request: Any) -> None:
        try:
            name, args, kwargs = request
            process.send((build(name, args, kwargs), None))
        except (OSError, ToolchainError) as error:
            self._failures.append(error)
        except Exception as error:
            process.send((None, error))


def _ready(workers: Sequence[_Worker[Task]], timeout: float) -> list[_Worker[Task]]:
    """Busy workers with an answer, without a process, or out of time; waits a moment for one."""
    busy = [worker for worker in workers if worker.task is not None]
    readable = wait([worker.process.pipe for worker in busy], timeout=1.0)
    now = time.monotonic()
    return [worker for worker in busy if worker.process.pipe in readable or now - worker.started > timeout]


def _answer(worker: _Worker[Task], builders: _Builders, timeout: float) -> Answer | Died | _Asked:
    """The answer of a worker that is ready, or that it asked for something that it needs."""
    pipe = worker.process.pipe
    if not pipe.poll():
        worker.process.end()
        return Died(f"no answer within {timeout:g} s", worker.process.last_words)
    try:
        message = pipe.recv_bytes(MOST_BYTES)
        if message[:1] == REQUEST:
            builders.build_for(worker.process, from_bytes(message[1:]))
            return _Asked()
        answer: Answer = from_bytes(message[1:])
    except (EOFError, ConnectionResetError):
        return Died(_ending(worker.process.status()), worker.process.last_words)
    except (UnreadableAnswerError, OSError) as error:  # the latter where the rest of it does not come, or is too much
        worker.process.end()
        return Died(f"its answer is not one: {error}", worker.process.last_words)
    return answer


def _ending(status: int) -> str:
    return f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
