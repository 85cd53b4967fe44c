"""Runs a plan: one command after the other, everything into one log, progress from ninja's steps."""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from patchstack.confine import Confined, note, scrubbed
from patchstack.errors import PatchstackError
from stackproof.engines.mac_build.ninja import NinjaOutput
from stackproof.engines.mac_build.plan import Command

# Beginnings of the names of variables that PyTorch's build reads.
_OF_BUILDS = (
    *("CC", "CXX", "CFLAGS", "CPPFLAGS", "LDFLAGS", "CMAKE_", "NINJA", "MAX_JOBS", "BUILD_", "USE_", "SDKROOT"),
    *("DEVELOPER_DIR", "MACOSX_DEPLOYMENT_TARGET", "VIRTUAL_ENV", "PYTORCH_BUILD_", "BLAS"),
)
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class CommandResult:
    """How a command ended.

    Attributes:
        command: what was run.
        status: its exit status.
        seconds: wall time.
        output: what was read from it.
    """

    command: Command
    status: int
    seconds: float
    output: NinjaOutput


def run_commands(commands: Sequence[Command], log: Path, progress: Progress) -> Iterator[CommandResult]:
    """Run commands until one fails; results come as the commands end.

    Args:
        commands: in order.
        log: takes all output; its folder exists.
        progress: called with (done, total, what).
    """
    with log.open("w", encoding="utf-8", errors="replace") as file:
        for command in commands:
            progress(0, 0, command.name)
            result = _run(command, file, progress)
            yield result
            if result.status:
                return


def _run(command: Command, log: IO[str], progress: Progress) -> CommandResult:
    log.write(f"$ {command.as_shell()}\n")
    log.flush()
    started = time.monotonic()
    output = NinjaOutput()
    # The other commands are git's and pip's, which need what the user has set up for them.
    given = scrubbed(also=_OF_BUILDS) if command.is_build else dict(os.environ)
    environment = {name: value for name, value in given.items() if name not in command.unset}
    if command.is_build:
        home = Path(log.name).parent / "home"
        home.mkdir(exist_ok=True)
        environment["HOME"] = str(home)
        note(Confined("the tree's build", {"environment": True}))
    try:
        process = subprocess.Popen(
            command.arguments,
            cwd=command.folder,
            env=environment | dict(command.variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
    except OSError as error:
        output.feed(f"{command.arguments[0]}: {error.strerror}")
        log.write(f"{error}\n")
        return CommandResult(command, 127, time.monotonic() - started, output)
    try:
        assert process.stdout is not None
        for line in process.stdout:
            log.write(line)
            log.flush()
            if output.feed(line) and command.is_build:
                progress(output.done, output.total, output.what)
        status = process.wait()
    finally:
        # Ninja removes half-made files on this signal, so the next run can go on where this one ended.
        if process.poll() is None:
            process.terminate()
            process.wait()
    return CommandResult(command, status, time.monotonic() - started, output)


@contextlib.contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Keep a second run out of a build folder.

    Raises:
        PatchstackError: another run is building there.
    """
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PatchstackError("another validate-stack is building there", where=str(folder)) from None
        yield
