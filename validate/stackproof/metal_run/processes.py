"""Starting and ending the processes of the pool, from the side of whoever has work for them.

A process that cannot start is an error of its own, with what it printed: it says something about this machine, and
nothing about the stack.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import IO, Any, ClassVar, Protocol

from patchstack.errors import PatchstackError
from patchstack.python_processes import SAFE_FOLDER, code_command
from stackproof.metal_run.worker_server import KILL, READY, START, STATUS_BYTES

_SHOWN = 600  # characters of what a process printed last
# Never a fork of this process: after torch has threads that is undefined on macOS, and copies its caches.
_CAN_FORK = sys.platform.startswith("linux")
_SERVER = "from stackproof.metal_run.worker_server import serve_forks; serve_forks({descriptor})"
_ALONE = "from stackproof.metal_run.worker_server import serve_alone; serve_alone({descriptor})"


class WorkerStartError(PatchstackError):
    """A worker process did not start."""


class _Process(Protocol):
    """A process that runs, in whatever way it was started."""

    def end(self) -> int: ...

    def status(self) -> int: ...


class WorkerProcess:
    """A process that answers tasks.

    Attributes:
        pipe: readable when there is an answer, or when the process has ended.
    """

    def __init__(self, pipe: Connection, process: _Process) -> None:
        self.pipe = pipe
        self._process = process

    def send(self, value: object) -> None:
        """Give it something to do; a process that is gone shows when its answer is read."""
        try:
            self.pipe.send_bytes(pickle.dumps(value))
        except (BrokenPipeError, ConnectionResetError):
            return

    def status(self) -> int:
        """Wait for its end: the exit status, negative for a signal."""
        self.pipe.close()
        return self._process.status()

    def end(self) -> None:
        """Kill it and wait for its end."""
        self.pipe.close()
        self._process.end()


def start_worker(work: Callable[[Any], Any]) -> WorkerProcess:
    """A process that runs ``work`` for every task that it is sent.

    Raises:
        WorkerStartError: it does not start.
    """
    here, there = Pipe()
    log: IO[bytes]
    process: _Process
    with there:
        if _CAN_FORK:
            server = _Server.running()
            process, log = server.fork(there), server.log
        else:
            process = _Alone(there)
            log = process.log
    worker = WorkerProcess(here, process)
    worker.send((work, dict(os.environ)))
    try:
        ready = here.recv_bytes() == READY
    except (EOFError, ConnectionResetError):
        ready = False
    if not ready:
        raise _did_not_start("a worker process", process.end(), log)
    return worker


class _Server:
    """The server that workers are forked from; there is one, and it ends with this process."""

    _current: ClassVar[tuple[int, _Server] | None] = None

    def __init__(self) -> None:
        self.log = tempfile.TemporaryFile()  # noqa: SIM115  (as long as the server)
        self._control, there = socket.socketpair()
        with there:
            self._process = _popen(_SERVER, there.fileno(), self.log)
        if self._control.recv(1) != READY:
            self._process.kill()
            raise _did_not_start("the process that workers are forked from", self._process.wait(), self.log)

    @classmethod
    def running(cls) -> _Server:
        """The server, started anew where it has ended; a fork of this process gets one of its own."""
        known = cls._current
        if known is None or known[0] != os.getpid() or known[1]._process.poll() is not None:
            known = cls._current = os.getpid(), cls()
        return known[1]

    def fork(self, pipe: Connection) -> _Fork:
        """A worker at the other end of ``pipe``."""
        here, there = socket.socketpair()
        with there, contextlib.suppress(OSError):  # it ended: the status will say so
            socket.send_fds(self._control, [START], [pipe.fileno(), there.fileno()])
        return _Fork(here)


class _Fork:
    """A worker forked by the server."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._status: int | None = None

    def end(self) -> int:
        with contextlib.suppress(OSError):  # it has ended by itself
            self._channel.sendall(KILL)
        return self.status()

    def status(self) -> int:
        if self._status is None:
            with self._channel:
                try:
                    said = self._channel.recv(STATUS_BYTES, socket.MSG_WAITALL)
                except OSError:
                    said = b""
            # Nothing where the server itself was killed, and its workers with it.
            self._status = int.from_bytes(said, "little", signed=True) if said else -9
        return self._status


class _Alone:
    """A worker that is a new Python."""

    def __init__(self, pipe: Connection) -> None:
        self.log = tempfile.TemporaryFile()  # noqa: SIM115  (as long as the process)
        self._process = _popen(_ALONE, pipe.fileno(), self.log)

    def end(self) -> int:
        self._process.kill()
        return self._process.wait()

    def status(self) -> int:
        return self._process.wait()


def _popen(code: str, descriptor: int, log: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        code_command(code.format(descriptor=descriptor)),
        cwd=SAFE_FOLDER,
        pass_fds=(descriptor,),
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
    )


def _did_not_start(what: str, status: int, log: IO[bytes]) -> WorkerStartError:
    log.seek(0)
    said = " ".join(log.read().decode(errors="replace").split())[-_SHOWN:]
    return WorkerStartError(f"{what} did not start", found=said or f"nothing printed, exit status {status}")
