"""Runs of the command that need not wait for Python and its imports: each is a fork of a process that has them.

What a run does is what it does when a shell starts it; half of the time of a test is saved. Tests about the start of
the process itself (its output streams, its environment, Ctrl-C) use :func:`checkouts.lab.run_command` instead.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

_PATIENCE_S = 60


@dataclass(frozen=True)
class Start:
    """What to run.

    Attributes:
        arguments: the command line without its first word.
        cwd: current folder.
        env: the whole environment.
        output: path that gets ``.out`` and ``.err`` added for the two streams.
        umask: file creation mask, negative for the one that is set.
    """

    arguments: Sequence[str]
    cwd: str
    env: Mapping[str, str]
    output: str
    umask: int = -1


class WarmCommand:
    """The process with everything imported; one run at a time."""

    def __init__(self, source: Path) -> None:
        read, self._reply_end = os.pipe()
        self._replies = os.fdopen(read, "rb", buffering=0)
        self._server = subprocess.Popen(
            [sys.executable, __file__, str(self._reply_end)],
            env={**os.environ, "PYTHONPATH": str(source), "PYTHONUTF8": "1"},
            stdin=subprocess.PIPE,
            pass_fds=[self._reply_end],
        )
        os.close(self._reply_end)

    def start(self, run: Start) -> int:
        """Begin a run; the process id, which is also the id of its process group."""
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(asdict(run)).encode() + b"\n")
        self._server.stdin.flush()
        return self._answer()

    def wait(self) -> int:
        """Wait for the run to end; its exit status, negative for a signal."""
        return self._answer()

    def _answer(self) -> int:
        line = b""
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([self._replies], [], [], _PATIENCE_S)
            assert ready, "the command hangs"
            part = self._replies.read(1)
            assert part, "the warm process is gone"
            line += part
        return int(line)

    def close(self) -> None:
        self._server.communicate()
        self._replies.close()


def _serve(replies: int) -> None:
    import patchstack.cli  # noqa: F401  (the point of this process)

    for line in sys.stdin:
        request = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _run(request)
        os.write(replies, f"{pid}\n".encode())
        _, status = os.waitpid(pid, 0)
        os.write(replies, f"{os.waitstatus_to_exitcode(status)}\n".encode())


def _run(request: Mapping[str, Any]) -> None:
    from patchstack.cli import main

    code = 70
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for descriptor, path in ((0, os.devnull), (1, f"{request['output']}.out"), (2, f"{request['output']}.err")):
            os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), descriptor)
        os.environ.clear()
        os.environ.update(request["env"])
        time.tzset()
        if request["umask"] >= 0:
            os.umask(request["umask"])
        os.chdir(request["cwd"])
        sys.argv = ["apply-stack", *request["arguments"]]
        main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
