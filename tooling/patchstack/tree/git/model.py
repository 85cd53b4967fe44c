"""Names for the strings that matter, so that a type checker tells a tree from a commit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NewType

GitObjectHash = NewType("GitObjectHash", str)
GitCommitHash = NewType("GitCommitHash", str)
GitTreeHash = NewType("GitTreeHash", str)
GitBlobHash = NewType("GitBlobHash", str)

MODE_FILE = "100644"
MODE_EXECUTABLE = "100755"
MODE_SYMLINK = "120000"
MODE_DIRECTORY = "40000"


@dataclass(frozen=True)
class TreeEntry:
    """One name in a git tree object.

    Attributes:
        mode: octal mode as git prints it, without leading zeros (``100644``, ``40000``, ...).
        hash: object id of the blob, tree or submodule commit.
    """

    mode: str
    hash: GitObjectHash

    @property
    def is_directory(self) -> bool:
        return self.mode == MODE_DIRECTORY

    @property
    def is_file(self) -> bool:
        """A regular file; symbolic links and submodules are not."""
        return self.mode in (MODE_FILE, MODE_EXECUTABLE)


@dataclass(frozen=True)
class Commit:
    """The parts of a commit that the applier reads.

    Attributes:
        hash: id of the commit.
        tree: id of its tree.
        parents: parent ids in order.
        committed_at: committer date, seconds since the epoch (UTC).
        message: full message, decoded as UTF-8 with undecodable bytes replaced.
    """

    hash: GitCommitHash
    tree: GitTreeHash
    parents: tuple[GitCommitHash, ...]
    committed_at: int
    message: str

    @property
    def title(self) -> str:
        return self.message.split("\n", 1)[0]
