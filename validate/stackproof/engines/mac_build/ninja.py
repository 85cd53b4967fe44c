"""Reads a build's output: how far ninja is, and what went wrong."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from stackproof.model import Finding

_STEP = re.compile(r"^\s*\[(\d+)/(\d+)\]\s*(.*)")
_COMPILER_ERROR = re.compile(r"^\s*(?P<path>[^\s:][^:]*):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<message>.*)")
_FAILED = re.compile(r"^\s*FAILED: (?:\[code=\d+\] )?(?P<target>.*?)\s*$")
_TAIL = 20  # lines
_SHOWN_ERRORS = 50


@dataclass
class NinjaOutput:
    """What has been read so far.

    Attributes:
        done: number of the last step.
        total: how many steps ninja knows of; may change while it re-reads its files.
        what: the last step in words.
        errors: compiler errors as (path, line, message), each once.
        failed_targets: what ninja could not make.
        tail: the last lines.
    """

    done: int = 0
    total: int = 0
    what: str = ""
    errors: dict[tuple[str, int, str], None] = field(default_factory=dict)
    failed_targets: list[str] = field(default_factory=list)
    tail: deque[str] = field(default_factory=lambda: deque(maxlen=_TAIL))

    def feed(self, line: str) -> bool:
        """Take one line; says whether it was a step."""
        self.tail.append(line.rstrip())
        if step := _STEP.match(line):
            self.done, self.total, self.what = int(step[1]), int(step[2]), step[3].strip()
            return True
        if error := _COMPILER_ERROR.match(line):
            self.errors.setdefault((error["path"], int(error["line"]), error["message"].strip()))
        elif failed := _FAILED.match(line):
            self.failed_targets.append(failed["target"])
        return False


def failures(output: NinjaOutput, command: str, status: int, worktree: Path) -> Iterator[Finding]:
    """One finding for each compiler error; one for the command where there is none.

    Args:
        output: all of the command's output.
        command: its name.
        status: its exit status.
        worktree: paths below it are given as paths of the tree.
    """
    details = {"last_lines": list(output.tail), "failed_targets": output.failed_targets[:_SHOWN_ERRORS]}
    for path, line, message in list(output.errors)[:_SHOWN_ERRORS]:
        yield Finding(message, _in_tree(path, worktree), line, "compile")
    last = next((text for text in reversed(output.tail) if text.strip()), "no output")
    what = f"{command} ended with status {status}: {last.strip()}"
    yield Finding(what, rule="build", details=details)


def _in_tree(path: str, worktree: Path) -> str:
    """Compilers run in the tree's ``build`` folder and name files from there, or by their whole path."""
    whole = Path(path) if Path(path).is_absolute() else worktree / "build" / path
    parts: list[str] = []
    for part in whole.parts:
        if part == ".." and parts:
            parts.pop()
        elif part != ".":
            parts.append(part)
    tidy = Path(*parts)
    return str(tidy.relative_to(worktree)) if tidy.is_relative_to(worktree) else path
