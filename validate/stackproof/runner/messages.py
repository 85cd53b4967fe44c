"""What goes over the pipe between ``validate-stack`` and the process that runs its gates; all of it picklable."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patchstack.tree.git import GitCommitHash
from stackproof.gates.spec import Spec
from stackproof.model import GateResult


@dataclass(frozen=True)
class Job:
    """One gate on one range.

    Attributes:
        spec: which gate.
        repository: folder to open; the process has its own connection to git.
        base: see :class:`stackproof.model.GateContext`, as the following.
        head: the commit to judge.
        cache: folder for heavy things.
        jobs: processes at once.
        options: of the gate, of its own type.
        tree_code: whether code of the tree may be run.
    """

    spec: Spec
    repository: Path
    base: GitCommitHash
    head: GitCommitHash
    cache: Path
    jobs: int
    options: Any
    tree_code: bool = True

    def in_words(self) -> str:
        """What was asked for, for a report."""
        return (
            f"gate {self.spec.name} ({self.spec.module})\nrepository {self.repository}\n"
            f"base {self.base}\nhead {self.head}\noptions {self.options}"
        )


@dataclass(frozen=True)
class Progressed:
    """A gate has something to show while it runs."""

    done: int
    total: int
    what: str


@dataclass(frozen=True)
class Ended:
    """A gate came to a result."""

    result: GateResult


@dataclass(frozen=True)
class PackagesMissing:
    """A gate could not be loaded for want of packages."""

    packages: tuple[str, ...]


@dataclass(frozen=True)
class NotStarted:
    """A gate could not start the processes it needs, which says nothing about the stack."""

    reason: str


@dataclass(frozen=True)
class Raised:
    """A gate raised what no gate should raise.

    Attributes:
        kind: name of the exception's class.
        message: its text.
        traceback: for the report file, never for the terminal.
    """

    kind: str
    message: str
    traceback: str


Answer = Progressed | Ended | PackagesMissing | NotStarted | Raised
