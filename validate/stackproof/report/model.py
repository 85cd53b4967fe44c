"""What a whole run of ``validate-stack`` showed, before it is printed or written anywhere."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from stackproof.model import GateResult, Verdict


def headline(results: Sequence[GateResult]) -> str:
    """The verdict with what it rests on: ``passed: 2 of 10 gates; 8 not run``."""
    ran = [result for result in results if result.verdict is not Verdict.NOT_RUN]
    failed = sum(result.verdict is Verdict.FAILED for result in ran)
    verdict = overall(results)
    if verdict is Verdict.NOT_RUN:
        return f"{verdict.value}: none of {len(results)} gates"
    count = f"{failed if failed else len(ran)} of {len(results)} gates"
    left = len(results) - len(ran)
    return f"{verdict.value}: {count}" + (f"; {left} not run" if left else "")


def overall(results: Sequence[GateResult]) -> Verdict:
    """Failed if any gate failed, passed if at least one passed, not run otherwise."""
    verdicts = {result.verdict for result in results}
    if Verdict.FAILED in verdicts:
        return Verdict.FAILED
    return Verdict.PASSED if Verdict.PASSED in verdicts else Verdict.NOT_RUN


@dataclass(frozen=True)
class CommitReport:
    """One commit of the stack, judged against its own parent.

    Attributes:
        commit: its id.
        base: its first parent.
        title: first line of its message.
        results: one for each gate that was asked for.
        tree: id of its tree.
        base_tree: id of its parent's tree.
    """

    commit: str
    base: str
    title: str
    results: Sequence[GateResult]
    tree: str = ""
    base_tree: str = ""

    @property
    def verdict(self) -> Verdict:
        return overall(self.results)


@dataclass(frozen=True)
class RunReport:
    """The whole run.

    Attributes:
        repository: path of the repository.
        base: the commit the stack is built on.
        head: the commit that was judged.
        results: one for each gate, of the whole range.
        commits: bottom of the stack first; empty unless each commit was asked for.
        partial: the run was interrupted; what it did not get to is "not run".
        started: when, with its time zone.
        seconds: wall time.
        environment: versions and platform, by name.
        base_tree: id of the tree of ``base``: a message may change a commit's id, its tree stays.
        head_tree: id of the tree of ``head``.
        command: what was typed, without what is of this machine only (paths, processes at once).
    """

    repository: str
    base: str
    head: str
    results: Sequence[GateResult]
    commits: Sequence[CommitReport] = ()
    partial: bool = False
    started: datetime.datetime = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    seconds: float = 0.0
    environment: Mapping[str, str] = field(default_factory=dict)
    base_tree: str = ""
    head_tree: str = ""
    command: str = ""

    @property
    def verdict(self) -> Verdict:
        """Of the range and of every commit together: a stack is no better than its worst commit."""
        return overall([result for _, results in self.parts() for result in results])

    @property
    def headline(self) -> str:
        """The verdict with what it rests on, of the range and every commit together."""
        return headline([result for _, results in self.parts() for result in results])

    def parts(self) -> Iterator[tuple[str, Sequence[GateResult]]]:
        """Each commit's results under a heading, then those of the whole range under an empty one.

        The only commit of a stack is the whole range, and not told twice.
        """
        for number, commit in enumerate(self.commits, 1):
            if not self.is_whole(commit):
                yield f"commit {number}/{len(self.commits)} {commit.commit[:12]} {commit.title}", commit.results
        yield "", self.results

    def is_whole(self, commit: CommitReport) -> bool:
        """Whether a commit is the whole range."""
        return (commit.base, commit.commit) == (self.base, self.head)
