"""The message of each commit: the prose of the series, what is derived, and the trailers of the stack it replaces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from patchstack.edits import Edit
from patchstack.edits.dispatch_key import AddDispatchKey
from patchstack.edits.regenerate import RegenerateShim
from patchstack.errors import UsageError
from patchstack.messages.generated import FileChange, Generated, with_generated
from patchstack.messages.model import GhstackTrailers, Message
from patchstack.messages.paragraphs import unclosed_fence
from patchstack.messages.results import Results, TestRun, read_results
from patchstack.planning import ChangePlan, StackPlan
from patchstack.series import Change
from patchstack.tree.diffs import counted

_NO_TRAILERS = GhstackTrailers()


@dataclass(frozen=True)
class Quoted:
    """What a person gave the run to quote.

    Attributes:
        results: a report of ``validate-stack``, ``None`` where there is none.
        benchmarks: change id to a Markdown table.
    """

    results: Results | None = None
    benchmarks: Mapping[str, str] = field(default_factory=dict)


NOTHING = Quoted()


def read_quoted(plan: StackPlan, results: Path | None, tables: Sequence[str]) -> Quoted:
    """Read the files that a run is to quote.

    Args:
        tables: each ``FILE``, or ``CHANGE=FILE`` where the stack has several commits.

    Raises:
        UsageError: a file cannot be read, is empty or ends inside of a code block, does not say which change it is
            about or names one that becomes no commit, or is the second of one.
    """
    ids = [change.change.id for change in plan.commits]
    benchmarks: dict[str, str] = {}
    for table in tables:
        change, separator, name = table.partition("=")
        if not separator or change not in {change.id for change in plan.series.changes}:
            change, name = (ids[0] if len(ids) == 1 else ""), table
        if not change:
            raise UsageError("which commit is the table about?", where=table, expected=f"--bench {'|'.join(ids)}=FILE")
        if change not in ids:
            raise UsageError(
                "the table is about a change that becomes no commit of this stack",
                where=f"--bench {table}",
                expected=" or ".join(ids) or "no table: there is no commit",
            )
        if change in benchmarks:
            raise UsageError("a commit quotes one table, and this is the second", where=f"--bench {table}")
        try:
            benchmarks[change] = Path(name).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise UsageError("the table cannot be read", where=name, found=str(error)) from None
        if not benchmarks[change].strip():
            raise UsageError("there is no table in this file", where=name)
        if fence := unclosed_fence(benchmarks[change]):
            problem = "a code block of the table is not closed, and would swallow what follows it in the message"
            raise UsageError(problem, where=name, expected=f"a line {fence}", found="the end of the file")
    return Quoted(read_results(results) if results else None, benchmarks)


@dataclass(frozen=True)
class Composer:
    """Makes the messages of one stack.

    Attributes:
        plan: the stack.
        trailers: change id to ghstack's trailers, for the changes that have a pull request.
        evidence: what the messages may quote.
    """

    plan: StackPlan
    trailers: Mapping[str, GhstackTrailers] = field(default_factory=dict)
    evidence: Quoted = NOTHING

    def messages(self, runs: Mapping[str, TestRun] | None = None) -> tuple[Message, ...]:
        """One message a commit, bottom first.

        Args:
            runs: change id to what was run on the commit's tree.
        """
        return tuple(self._message(plan.change, (runs or {}).get(plan.change.id)) for plan in self.plan.commits)

    @cached_property
    def _files(self) -> Mapping[str, tuple[FileChange, ...]]:
        return {plan.change.id: _files(plan) for plan in self.plan.commits}

    def _message(self, change: Change, run: TestRun | None) -> Message:
        generated = Generated(
            self._files[change.id], change.test_plan, run, self.evidence.benchmarks.get(change.id, ""), change.cc
        )
        body = with_generated(change.body, generated)
        return Message(change.title, body, change.co_authors, self.trailers.get(change.id, _NO_TRAILERS))

    def runs(self, onto_tree: str, trees: Sequence[str]) -> Mapping[str, TestRun]:
        """What was run on the tree of each commit.

        Args:
            trees: one for each commit, bottom first.

        Raises:
            UsageError: results were given, and all of them are about other trees.
        """
        results = self.evidence.results
        if results is None:
            return {}
        found: dict[str, TestRun] = {}
        for change, base, tree in zip(self.plan.commits, (onto_tree, *trees), trees, strict=False):
            run = results.of(base, tree)
            if run is not None:
                found[change.change.id] = run
        if not found and trees and results.of(onto_tree, trees[-1]):
            raise UsageError(
                "the results are about the whole stack and not about its commits; no branch was moved",
                where=str(results.file),
                next_command="validate-stack --each-commit --json FILE, then this again",
            )
        if not found:
            raise UsageError(
                "the results are stale: they are about other trees than those of this stack; no branch was moved",
                where=str(results.file),
                expected="results of this stack's commits",
                found=", ".join(run.tree[:12] for run in results.runs),
                next_command="run without --results, then validate-stack --each-commit --json FILE, then this again",
            )
        return found

    def untested(self, runs: Mapping[str, TestRun]) -> Iterator[str]:
        """Warnings about commits for which results were given, but not on their trees."""
        if self.evidence.results is not None:
            for change in self.plan.commits:
                if change.change.id not in runs:
                    file = self.evidence.results.file
                    yield f"{file} has no results for the tree of '{change.change.title}': its message says so"


def _files(change: ChangePlan) -> tuple[FileChange, ...]:
    """The files of a commit; what is said of each is what a diff does not show at a glance."""
    added: Counter[str] = Counter()
    removed: Counter[str] = Counter()
    does: dict[str, list[str]] = {}
    for plan in change.edits:
        if plan.outcome.after is not None:
            more, less = counted(plan.before or b"", plan.outcome.after)
            added[plan.edit.path] += more
            removed[plan.edit.path] += less
            does.setdefault(plan.edit.path, []).extend(_said(plan.edit))
    return tuple(FileChange(path, added[path], removed[path], tuple(words)) for path, words in does.items())


def _said(edit: Edit) -> list[str]:
    if isinstance(edit, RegenerateShim):
        return [f"declares {', '.join(edit.adds)}"]
    return [edit.describe()] if isinstance(edit, AddDispatchKey) else []
