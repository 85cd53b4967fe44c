"""What is captured: commits, the files that they change, and the edits that were chosen for these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from patchstack.edits import Edit
from patchstack.edits.apply_diff import ApplyDiff
from patchstack.errors import ExitCode, PatchstackError
from patchstack.messages.model import CoAuthor
from patchstack.tree.git import GitCommitHash


@dataclass
class CaptureError(PatchstackError):
    """A commit holds something that no edit can say, or the captured series would not reproduce it."""

    def __post_init__(self) -> None:
        self.exit_code = ExitCode.CONFLICT


@dataclass(frozen=True)
class FileChange:
    """What a commit does to one file.

    Attributes:
        path: the file.
        before: its content below the commit; ``None`` for a new file.
        after: its content in the commit.
    """

    path: str
    before: bytes | None
    after: bytes


@dataclass(frozen=True)
class Source:
    """One commit to be captured.

    Attributes:
        commit: its id.
        title: first line of its message.
        body: the prose of its message, trailers and derived parts apart.
        co_authors: from its trailers.
        files: what it changes, by path.
    """

    commit: GitCommitHash
    title: str
    body: str
    co_authors: tuple[CoAuthor, ...]
    files: tuple[FileChange, ...]


@dataclass(frozen=True)
class Choice:
    """An edit and what of the diff it stands for.

    Attributes:
        edit: the edit.
        hunks: hunks of ``git diff -U0`` that it reproduces, alone or with the choices before it.
        why: why it is not of a more durable kind; empty where it is structural.
    """

    edit: Edit
    hunks: int
    why: str = ""

    @property
    def is_structural(self) -> bool:
        return not isinstance(self.edit, ApplyDiff)


@dataclass(frozen=True)
class Captured:
    """One commit as a change.

    Attributes:
        source: the commit.
        identity: id of the change.
        choices: its edits, in order.
        needs: ids of earlier changes that it builds on.
        notes: schema lines that it changes, say.
    """

    source: Source
    identity: str
    choices: tuple[Choice, ...]
    needs: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def edits(self) -> Sequence[Edit]:
        return tuple(choice.edit for choice in self.choices)
