"""What the tool made: an append-only file in the git directory, by which its own commits are recognised later.

A line is written before a branch moves, so a run that dies in between leaves a line too many and never one too few.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from patchstack.errors import TreeError
from patchstack.tree.git import Repository

FOLDER = "apply-stack"


@dataclass(frozen=True)
class Made:
    """One commit the tool made.

    Attributes:
        commit: its id.
        tree: id of its tree.
        series: name of the series.
        change: id of the change.
        message: its full message.
        onto: the commit the stack was built on.
    """

    commit: str
    tree: str
    series: str
    change: str
    message: str
    onto: str


class Record:
    """The file, in the git directory that all worktrees share."""

    def __init__(self, repository: Repository) -> None:
        self._file = repository.common_dir / FOLDER / "made.jsonl"

    @property
    def file(self) -> Path:
        return self._file

    def read(self) -> list[Made]:
        """Everything recorded; a line cut short by a crash is skipped, and so is one that holds something else.

        Raises:
            TreeError: the file is there and cannot be read.
        """
        made = []
        problem = "the record of earlier runs cannot be read"
        if self._file.is_fifo():  # reading it may never end
            raise TreeError(problem, where=str(self._file), found="not a regular file")
        try:
            text = self._file.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return []
        except OSError as error:
            raise TreeError(problem, where=str(self._file), found=str(error)) from None
        for line in text.split("\n"):
            try:
                made.append(_entry(json.loads(line)))
            except (ValueError, TypeError, RecursionError):
                continue
        return made

    def append(self, entries: Iterable[Made]) -> None:
        """Add what is not there yet, and wait until it is on disk.

        Raises:
            TreeError: the git directory cannot be written.
        """
        known = {(made.commit, made.series) for made in self.read()}  # a renamed series makes the same commits
        lines = [json.dumps(asdict(made)) + "\n" for made in entries if (made.commit, made.series) not in known]
        if not lines:
            return
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with self._file.open("a", encoding="utf-8") as out:
                out.write("".join(["\n", *lines]))  # a line feed first: the last run may have died in mid-line
                out.flush()
                os.fsync(out.fileno())
        except OSError as error:
            raise TreeError("the git directory cannot be written", where=str(self._file), found=str(error)) from None


def _entry(facts: dict[str, str]) -> Made:
    """One line of the record.

    Raises:
        TypeError: a field is missing, unknown, or no text.
        ValueError: a text cannot be written again.
    """
    for value in facts.values() if isinstance(facts, dict) else [facts]:
        if not isinstance(value, str):
            raise TypeError("not a text")
        value.encode()
    return Made(**facts)
