"""One run at a time per repository, and recovery from a run that was killed while git was moving the branch."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from patchstack.errors import RefError, TreeError
from patchstack.stack.record import FOLDER
from patchstack.tree.git import Repository

_PATIENCE_S = 1.0
"""How long git of a killed run may still be alive; moving a ref takes milliseconds."""


@dataclass(frozen=True)
class RunLock:
    """The lock this run holds. Its file also says which refs are being moved, for whoever comes after a crash.

    Attributes:
        descriptor: of the lock file.
        scratch: a folder for this run's temporary files; what a killed run left there is gone.
    """

    descriptor: int
    scratch: Path

    def note(self, *refs: str) -> None:
        """Note who holds the lock, and which refs git is about to move (their files below the common git directory).

        Raises:
            TreeError: the disk is full.
        """
        text = "".join(f"{line}\n" for line in (str(os.getpid()), *refs)).encode(errors="surrogateescape")
        try:
            os.ftruncate(self.descriptor, 0)
            written = os.pwrite(self.descriptor, text, 0)
            if refs:
                os.fsync(self.descriptor)  # the note must outlive a power cut that leaves git's lock files
        except OSError as error:
            raise _cannot_write(self.scratch.parent, str(error)) from None
        if written != len(text):
            raise _cannot_write(self.scratch.parent, "no space left")

    def done(self) -> None:
        """Note that no ref is being moved any more; needs no space on the disk."""
        os.ftruncate(self.descriptor, 0)


@contextmanager
def run_lock(repository: Repository) -> Iterator[RunLock]:
    """Hold the repository's lock; the kernel gives it back when the process ends, however it ends.

    Raises:
        RefError: another run holds it.
        TreeError: the git directory cannot be written.
    """
    folder = repository.common_dir / FOLDER
    try:
        folder.mkdir(exist_ok=True)
        if (folder / "lock").is_fifo():
            raise _cannot_write(folder / "lock", "not a regular file")
        descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    except OSError as error:
        raise _cannot_write(folder, str(error)) from None
    try:
        _acquire(repository, descriptor)
        interrupted = _lines(descriptor)[1:]
        lock = RunLock(descriptor, folder / "scratch")
        _clear_left_locks(repository, interrupted)
        _clear_scratch(lock.scratch)
        lock.note()
        yield lock
        lock.done()
    finally:
        os.close(descriptor)


def _acquire(repository: Repository, descriptor: int) -> None:
    holder = _lines(descriptor)[:1]  # read first: whoever gets the lock writes another number there
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise RefError(
            "another apply-stack run is at work in this repository; nothing was written",
            where=str(repository.root),
            found=f"process {holder[0]}" if holder else "another process",
            next_command="wait for it to end, then run again",
        ) from None


def _lines(descriptor: int) -> list[str]:
    return os.pread(descriptor, 65536, 0).decode(errors="surrogateescape").split("\n")[:-1]


def _clear_left_locks(repository: Repository, interrupted: Sequence[str]) -> None:
    """Remove git's lock files of the refs that a killed run of ours was moving; nobody else's are ever touched."""
    left = [repository.common_dir / f"{ref}.lock" for ref in interrupted if _is_ref(ref)]
    deadline = time.monotonic() + _PATIENCE_S
    while any(file.exists() for file in left):
        if time.monotonic() > deadline:
            for file in left:
                file.unlink(missing_ok=True)
            return
        time.sleep(0.02)


def _is_ref(name: str) -> bool:
    """Whether a note names a file that git locks for a ref; a damaged one may name anything."""
    return (name.startswith("refs/") or name.endswith("HEAD")) and ".." not in name.split("/")


def _clear_scratch(folder: Path) -> None:
    if folder.is_symlink():
        raise _cannot_write(folder, "a symbolic link, and what it leads to is not the tool's to clear")
    try:
        folder.mkdir(exist_ok=True)
        for file in folder.iterdir():
            file.unlink()
    except OSError as error:
        raise _cannot_write(folder, str(error)) from None


def _cannot_write(folder: Path, found: str) -> TreeError:
    return TreeError("the git directory cannot be written", where=str(folder), found=found)
