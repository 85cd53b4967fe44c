"""The other end of the process that runs gates: hands it jobs, waits, and ends it with everything below it.

Gates load torch, call compiled kernels and start compilers. In a process of their own, a crash is one failed gate
instead of a lost run, and Ctrl-C always finds somebody who listens.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import IO

from patchstack.python_processes import SAFE_FOLDER, code_command
from stackproof.model import Finding, GateResult, Verdict
from stackproof.packages import not_run_reason
from stackproof.runner.messages import Answer, Ended, Job, NotStarted, PackagesMissing, Progressed, Raised
from stackproof.runner.processes import end_family
from stackproof.runner.report_file import write_report_file

_POLL = 0.2  # seconds between looks at the clock while a gate runs
_GRACE = 3.0  # seconds that a gate may take to clear up after an interrupt
_LOG_TAIL = 4000  # bytes of what a crashed process said last

_FOLDERS = ("PATCHSTACK_CACHE", "XDG_CACHE_HOME", "PATCHSTACK_WHEEL_DIR", "PATCHSTACK_DEBIAN_DIR", "TMPDIR")
_START = "from stackproof.runner.worker import main; main({pipe}, {lifeline})"


class GateProcess:
    """Runs gates one at a time; a context manager that leaves no process behind.

    Args:
        reports: folder for the reports of gates that crashed.
    """

    def __init__(self, reports: Path) -> None:
        self._reports = reports
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection | None = None
        self._lifeline = -1
        self._log: IO[bytes] | None = None

    def __enter__(self) -> GateProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop(grace=_GRACE if kind else 0.0)

    def run(self, job: Job, progress: Callable[[int, int, str], None]) -> GateResult:
        """Run one gate. Whatever it does, there is a result; only an interrupt of the caller gets out.

        Args:
            job: what to run.
            progress: called with (done, total, what) as the gate proceeds.
        """
        started = time.perf_counter()
        answer = self._ask(job, progress)
        seconds = time.perf_counter() - started
        result = answer if isinstance(answer, GateResult) else self._result(job, answer)
        ran = result.verdict is not Verdict.NOT_RUN
        return replace(result, seconds=seconds) if ran and not result.seconds else result

    def stop(self, *, grace: float) -> None:
        """End the process and its family.

        Args:
            grace: seconds for clearing up before it is killed.
        """
        process, self._process = self._process, None
        if process is None:
            return
        assert self._pipe is not None
        assert self._log is not None
        try:
            end_family(process, grace=grace)
        finally:
            self._pipe.close()
            self._log.close()
            os.close(self._lifeline)

    def _ask(self, job: Job, progress: Callable[[int, int, str], None]) -> Answer | GateResult:
        if self._process is None:
            self._start()
        pipe = self._pipe
        assert pipe is not None
        pipe.send(job)
        while True:
            if not pipe.poll(_POLL):
                continue
            try:
                answer: Answer = pipe.recv()
            except (EOFError, ConnectionResetError):
                return self._crashed(job)
            if not isinstance(answer, Progressed):
                return answer
            progress(answer.done, answer.total, answer.what)

    def _start(self) -> None:
        here, there = socket.socketpair()
        lifeline, self._lifeline = os.pipe()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  (closed by stop())
        code = _START.format(pipe=there.fileno(), lifeline=lifeline)
        with there:
            self._process = subprocess.Popen(
                code_command(code),
                cwd=SAFE_FOLDER,
                env=os.environ | _absolute_folders(),
                pass_fds=(there.fileno(), lifeline),
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        os.close(lifeline)
        self._pipe = Connection(here.detach())

    def _crashed(self, job: Job) -> GateResult:
        """The process went away in the middle of a gate; the next gate gets a new one."""
        assert self._process is not None
        assert self._log is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=_GRACE)
        status = self._process.returncode
        self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, self._log.tell() - _LOG_TAIL))
        said = self._log.read().decode(errors="replace")
        self.stop(grace=0.0)
        ending = f"ended by {signal.Signals(-status).name}" if status and status < 0 else f"ended with status {status}"
        return self._failed(job, f"the gate's process {ending}", "crash", said)

    def _result(self, job: Job, answer: Answer) -> GateResult:
        name = job.spec.name
        if isinstance(answer, Ended):
            return answer.result
        if isinstance(answer, NotStarted):
            return GateResult(name, Verdict.NOT_RUN, reason=answer.reason)
        if isinstance(answer, PackagesMissing):
            return GateResult(name, Verdict.NOT_RUN, reason=not_run_reason(answer.packages))
        assert isinstance(answer, Raised)
        message = " ".join(answer.message.split())
        return self._failed(job, f"internal error: {answer.kind}: {message}", "internal-error", answer.traceback)

    def _failed(self, job: Job, what: str, rule: str, text: str) -> GateResult:
        file = write_report_file(self._reports, job.spec.name, f"{job.in_words()}\n\n{what}\n\n{text}")
        finding = Finding(f"{what} (report: {file})", rule=rule, details={"report": file})
        return GateResult(job.spec.name, Verdict.FAILED, cases=1, failed=1, findings=[finding])


def _absolute_folders() -> dict[str, str]:
    """The variables that name folders of ours, as they are meant where the command was typed."""
    return {name: os.path.abspath(os.environ[name]) for name in _FOLDERS if os.environ.get(name)}
