"""The upstream commits behind the conflicts of one plan, for a report that is waited for.

Two commits are worth naming. The last one that changed the lines of the definition in question is what ``git log -L``
says. The one that broke the anchor may be older: it is the first commit of the condition that holds now, which is what
``apply-stack drift`` would name. Both are looked for within a budget of time, and what it does not settle is said to
be unknown.
"""

from __future__ import annotations

import ast
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from patchstack.drift.condition import conditions_of
from patchstack.drift.line import UpstreamCommit
from patchstack.drift.replay import Replay
from patchstack.drift.search import first_of_present
from patchstack.edits import Conflict
from patchstack.errors import MissingObjectError
from patchstack.planning import StackPlan
from patchstack.series import Series
from patchstack.tree.cxx import parse_cxx
from patchstack.tree.git import GitCommitHash, Repository, Tree
from patchstack.tree.git.process import GitCommandError, git_environment
from patchstack.tree.native_functions import FUNCTIONS_PATH, parse_native_functions
from patchstack.tree.text import line_number
from patchstack.tree.yaml_nodes import YamlSyntaxError

BUDGET_S = 10.0
"""Seconds for all conflicts of a plan: the history of a definition in a large file can take git minutes."""

_MOST_COMMITS = 256  # commits of a file's history that are searched for the one that broke an anchor
_Key = tuple[str, Conflict]  # id of a change and one of its conflicts


@dataclass(frozen=True)
class Behind:
    """What history says about one conflict.

    Attributes:
        touched: the last commit that changed the lines of the definition, or the one that took it away: ``<id> <date>
            <title>``; a text in parentheses says why that is unknown; empty where no commit did.
        broke: the first commit of the present condition, where it is known and another one than ``touched``.
    """

    touched: str = ""
    broke: str = ""

    @property
    def lines(self) -> Iterator[str]:
        """The lines of a report."""
        if self.touched:
            yield f"last touched upstream by {self.touched}"
        if self.broke:
            yield f"the anchor broke with {self.broke}"


def commits_behind(
    repository: Repository, series: Series, plan: StackPlan, *, budget: float = BUDGET_S
) -> dict[_Key, Behind]:
    """What history says about each conflict of a plan; conflicts that it says nothing about are left out.

    Args:
        series: the series that was planned.
        budget: seconds to spend on all of them.
    """
    search = _Search(repository, series, plan, time.monotonic() + budget)
    keys = [(change.change.id, conflict) for change, conflict in plan.conflicts()]
    touched = {key: _answer(search.touched, *key) for key in keys}  # the quick question first, for all of them
    broke = {key: _answer(search.broke, *key) for key in keys}
    return {key: found for key in keys if (found := _behind(touched[key], broke[key])) != Behind()}


_Answer = tuple[str, bool]  # a commit, or why none is known; whether it is a commit


def _answer(question: Callable[[str, Conflict], str], change: str, conflict: Conflict) -> _Answer:
    try:
        return question(change, conflict), True
    except _Unknown as reason:
        return f"(unknown: {reason})", False


def _behind(touched: _Answer, broke: _Answer) -> Behind:
    """Lines that are gone were last touched by the commit that took them away."""
    last = touched[0] or broke[0]
    return Behind(last, broke[0] if broke[1] and broke[0] != last else "")


class _Unknown(Exception):
    """History does not tell; the text says why."""


class _Search:
    """One search of :func:`commits_behind`.

    Attributes:
        deadline: when it ends, on the monotonic clock.
    """

    def __init__(self, repository: Repository, series: Series, plan: StackPlan, deadline: float) -> None:
        self.repository = repository
        self.plan = plan
        self.deadline = deadline
        self._replay = Replay(repository, series, lambda count: None)
        self._conditions = conditions_of(plan)
        self._tree = Tree.at(repository, plan.onto)
        self._shallow = _shallow_commits(repository)

    def _ranges(self, conflict: Conflict) -> list[tuple[int, int]]:
        """First and last lines of the definitions that the conflict is about, in the file of the onto commit."""
        lines = [line for line in conflict.matches if line]
        data = self._tree.read(conflict.path) if lines else None
        return [] if data is None else [_definition_at(data, conflict.path, line) for line in lines]

    def touched(self, change: str, conflict: Conflict) -> str:
        """The last commit that changed one of the definitions that a conflict is about; empty where it is about none.

        Raises:
            _Unknown: history does not tell.
        """
        wanted = [f"-L{first},{last}:{conflict.path}" for first, last in self._ranges(conflict)]
        if not wanted:
            return ""
        named = self._git("log", "-1", "-s", "--no-show-signature", "--format=%H", *wanted, self.plan.onto)
        if not named:
            return ""
        if named[0] in self._shallow:
            raise _Unknown("this clone is shallow, and the commit lies before its history")
        return str(UpstreamCommit.read(self.repository, named[0]))

    def broke(self, change: str, conflict: Conflict) -> str:
        """The first commit since which an edit is in this conflict; empty where it always was.

        Raises:
            _Unknown: history does not tell.
        """
        facets = self._conditions[change].facets.values()
        facet = next((facet for facet in facets if facet.conflict == conflict), None)
        if facet is None or self._value(self.plan.onto, change, facet.name) != facet.value:
            return ""  # a conflict of this choice of changes, or of torchgen
        span = ["rev-list", "--first-parent", "--reverse", f"--max-count={_MOST_COMMITS}", self.plan.onto]
        touching = [GitCommitHash(hash_) for hash_ in self._git(*span, "--", conflict.path)]
        if not touching:
            return ""
        before = self._parent(touching[0])
        stations = [before, *touching] if before else touching
        found = first_of_present(
            len(stations),
            lambda place: self._value(stations[place], change, facet.name),
            lambda place: time.monotonic() < self.deadline,
        )
        if found.index:
            return str(UpstreamCommit.read(self.repository, stations[found.index]))
        if before:
            raise _Unknown(f"it was so {len(touching)} commits of this file ago")
        if touching[0] in self._shallow:
            raise _Unknown("this clone is shallow, and it was so where its history begins")
        return ""

    def _parent(self, commit: GitCommitHash) -> GitCommitHash | None:
        parents = self.repository.commit(commit).parents
        return parents[0] if parents and commit not in self._shallow else None

    def _value(self, commit: GitCommitHash, change: str, name: str) -> str:
        if time.monotonic() > self.deadline and not self._replay.is_known(commit):
            raise _Unknown("the search took too long; apply-stack drift takes the time")
        try:
            return self._replay.at(commit)[change].value(name)
        except MissingObjectError:
            raise _Unknown("this clone does not hold the files of earlier commits") from None

    def _git(self, *arguments: str) -> list[str]:
        """The words of git's answer."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise _Unknown("the search took too long")
        try:
            done = subprocess.run(
                ["git", *arguments],
                cwd=self.repository.root,
                env=git_environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=left,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise _Unknown("git's search took too long") from None
        if done.returncode:
            raise _Unknown("this clone does not hold the files of earlier commits")
        return done.stdout.decode(errors="replace").split()


def _shallow_commits(repository: Repository) -> frozenset[str]:
    """The commits whose parents a shallow clone lacks."""
    try:
        return frozenset((repository.common_dir / "shallow").read_text().split())
    except (OSError, GitCommandError):
        return frozenset()


def _definition_at(data: bytes, path: str, line: int) -> tuple[int, int]:
    """First and last line of the definition that begins at a line; of anything else, that line."""
    ends = [line]
    if path == FUNCTIONS_PATH:
        ends += _entry_ends(data, line)
    elif path.endswith(".py"):
        ends += _python_ends(data, line)
    else:
        file = parse_cxx(data)
        ends += [file.line(found.end - 1) for found in file.definitions if file.line(found.start) == line]
    return line, max(ends)


def _entry_ends(data: bytes, line: int) -> Iterator[int]:
    functions = parse_native_functions(data)
    for name in [name for name, at in functions.lines.items() if at == line]:
        try:
            (entry, *_) = functions.find(name)
        except YamlSyntaxError:
            continue
        yield line_number(data, entry.start + len(data[entry.start : entry.end].rstrip()) - 1)


def _python_ends(data: bytes, line: int) -> Iterator[int]:
    try:
        nodes = list(ast.walk(ast.parse(data)))
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in nodes:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if line in (first, node.lineno):
                yield node.end_lineno or line
