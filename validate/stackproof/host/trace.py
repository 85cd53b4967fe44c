"""What a worker was doing, in a file: it can be read when the worker has died."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from stackproof.metal.toolchain import digest


@dataclass(frozen=True)
class Doing:
    """Where a worker is.

    Attributes:
        part: of its task, as the task names it; empty for a task without parts.
        kernel: host name of the kernel that it launched last in this part.
    """

    part: str = ""
    kernel: str = ""


class Trace:
    """Writes what this process does.

    Args:
        path: of the file, which is made anew.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("wb", buffering=0)
        self._doing = Doing()

    def begin(self, part: str) -> None:
        """A part of the task begins."""
        self._write(Doing(part))

    def launch(self, kernel: str) -> None:
        """A kernel is launched."""
        self._write(Doing(self._doing.part, kernel))

    def _write(self, doing: Doing) -> None:
        if doing != self._doing:
            self._doing = doing
            self._file.seek(0)
            self._file.write(json.dumps(asdict(doing)).encode())
            self._file.truncate()


def trace_path(folder: Path, label: str) -> Path:
    """Of the task with this label."""
    return folder / f"{digest(label)}.json"


def last_of(path: Path) -> Doing:
    """What was written last; nothing where that is not known."""
    try:
        return Doing(**json.loads(path.read_bytes()))
    except (OSError, ValueError):
        return Doing()
