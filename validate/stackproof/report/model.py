"""What a whole run of ``validate-stack`` showed, before it is printed or written anywhere."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from stackproof.launches import named
from stackproof.model import GateResult, Verdict

UNPROVED = "unproved"
"""What a run is whose gates did not fail, but launched none of some kernels of the stack."""


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
        unproved: by base and head, the kernels that a range brings and no gate launched, where gates that execute
            kernels were asked for; ranges without such kernels are left out.
        required_not_run: gates that had to run and did not, each with the reason.
        series: name of the series, where one was given or is the distribution's own.
        not_asked: the gates that exist and that the run was not asked for.
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
    unproved: Mapping[tuple[str, str], Sequence[str]] = field(default_factory=dict)
    required_not_run: Sequence[str] = ()
    series: str = ""
    not_asked: Sequence[str] = ()

    @property
    def verdict(self) -> Verdict:
        """Of the range and of every commit together: a stack is no better than its worst commit."""
        return overall([result for _, results in self.parts() for result in results])

    @property
    def outcome(self) -> str:
        """The verdict of the gates in words, or "unproved" where none failed but some kernels were not launched."""
        return UNPROVED if self.unproved and self.verdict is not Verdict.FAILED else self.verdict.value

    def outcome_of(self, commit: CommitReport) -> str:
        """The same of one commit."""
        missing = self.unproved.get((commit.base, commit.commit))
        return UNPROVED if missing and commit.verdict is not Verdict.FAILED else commit.verdict.value

    @property
    def headline(self) -> str:
        """The verdict with what it rests on, of the range and every commit together."""
        gates = headline([result for _, results in self.parts() for result in results])
        if self.outcome != UNPROVED:
            return gates
        kernels = list(dict.fromkeys(kernel for part in self.unproved.values() for kernel in part))
        return f"{UNPROVED}: kernel {named(kernels)}; the gates alone: {gates}"

    def parts(self) -> Iterator[tuple[str, Sequence[GateResult]]]:
        """Each commit's results under a heading, then those of the whole range under an empty one.

        The only commit of a stack is the whole range, and not told twice.
        """
        for heading, _base, _head, results in self.ranges():
            yield heading, results

    def ranges(self) -> Iterator[tuple[str, str, str, Sequence[GateResult]]]:
        """The parts with the base and the head of each."""
        for number, commit in enumerate(self.commits, 1):
            if not self.is_whole(commit):
                heading = f"commit {number}/{len(self.commits)} {commit.commit[:12]} {commit.title}"
                yield heading, commit.base, commit.commit, commit.results
        yield "", self.base, self.head, self.results

    def is_whole(self, commit: CommitReport) -> bool:
        """Whether a commit is the whole range."""
        return (commit.base, commit.commit) == (self.base, self.head)
