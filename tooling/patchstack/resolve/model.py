"""What a resolve knows of itself between two commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from patchstack.edits import Edit, Outcome, Rung, Status
from patchstack.errors import ExitCode, PatchstackError
from patchstack.tree.git import Tree

CONTINUE = "apply-stack resolve --continue"
ABORT = "apply-stack resolve --abort"


@dataclass
class ResolveError(PatchstackError):
    """The resolve cannot go on as things are; nothing was changed."""

    def __post_init__(self) -> None:
        self.exit_code = ExitCode.CONFLICT


@dataclass(frozen=True)
class OpenFile:
    """A file of the worktree that waits for a person.

    Attributes:
        path: the file.
        written: digest of it as the worktree was opened; empty where there is no such file.
        beside: file beside it with what could not be put in; empty where markers are in the text, or all of it is.
        problem: the conflict in words.
    """

    path: str
    written: str
    beside: str
    problem: str


@dataclass(frozen=True)
class Aim:
    """What the run that met the conflict was asked for, and is asked for again with each ``--continue``.

    Attributes:
        series: folder of the series, or its name.
        onto: the commit to build on.
        onto_name: as it was typed.
        branch: the branch to write.
        only: as for ``apply-stack --onto``, and so are the others.
    """

    series: str
    onto: str
    onto_name: str
    branch: str
    only: tuple[str, ...] = ()
    replace: tuple[str, ...] = ()
    force: bool = False
    check: bool = False


@dataclass(frozen=True)
class State:
    """A resolve between two commands.

    Attributes:
        aim: what it is for.
        worktree: folder of its worktree.
        is_open: whether the worktree is there as a whole; a run that was killed leaves ``False``.
        change: id of the change that is being resolved; empty when all of them are.
        base: the commit below that change, which the worktree is at.
        files: what waits for a person.
        results: id of a change to the commit that a person made of it.
    """

    aim: Aim
    worktree: str
    is_open: bool = False
    change: str = ""
    base: str = ""
    files: tuple[OpenFile, ...] = ()
    results: Mapping[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return Path(self.worktree)


@dataclass(frozen=True)
class Learned:
    """What a series learned of the results.

    Attributes:
        added: what was added to the series, a sentence each.
        missing: change ids to why nothing was learned of their results.
        verified: commits on which the series was tried: with what it learned, it gives the results on the new one and
            what it gave before on the old ones.
        diff: the difference of the series.
    """

    added: tuple[str, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict)
    verified: Sequence[str] = ()
    diff: str = ""


@dataclass(frozen=True, kw_only=True)
class ResolvedFile(Edit):
    """A file as a person left it; stands for the edits of a change whose result is settled.

    Attributes:
        content: the whole file.
    """

    kind: ClassVar[str] = "resolved-file"
    content: bytes

    def describe(self) -> str:
        return "take what was resolved by hand"

    def plan(self, tree: Tree) -> Outcome:
        return Outcome(Status.APPLIES, f"file {self.path}", rung=Rung.RESOLVED, after=self.content)
