"""One Python program of a tree, from its start to its end, confined."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from patchstack.confine.environment import scrubbed
from patchstack.confine.model import MEBIBYTE, Cage, Limits, home_folders
from patchstack.confine.policy import require_allowed
from patchstack.confine.report import Confined, note
from patchstack.python_processes import SAFE_FOLDER, code_command, import_path

_MOST_OUTPUT = 128 * MEBIBYTE
_CHILD = "from patchstack.confine.child import main; main()"


@dataclass(frozen=True)
class Done:
    """A program that has ended, and what it said.

    Attributes:
        status: its exit status; ``None`` where it was ended because it took too long.
        stdout: standard output.
        stderr: standard error.
    """

    status: int | None
    stdout: str
    stderr: str


def run_confined(
    what: str,
    program: Path,
    arguments: Sequence[str],
    *,
    readable: Sequence[Path],
    timeout: float,
    stdin: str = "",
) -> Done:
    """Run a Python file in a cage; nothing that it starts outlives it, or keeps anyone waiting.

    Args:
        what: whose code it is, for the report and for whoever forbids it.
        program: the file; it runs in a folder of its own.
        arguments: for the program.
        readable: folders that it reads, beside those of installed packages.
        timeout: seconds.
        stdin: what it reads.

    Raises:
        TreeCodeForbiddenError: code of a tree is not to be run.
        OSError: it cannot be started.
    """
    require_allowed(what)
    places = [sys.prefix, sys.base_prefix, *import_path(), *map(str, readable)]
    # Pipes would stay open as long as any process does that the program has started.
    with (
        tempfile.TemporaryDirectory(prefix="patchstack-own-", ignore_cleanup_errors=True) as folder,
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
        tempfile.TemporaryFile() as held,
    ):
        given.write(stdin.encode())
        given.seek(0)
        limits = Limits(seconds=int(timeout) + 1, memory=8 << 30)
        cage = Cage(folder, tuple(dict.fromkeys(places)), limits, home_folders())
        settings = json.dumps({"cage": cage.as_json(), "held": held.fileno(), "program": str(program)})
        process = subprocess.Popen(
            code_command(_CHILD, settings, *arguments),
            cwd=SAFE_FOLDER,
            env=scrubbed() | {"PYTHONDONTWRITEBYTECODE": "1"},
            pass_fds=(held.fileno(),),
            stdin=given,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        status: int | None = None
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                status = process.wait(timeout)
        finally:
            with contextlib.suppress(OSError):  # usually nobody is left
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        note(Confined(what, _found(_said(held))))
        return Done(status, _said(out), _said(err))


def _found(text: str) -> Mapping[str, bool]:
    """What the program's process found to hold before the program began."""
    try:
        found: Mapping[str, bool] = json.loads(text)
    except ValueError:
        return {}
    return found


def _said(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(_MOST_OUTPUT).decode(errors="replace")
