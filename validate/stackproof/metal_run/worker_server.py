"""The processes of the pool: what runs in them, and the server that they are forked from.

Importing torch takes longer than most tasks, so a server that has done nothing else is forked for each worker. It is
not the standard library's: that one starts Python with the current folder on its path, where a checkout of PyTorch
has a ``torch/`` of its own, and says nothing when its imports fail.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import selectors
import signal
import socket
import sys
import traceback
from collections.abc import Sequence
from multiprocessing.connection import Connection

PRELOADED = ("torch",)
START, KILL, READY = b"s", b"k", b"r"
STATUS_BYTES = 4


def serve_forks(control_descriptor: int, preloaded: Sequence[str] = PRELOADED) -> None:
    """Fork a worker for each pair of descriptors that comes, until the other end closes.

    Args:
        control_descriptor: of a socket. It says ``READY`` once; ``START`` comes with the descriptors of the worker's
            pipe and of the socket that its exit status is sent to, and that ``KILL`` or its end comes from.
        preloaded: modules to import first.
    """
    for name in preloaded:
        importlib.import_module(name)
    with socket.socket(fileno=control_descriptor) as control:
        control.sendall(READY)
        _Server(control).run()


class _Server:
    def __init__(self, control: socket.socket) -> None:
        self._control = control
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
                for key, _ in self._selector.select():
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
        finally:
            for pid in list(self._workers):
                self._kill(pid)

    def _start(self) -> bool:
        message, descriptors, _, _ = socket.recv_fds(self._control, 1, 2)
        if not message:
            return False
        pipe, status = descriptors
        pid = os.fork()
        if pid == 0:
            self._become_worker(pipe, status)
        os.close(pipe)
        self._workers[pid] = socket.socket(fileno=status)
        self._selector.register(self._workers[pid], selectors.EVENT_READ, pid)
        return True

    def _become_worker(self, pipe: int, status: int) -> None:
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for one in (self._control, self._wake, self._waker, *self._workers.values()):
                one.close()
            self._selector.close()
            os.close(status)
            code = serve_tasks(pipe)
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

    def _reap(self) -> None:
        for pid in list(self._workers):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                self._selector.unregister(self._workers[pid])
                self._tell(pid, os.waitstatus_to_exitcode(status))

    def _tell(self, pid: int, code: int) -> None:
        with self._workers.pop(pid) as status, contextlib.suppress(OSError):
            status.sendall(code.to_bytes(STATUS_BYTES, "little", signed=True))


def serve_tasks(pipe_descriptor: int) -> int:
    """Be a worker: take the work and the environment, then answer every task that comes; returns the exit status."""
    pipe = Connection(pipe_descriptor)
    work, environment = pickle.loads(pipe.recv_bytes())
    os.environ.clear()  # the server's is that of when it was started
    os.environ.update(environment)
    pipe.send_bytes(READY)
    while True:
        try:
            task = pickle.loads(pipe.recv_bytes())
        except EOFError:
            return 0
        pipe.send_bytes(pickle.dumps(work(task)))


def serve_alone(pipe_descriptor: int) -> None:
    """Be a worker that is no fork, where a process must not be forked once torch is loaded."""
    sys.exit(serve_tasks(pipe_descriptor))
