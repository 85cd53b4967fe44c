"""What the kernels below the stack do with the batches that fail: a failure that is theirs becomes a note.

Only batches are asked about of which the stack touches neither the host function of the op nor a kernel that they
launch, so a stack that passes costs nothing here, and a failure of the stack's own kernels next to nothing. Where the
stack only put statements into the function, the failures have to be the same to the last number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from stackproof.base_commit.findings import as_note, failing, noted, same_words
from stackproof.engines.pool.tasks import Died, run_tasks
from stackproof.gates.common.touched import Touched
from stackproof.gates.metal_run.worker import Done, Setup, Task
from stackproof.model import Finding, GateContext
from stackproof.ops import CaseResult, OpProof
from stackproof.ops.sources import OpSource

Answered = tuple[Task, "Done | Died"]


@dataclass
class Below:
    """The base commit's side of a run.

    Attributes:
        context: of the gate.
        setup: of the stack's run.
        sources: the ops' sources below the stack, for those that have one there.
        timeout: seconds for one task.
    """

    context: GateContext
    setup: Setup
    sources: Mapping[str, OpSource]
    timeout: float
    _theirs: dict[Task, Done | Died] = field(default_factory=dict)

    @cached_property
    def _touched(self) -> Touched:
        return Touched.by(self.context)

    def is_theirs(self, task: Task, died: Died) -> bool:
        """Whether a batch that took its process down does so below the stack as well."""
        if not self._may_be_theirs(task):
            return False
        self._ask([task])
        return self._theirs[task] == died

    def compared(self, task: Task, answer: Done | Died) -> Done | Died:
        """A comparison's answer; where only the kernels below the stack took the process down, that is all it costs."""
        if not isinstance(answer, Died):
            return answer
        ((_, alone),) = run_tasks([replace(task, alone=True)], self.setup, jobs=1, timeout=self.timeout)
        if isinstance(alone, Died):
            return answer
        message = f"{task.label}: the kernels below the stack: {answer.reason}: not compared"
        return Done(findings=(Finding(message, self._source(task), rule="not-compared", fails=False),))

    def noted(self, answers: Sequence[Answered]) -> list[Answered]:
        """The answers, with what is the base's as notes."""
        failed = [task for task, answer in answers if _fails(answer)]
        self._list(failed)
        self._ask([task for task in failed if self._may_be_theirs(task)])
        return [
            (task, self._noted(task, answer, self._theirs[task])) if task in self._theirs else (task, answer)
            for task, answer in answers
        ]

    def judged(
        self, proof: OpProof, found: Sequence[Finding], tasks: Iterable[Task], *, small: Iterable[Task]
    ) -> list[Finding]:
        """What follows from all results of an op together, likewise.

        Args:
            proof: of the op.
            found: what it says of the stack's results.
            tasks: those that the results are of.
            small: some that launch every kernel of the op.
        """
        if not failing(found):
            return list(found)
        small = list(small)
        self._list(small)
        if not all(self._may_be_theirs(task) for task in small):
            return list(found)
        asked = list(tasks)
        self._ask(asked)
        results = [one for task in asked if isinstance(done := self._theirs[task], Done) for one in done.results]
        return self._as_below(found, proof.judge(results))

    def _may_be_theirs(self, task: Task) -> bool:
        """Whether the base has the same kernels for a task, behind a host function that the stack does not touch."""
        if task.op not in self.sources:
            return False
        if task.unit is None:
            return True  # that a file does not compile is judged by its lines
        touched = self._touched.but_for_hooks
        if touched.op(task.op):
            return False
        self._list([task])
        listed = self._theirs[replace(task, lists=True)]
        kernels = listed.kernels if isinstance(listed, Done) else ()
        return bool(kernels) and not any(touched.kernel(self._source(task), one) for one in kernels)

    def _list(self, tasks: Iterable[Task]) -> None:
        """Find which kernels some tasks launch, all at once: a worker takes longer to start than to list them."""
        touched = self._touched.but_for_hooks
        asked = [task for task in tasks if task.unit is not None and task.op in self.sources]
        lists = dict.fromkeys(replace(task, lists=True) for task in asked if not touched.op(task.op))
        waiting = [one for one in lists if one not in self._theirs]
        if waiting:
            self._theirs |= dict(run_tasks(waiting, self.setup, jobs=self.context.jobs, timeout=self.timeout))

    def _source(self, task: Task) -> str:
        return self.setup.sources[task.op].path

    def _ask(self, tasks: Iterable[Task]) -> None:
        waiting = [task for task in dict.fromkeys(tasks) if task not in self._theirs]
        theirs = Setup(self.sources, self.setup.cache)
        if waiting:
            self._theirs |= dict(run_tasks(waiting, theirs, jobs=self.context.jobs, timeout=self.timeout))

    def _noted(self, task: Task, ours: Done | Died, theirs: Done | Died) -> Done | Died:
        if isinstance(ours, Died):
            crash = Finding(f"{task.label}: {ours.reason}", self._source(task), rule="crash")
            return Done(findings=(as_note(crash),)) if ours == theirs else ours
        if isinstance(theirs, Died):
            return ours
        words = _exact_words if self._touched.op(task.op) else _words
        had = {_case(one): words(one) for one in theirs.results if one.problems}
        same = [one for one in ours.results if one.problems and had.get(_case(one)) == words(one)]
        kept = tuple(one for one in ours.results if one not in same)
        findings = self._as_below(ours.findings, theirs.findings)
        notes = [as_note(problem_of(task, one, self._source(task))) for one in same]
        return replace(ours, results=kept, findings=(*findings, *notes))

    def _as_below(self, ours: Sequence[Finding], theirs: Sequence[Finding]) -> list[Finding]:
        head, base = self._touched.head, self._touched.base
        return noted(ours, theirs, head=head, base=base, repeated=True)


def problem_of(task: Task, result: CaseResult, path: str) -> Finding:
    """The finding about a case that failed."""
    return Finding(
        f"{task.op}, {result.mode}, {result.dtype}: {result.problems[0]} ({result.case}, {task.run_mode})",
        path=path,
        rule="wrong-value",
        details={"problems": list(result.problems), "case": result.case, "run_mode": task.run_mode},
    )


def _fails(answer: Done | Died) -> bool:
    return isinstance(answer, Done) and (bool(failing(answer.findings)) or any(one.problems for one in answer.results))


def _case(result: CaseResult) -> tuple[str, str, str]:
    return result.mode, result.dtype, result.case


def _words(result: CaseResult) -> list[str]:
    return [same_words(one) for one in result.problems]


def _exact_words(result: CaseResult) -> list[str]:
    return list(result.problems)
