"""Ending a process with everything that it started.

A process group is not enough: what a gate starts in a session of its own is in another group, and once its parent is
gone nothing tells whose it was. So the family is looked up while it is whole, stopped (nobody stopped can start more),
and killed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

Identity = tuple[int, str]

_PROC = Path("/proc")


@dataclass(frozen=True)
class ProcessEntry:
    """A running process.

    Attributes:
        pid: its number.
        parent: its parent's.
        group: its process group.
        started: when, in whatever form the system says it; tells it from a later process of the same number.
    """

    pid: int
    parent: int
    group: int
    started: str

    @property
    def identity(self) -> Identity:
        """What stays the same when the parent ends and another takes its place."""
        return self.pid, self.started


def running() -> list[ProcessEntry]:
    """All processes of this machine that have not ended."""
    return list(_from_proc() if (_PROC / "self/stat").exists() else _from_ps())


def family(group: int) -> set[ProcessEntry]:
    """The running members of a process group, and all their descendants, in whatever group those are."""
    entries = running()
    return _with_descendants((entry for entry in entries if entry.group == group), entries)


def end_family(process: subprocess.Popen[bytes], *, grace: float) -> None:
    """Interrupt a process that leads its own group, and after a while kill whatever of its family is left.

    Args:
        process: a child of this process; reaped on return.
        grace: seconds that it may take to end by itself.
    """
    members = family(process.pid)
    try:
        _send(os.killpg, process.pid, signal.SIGINT)
        deadline = time.monotonic() + grace
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
            members |= family(process.pid)
    finally:
        # A second Ctrl-C cuts the waiting short, not the clearing up.
        _kill(members, process.pid)
        process.wait()


def kill_own_family() -> None:
    """Kill this process, which leads its group, and everything below it."""
    for entry in family(os.getpgrp()):
        if entry.pid != os.getpid():
            _send(os.kill, entry.pid, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def _kill(members: set[ProcessEntry], group: int) -> None:
    """Stop the family until no new member turns up, then kill it."""
    known = {entry.identity for entry in members}
    stopped: set[Identity] = set()
    while True:
        entries = running()
        seeds = [entry for entry in entries if entry.group == group or entry.identity in known]
        alive = _with_descendants(seeds, entries)
        known |= {entry.identity for entry in alive}
        new = [entry for entry in alive if entry.identity not in stopped]
        if not new:
            break
        for entry in new:
            _send(os.kill, entry.pid, signal.SIGSTOP)
            stopped.add(entry.identity)
    for entry in alive:
        _send(os.kill, entry.pid, signal.SIGKILL)


def _with_descendants(seeds: Iterable[ProcessEntry], entries: Sequence[ProcessEntry]) -> set[ProcessEntry]:
    members = {entry.pid: entry for entry in seeds}
    found = True
    while found:
        more = {entry.pid: entry for entry in entries if entry.parent in members and entry.pid not in members}
        members |= more
        found = bool(more)
    return set(members.values())


def _send(how: Callable[[int, int], None], whom: int, number: signal.Signals) -> None:
    """Send a signal; whoever is gone by now needs none."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        how(whom, number)


def _from_proc() -> Iterator[ProcessEntry]:
    for folder in _PROC.iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                # The name in parentheses may hold anything, blanks and parentheses too.
                after_name = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
                if after_name[0] not in ("Z", "X"):
                    yield ProcessEntry(int(folder.name), int(after_name[1]), int(after_name[2]), after_name[19])


def _from_ps() -> Iterator[ProcessEntry]:
    command = ["ps", "-A", "-o", "pid=,ppid=,pgid=,stat=,lstart="]
    listed = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})
    for line in listed.stdout.splitlines():
        pid, parent, group, state, started = line.split(maxsplit=4)
        if not state.startswith("Z"):
            yield ProcessEntry(int(pid), int(parent), int(group), started.strip())
