"""Starting and ending the processes of the pool, from the side of whoever has work for them.

A process that cannot start is an error of its own, with what it printed: it says something about this machine, and
nothing about the stack.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import IO, Any, ClassVar, Protocol

from patchstack.cache import cache_dir
from patchstack.confine import Cage, Confined, Limits, home_folders, note, scrubbed
from patchstack.errors import PatchstackError
from patchstack.python_processes import SAFE_FOLDER, code_command, import_path
from stackproof.engines.pool.last_words import said
from stackproof.engines.pool.messages import REST_S
from stackproof.engines.pool.worker_server import KILL, READY, START, STATUS_BYTES

WHAT = "code of the stack"
_SHOWN = 600  # characters of what a process printed last
# Never a fork of this process: after torch has threads that is undefined on macOS, and copies its caches.
_CAN_FORK = sys.platform.startswith("linux")
_SERVER = "from stackproof.engines.pool.worker_server import serve_forks; serve_forks({descriptor}, {cage!r})"
_ALONE = "from stackproof.engines.pool.worker_server import serve_alone; serve_alone({descriptor}, {words}, {cage!r})"


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

    def __init__(self, pipe: Connection, words: IO[bytes], process: _Process) -> None:
        self.pipe = pipe
        self._words = words
        self._process = process

    def send(self, value: object) -> None:
        """Give it something to do; a process that is gone shows when its answer is read."""
        try:
            self.pipe.send_bytes(pickle.dumps(value))
        except (BrokenPipeError, ConnectionResetError):
            return

    @property
    def last_words(self) -> str:
        """What it said last in its task."""
        return said(self._words.fileno())

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
    words = tempfile.TemporaryFile()  # noqa: SIM115  (as long as the process)
    log: IO[bytes]
    process: _Process
    with there:
        if _CAN_FORK:
            server = _Server.running()
            process, log = server.fork(there, words), server.log
            note(Confined(WHAT, server.held))
        else:
            process = _Alone(there, words)
            log = process.log
    with socket.fromfd(here.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as same:
        same.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", REST_S, 0))
    worker = WorkerProcess(here, words, process)
    worker.send((work, scrubbed()))
    try:
        answer = here.recv_bytes()
    except (EOFError, ConnectionResetError):
        raise _did_not_start("a worker process", process.end(), log) from None
    if held := answer[len(READY) :]:  # from a process that has no server to say it
        note(Confined(WHAT, json.loads(held)))
    return worker


class _Server:
    """The server that workers are forked from; there is one, and it ends with this process."""

    _current: ClassVar[tuple[int, _Server] | None] = None

    def __init__(self) -> None:
        self.log = tempfile.TemporaryFile()  # noqa: SIM115  (as long as the server)
        self._folder = tempfile.TemporaryDirectory(prefix="stackproof-workers-", ignore_cleanup_errors=True)
        self._control, there = socket.socketpair()
        with there:
            code = _SERVER.format(descriptor=there.fileno(), cage=_cage(self._folder.name))
            self._process = _popen(code, (there.fileno(),), self.log)
        with self._control.makefile("rb") as said:
            ready = said.readline()
        if ready.startswith(READY):
            self.held: Mapping[str, bool] = json.loads(ready[len(READY) :])
        else:
            self._process.kill()
            raise _did_not_start("the process that workers are forked from", self._process.wait(), self.log)

    @classmethod
    def running(cls) -> _Server:
        """The server, started anew where it has ended; a fork of this process gets one of its own."""
        known = cls._current
        if known is None or known[0] != os.getpid() or known[1]._process.poll() is not None:
            known = cls._current = os.getpid(), cls()
        return known[1]

    def fork(self, pipe: Connection, words: IO[bytes]) -> _Fork:
        """A worker at the other end of ``pipe``."""
        here, there = socket.socketpair()
        with there, contextlib.suppress(OSError):  # it ended: the status will say so
            socket.send_fds(self._control, [START], [pipe.fileno(), words.fileno(), there.fileno()])
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

    def __init__(self, pipe: Connection, words: IO[bytes]) -> None:
        self.log = tempfile.TemporaryFile()  # noqa: SIM115  (as long as the process)
        self._folder = tempfile.TemporaryDirectory(prefix="stackproof-worker-", ignore_cleanup_errors=True)
        code = _ALONE.format(descriptor=pipe.fileno(), words=words.fileno(), cage=_cage(self._folder.name))
        self._process = _popen(code, (pipe.fileno(), words.fileno()), self.log)

    def end(self) -> int:
        self._process.kill()
        return self._process.wait()

    def status(self) -> int:
        return self._process.wait()


def _popen(code: str, descriptors: Sequence[int], log: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        code_command(code),
        cwd=SAFE_FOLDER,
        env=scrubbed(),
        pass_fds=descriptors,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
    )


def _cage(folder: str) -> Mapping[str, Any]:
    """Where workers live, as JSON has it: they read what they import and what is in the cache."""
    wheels = os.environ.get("PATCHSTACK_WHEEL_DIR")
    places = [
        sys.prefix,
        sys.base_prefix,
        *import_path(),
        str(cache_dir()),
        *([os.path.abspath(wheels)] if wheels else []),
    ]
    return Cage(folder, tuple(dict.fromkeys(places)), Limits.for_kernels(), home_folders()).as_json()


def _did_not_start(what: str, status: int, log: IO[bytes]) -> WorkerStartError:
    log.seek(0)
    printed = " ".join(log.read().decode(errors="replace").split())[-_SHOWN:]
    return WorkerStartError(f"{what} did not start", found=printed or f"nothing printed, exit status {status}")
