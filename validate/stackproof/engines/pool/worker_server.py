"""The processes of the pool: what runs in them, and the server that they are forked from.

Importing torch takes longer than most tasks, so a server that has done nothing else is forked for each worker. It is
not the standard library's: that one starts Python with the current folder on its path, where a checkout of PyTorch
has a ``torch/`` of its own, and says nothing when its imports fail.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import pickle
import resource
import selectors
import signal
import socket
import sys
import traceback
from collections.abc import Mapping, Sequence
from multiprocessing import current_process
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from patchstack.confine import Cage, enter, prepare, probe
from stackproof.engines.pool.building import ask_instead
from stackproof.engines.pool.last_words import say, speak_into
from stackproof.engines.pool.messages import ANSWER, REQUEST, as_bytes

PRELOADED = ("torch",)
START, KILL, READY = b"s", b"k", b"r"
STATUS_BYTES = 4
_LOOK_S = 0.5  # seconds between looks at the memory of workers


def serve_forks(control_descriptor: int, cage: Mapping[str, object], preloaded: Sequence[str] = PRELOADED) -> None:
    """Fork a confined worker for each pair of descriptors that comes, until the other end closes.

    Args:
        control_descriptor: of a socket. It says ``READY`` once, with what holds of a worker; ``START`` comes with the
            descriptors of the worker's pipe, of the file for its last words, and of the socket that its exit status
            is sent to, and that ``KILL`` or its end comes from.
        cage: of the workers, as JSON has it.
        preloaded: modules to import first.
    """
    prepare()  # before there are threads
    for name in preloaded:
        importlib.import_module(name)
    with socket.socket(fileno=control_descriptor) as control:
        control.sendall(READY + _holding(Cage.of_json(cage)) + b"\n")
        _Server(control, Cage.of_json(cage)).run()


def _holding(cage: Cage) -> bytes:
    """What a worker finds to hold of itself, as JSON; tried in a process that does nothing else."""
    receiving, sending = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(sending, json.dumps(probe(cage, enter(cage))).encode())
        finally:
            os._exit(0)
    os.close(sending)
    with open(receiving, "rb") as answer:
        found = answer.read()
    os.waitpid(pid, 0)
    return found or b"{}"


class _Server:
    def __init__(self, control: socket.socket, cage: Cage) -> None:
        self._control = control
        self._cage = cage
        self._workers: dict[int, socket.socket] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ)
        self._wake, waker = socket.socketpair()
        for end in (self._wake, waker):
            end.setblocking(False)
        self._waker = waker
        self._selector.register(self._wake, selectors.EVENT_READ)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)

    def run(self) -> None:
        try:
            while True:
                for key, _ in self._selector.select(_LOOK_S if self._workers else None):
                    if key.fileobj is self._control:
                        if not self._start():
                            return
                    elif key.fileobj is self._wake:
                        with contextlib.suppress(BlockingIOError):
                            self._wake.recv(4096)
                        self._reap()
                    elif key.data in self._workers:
                        self._workers[key.data].recv(1)  # KILL, or nothing: whoever asked for it is gone
                        self._kill(key.data)
                self._end_the_greedy()
        finally:
            for pid in list(self._workers):
                self._kill(pid)

    def _start(self) -> bool:
        message, descriptors, _, _ = socket.recv_fds(self._control, 1, 3)
        if not message:
            return False
        pipe, words, status = descriptors
        pid = os.fork()
        if pid == 0:
            self._become_worker(pipe, words, status)
        os.close(pipe)
        os.close(words)
        self._workers[pid] = socket.socket(fileno=status)
        self._selector.register(self._workers[pid], selectors.EVENT_READ, pid)
        return True

    def _become_worker(self, pipe: int, words: int, status: int) -> None:
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for one in (self._control, self._wake, self._waker, *self._workers.values()):
                one.close()
            self._selector.close()
            os.close(status)
            code = serve_tasks(pipe, words, self._cage)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        except BaseException:  # it cannot be raised in the server
            traceback.print_exc()
        finally:  # never back into the server's loop
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _kill(self, pid: int) -> None:
        self._selector.unregister(self._workers[pid])
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        self._tell(pid, -signal.SIGKILL)

    def _end_the_greedy(self) -> None:
        """Address space is no measure where tensors are mapped and hardly touched."""
        for pid in list(self._workers):
            with contextlib.suppress(OSError, ValueError, IndexError):
                pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
                if pages * resource.getpagesize() > self._cage.limits.resident:
                    self._kill(pid)

    def _reap(self) -> None:
        for pid in list(self._workers):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                self._selector.unregister(self._workers[pid])
                self._tell(pid, os.waitstatus_to_exitcode(status))

    def _tell(self, pid: int, code: int) -> None:
        with self._workers.pop(pid) as status, contextlib.suppress(OSError):
            status.sendall(code.to_bytes(STATUS_BYTES, "little", signed=True))


def serve_tasks(pipe_descriptor: int, words_descriptor: int, cage: Cage, *, probing: bool = False) -> int:
    """Be a worker: take the work and the environment, then answer every task that comes; returns the exit status."""
    pipe = Connection(pipe_descriptor)
    work, environment = pickle.loads(pipe.recv_bytes())
    os.environ.clear()  # the server's is that of when it was started
    os.environ.update(environment)
    own = enter(cage)
    current_process().name = f"worker {os.getpid()}"

    def ask(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        pipe.send_bytes(REQUEST + as_bytes((name, args, kwargs)))
        result, error = pickle.loads(pipe.recv_bytes())
        if error is not None:
            raise error
        return result

    ask_instead(ask)
    speak_into(words_descriptor)
    pipe.send_bytes(READY + (json.dumps(probe(cage, own)).encode() if probing else b""))
    while True:
        try:
            task = pickle.loads(pipe.recv_bytes())
        except EOFError:
            return 0
        say("")
        pipe.send_bytes(ANSWER + as_bytes(work(task)))


def serve_alone(pipe_descriptor: int, words_descriptor: int, cage: Mapping[str, object]) -> None:
    """Be a worker that is no fork, where a process must not be forked once torch is loaded."""
    prepare()
    sys.exit(serve_tasks(pipe_descriptor, words_descriptor, Cage.of_json(cage), probing=True))
