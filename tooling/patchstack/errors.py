"""The ways a run can end badly, each with its exit code.

Every error is one sentence for a person: what is wrong with which file, what was expected, what was found, and what
to type next. The parts are kept apart so that ``--json`` can report them without parsing the sentence.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar


class ExitCode(enum.IntEnum):
    """Exit codes of ``apply-stack``; documented in docs/reference/apply-stack.md and stable."""

    OK = 0
    INTERNAL = 1
    USAGE = 2
    CONFLICT = 3
    TREE = 4
    NOT_CHECKED = 5


@dataclass
class PatchstackError(Exception):
    """Base of all expected errors.

    Attributes:
        problem: what is wrong, without the place.
        where: file, ``file:line`` or ref the problem is in; empty when there is none.
        expected: what would have been right.
        found: what was there instead.
        next_command: what the user can type to get further.
        page: of the documentation, which explains errors of this kind.
    """

    page: ClassVar[str] = "docs/reference/generated/tables.md"

    problem: str
    where: str = ""
    expected: str = ""
    found: str = ""
    next_command: str = ""

    exit_code: ExitCode = field(default=ExitCode.INTERNAL, init=False, repr=False)

    def __str__(self) -> str:
        return self._sentence("")

    def told(self) -> str:
        """The sentence as a command prints it, with the page that explains it."""
        return self._sentence(f"; see {self.page}")

    def _sentence(self, see: str) -> str:
        text = f"{self.where}: {self.problem}" if self.where else self.problem
        if self.expected:
            text += f"; expected {self.expected}"
        if self.found:
            text += f", found {self.found}" if self.expected else f"; found {self.found}"
        text += see
        if self.next_command:
            text += f" (next: {self.next_command})"
        return text

    def each(self) -> Sequence[PatchstackError]:
        """The errors that this one stands for: itself, unless it is several."""
        return (self,)

    def as_json(self) -> dict[str, Any]:
        """The same facts as a flat mapping of strings, for ``--json``."""
        return {
            "problem": self.problem,
            "where": self.where,
            "expected": self.expected,
            "found": self.found,
            "next_command": self.next_command,
        }


@dataclass
class UsageError(PatchstackError):
    """The command line asks for something that does not exist or does not go together."""

    page: ClassVar[str] = "docs/reference/generated/commands.md"

    def __post_init__(self) -> None:
        self.exit_code = ExitCode.USAGE


@dataclass
class ChoiceError(UsageError):
    """The changes that ``--only`` and ``--replace`` name do not go together.

    Attributes:
        only: values of ``--only`` that go together.
        replace: values of ``--replace`` that go with them.
    """

    only: tuple[str, ...] = ()
    replace: tuple[str, ...] = ()


@dataclass
class ManifestError(PatchstackError):
    """A series manifest, a message or an overlay file is not what the format says."""

    page: ClassVar[str] = "docs/reference/manifest.md"

    def __post_init__(self) -> None:
        self.exit_code = ExitCode.USAGE

    def each(self) -> Sequence[ManifestError]:
        return (self,)


@dataclass
class ManifestErrors(ManifestError):
    """Several things are wrong with a series; the first one is what this error itself says.

    Attributes:
        errors: all of them, by file and line.
    """

    errors: tuple[ManifestError, ...] = ()

    def __str__(self) -> str:
        return "\n".join(map(str, self.errors))

    def each(self) -> Sequence[ManifestError]:
        return self.errors

    def as_json(self) -> dict[str, Any]:
        return {**self.errors[0].as_json(), "errors": [error.as_json() for error in self.errors]}


@dataclass
class TreeError(PatchstackError):
    """The repository or the tree cannot be used: not a PyTorch tree, no identity, missing objects, signing fails."""

    page: ClassVar[str] = "docs/reference/apply-stack.md"

    def __post_init__(self) -> None:
        self.exit_code = ExitCode.TREE


@dataclass
class MissingObjectError(TreeError):
    """The object store lacks a part of the tree; what the tree holds there cannot be told."""


@dataclass
class RefError(PatchstackError):
    """The branch cannot be moved: it holds foreign commits, it moved meanwhile, or another run is at work."""

    page: ClassVar[str] = "docs/reference/apply-stack.md"

    def __post_init__(self) -> None:
        self.exit_code = ExitCode.CONFLICT
