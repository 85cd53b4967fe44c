"""Everything a run must leave alone, as one comparable value."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Snapshot:
    """Content, mode and modification time of every file of some folders.

    Attributes:
        entries: path to a one-line fingerprint.
    """

    entries: dict[str, str]

    @classmethod
    def of(cls, *folders: Path, leave_out: Iterable[str] = (), times: bool = True) -> Snapshot:
        """Fingerprint all files below ``folders``.

        Args:
            leave_out: path prefixes, relative to any of the folders, that may change.
            times: whether the time of the last modification counts.
        """
        skipped = tuple(leave_out)
        entries: dict[str, str] = {}
        for folder in folders:
            for path in _walk(folder, skipped, str(folder)):
                entries[str(path)] = _fingerprint(path, times=times)
        return cls(entries)

    def joined(self, other: Snapshot) -> Snapshot:
        """Both together."""
        return Snapshot({**self.entries, **other.entries})

    def require_same(self, later: Snapshot) -> None:
        """Assert that nothing came, went or changed."""
        told = self.changes_to(later)
        assert not told, "\n".join(told)

    def require_kept(self, later: Snapshot) -> None:
        """Assert that nothing went or changed; things may have come."""
        self.require_same(Snapshot({path: facts for path, facts in later.entries.items() if path in self.entries}))

    def changes_to(self, later: Snapshot) -> list[str]:
        """Paths that came, went or changed, with what happened to them; empty when all is as it was."""
        told = []
        for path in sorted(self.entries.keys() | later.entries.keys()):
            before, after = self.entries.get(path), later.entries.get(path)
            if before != after:
                told.append(f"{path}: {before or 'not there'} -> {after or 'gone'}")
        return told


def _walk(folder: Path, skipped: tuple[str, ...], top: str) -> Iterable[Path]:
    for entry in sorted(os.scandir(folder), key=lambda found: found.name):
        relative = os.path.relpath(entry.path, top)
        if any(relative == prefix or relative.startswith(prefix + "/") for prefix in skipped):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(Path(entry.path), skipped, top)
        else:
            yield Path(entry.path)


def _fingerprint(path: Path, *, times: bool) -> str:
    status = path.lstat()
    content = os.fsencode(os.readlink(path)) if stat.S_ISLNK(status.st_mode) else path.read_bytes()
    time = f"{status.st_mtime_ns} " if times else ""
    return f"{status.st_mode:o} {time}{hashlib.sha256(content).hexdigest()[:16]}"
