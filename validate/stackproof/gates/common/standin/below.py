"""What the host functions and kernels below the stack do in the scenarios that fail: their failures become notes.

A failure names the kernel behind it, or is one of the scenario's op. The base is asked only about those of which the
stack touches neither the kernel nor the host functions that launch it; where it only put statements into such a
function, the base's failure has to be the same to the last number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from patchstack.errors import PatchstackError
from stackproof.base_commit.findings import as_note, noted, same_words
from stackproof.engines.standin.build import DeviceBuild, build_device
from stackproof.engines.standin.stack import HostStack
from stackproof.gates.common.standin.outcomes import Crash, Outcome, run_scenarios
from stackproof.gates.common.standin.worker import Ran
from stackproof.gates.common.touched import Touched
from stackproof.model import Finding, GateContext
from stackproof.ops.scenarios import BAD_ARGUMENTS, HostCase, HostProof, Scenario, host_proof_for

_WORD = re.compile(r"\w+")


@dataclass
class BelowHost:
    """The base commit's side of a run on the stand-in device.

    Attributes:
        context: of the gate.
        stack: the host side of the stack.
        proof_of: what an op's scenarios are run by.
    """

    context: GateContext
    stack: HostStack
    proof_of: Callable[[str], HostProof | None] = host_proof_for
    _kernels: dict[tuple[str, bool], bool] = field(default_factory=dict)
    _dispatched: list[Finding] = field(default_factory=list)

    @cached_property
    def touched(self) -> Touched:
        return Touched.by(self.context)

    @cached_property
    def build(self) -> DeviceBuild | None:
        """The stand-in device with the host files of the base; ``None`` where it cannot be had."""
        if self.stack.base is None:
            return None
        below = HostStack.of(self.stack.base, [file.path for file in self.stack.files])
        try:
            return build_device(below, self.context.cache / "host-run", jobs=self.context.jobs) if below.ops else None
        except PatchstackError:
            return None

    def touches(self, text: str, op: str, *, hooks_touch: bool = True) -> bool:
        """Whether the stack touches what is behind a text: the kernels that it names, or else an op."""
        named = self._kernels_in(text)
        if named:
            return any(self._touches_kernel(one, hooks_touch) for one in named)
        return self._by(hooks_touch).op(op)

    def names_kernel(self, text: str) -> bool:
        """Whether a text names a kernel of the stack's sources."""
        return bool(self._kernels_in(text))

    def told(self, findings: Sequence[Finding]) -> list[Finding]:
        """Findings about dispatches that ran all the same: of kernels that the stack does not touch they are notes."""
        return [
            as_note(one) if one.fails and one.details.get("ran") and not self.touches(one.message, "") else one
            for one in findings
        ]

    def noted(self, outcomes: Sequence[tuple[Scenario, Outcome]]) -> list[tuple[Scenario, Outcome]]:
        """The outcomes, with what is the base's as notes."""
        outcomes = [(scenario, _with(outcome, self.told)) for scenario, outcome in outcomes]
        asked = [scenario for scenario, outcome in outcomes if self._may_be_theirs(scenario, outcome)]
        if not asked or self.build is None:
            return outcomes
        theirs = dict(run_scenarios(asked, self.build, self.context.jobs, proof_of=self.proof_of))
        self._dispatched = [
            finding
            for outcome in theirs.values()
            for finding in (outcome.ran.findings if outcome.ran else ())
            if finding.details.get("ran")
        ]
        return [
            (scenario, self._noted(scenario, outcome, theirs[scenario])) if scenario in theirs else (scenario, outcome)
            for scenario, outcome in outcomes
        ]

    def _kernels_in(self, text: str) -> list[str]:
        paths = self.stack.kernel_sources
        return [word for word in _WORD.findall(text) if any(self.touched.has_kernel(path, word) for path in paths)]

    def _by(self, hooks_touch: bool) -> Touched:
        return self.touched if hooks_touch else self.touched.but_for_hooks

    def _touches_kernel(self, name: str, hooks_touch: bool) -> bool:
        if (name, hooks_touch) not in self._kernels:
            sources = [path for path in self.stack.kernel_sources if self.touched.has_kernel(path, name)]
            self._kernels[name, hooks_touch] = any(self._by(hooks_touch).kernel(path, name) for path in sources)
        return self._kernels[name, hooks_touch]

    def _may_be_theirs(self, scenario: Scenario, outcome: Outcome) -> bool:
        ran = outcome.ran or Ran((), (), 0, 0.0)
        texts = [
            *(str(crash) for crash in outcome.crashes),
            *(problem for case in ran.cases for problem in case.problems),
            *(finding.message for finding in ran.findings if finding.fails),
        ]
        refuses = scenario.kind == BAD_ARGUMENTS and bool(texts)
        return refuses or any(not self.touches(text, scenario.op, hooks_touch=False) for text in texts)

    def _noted(self, scenario: Scenario, ours: Outcome, theirs: Outcome) -> Outcome:
        crashes = [crash for crash in ours.crashes if self._is_theirs(scenario, str(crash), crash in theirs.crashes)]
        notes = [as_note(crash_of(scenario, crash)) for crash in crashes]
        kept = tuple(crash for crash in ours.crashes if crash not in crashes)
        if ours.ran is None:
            ran = Ran((), tuple(notes), 0, 0.0) if notes and not kept else None
            return Outcome(ran, kept)
        below = theirs.ran or Ran((), (), 0, 0.0)
        had = {case.name: case.problems for case in below.cases if case.problems}
        same = [case for case in ours.ran.cases if case.problems and self._has(scenario, case, had.get(case.name, ()))]
        findings: Sequence[Finding] = ours.ran.findings
        # Behind a hook a value has to be the same to the last number. Where a buffer begins is no value, and the base
        # may have shown it in another scenario.
        for had_it, touches, exact in (
            (below.findings, partial(self._touches_place, scenario.op, True), False),
            (below.findings, partial(self._touches_place, scenario.op, False), True),
            (self._dispatched, partial(self._touches_place, scenario.op, False), False),
        ):
            findings = noted(
                findings,
                had_it,
                head=self.touched.head,
                base=self.touched.base,
                touched=touches,
                repeated=True,
                exact=exact,
            )
        notes += [as_note(case_of(scenario, case, len(ours.ran.cases))) for case in same]
        cases = tuple(case for case in ours.ran.cases if case not in same)
        return Outcome(replace(ours.ran, cases=cases, findings=(*findings, *notes)), kept)

    def _touches_place(self, op: str, hooks_touch: bool, finding: Finding) -> bool:
        return self.touches(finding.message, op, hooks_touch=hooks_touch)

    def _has(self, scenario: Scenario, case: HostCase, base: Sequence[str]) -> bool:
        """Whether the problems of a case are those that the base has with it.

        Which error an op raises is the tree's choice: a stack that touches the op keeps it.
        """
        if scenario.kind == BAD_ARGUMENTS and list(case.problems) == list(base):
            return True
        text = " ".join(case.problems)
        alike = list(map(same_words, case.problems)) == list(map(same_words, base))
        return self._is_theirs(scenario, text, alike, hooks_touch=True) or self._is_theirs(
            scenario, text, list(case.problems) == list(base)
        )

    def _is_theirs(self, scenario: Scenario, text: str, base_has_it: bool, *, hooks_touch: bool = False) -> bool:
        return base_has_it and not self.touches(text, scenario.op, hooks_touch=hooks_touch)


def crash_of(scenario: Scenario, crash: Crash) -> Finding:
    """The finding about a process that was taken down."""
    return Finding(f"{scenario.label}: {crash}", rule="crash")


def case_of(scenario: Scenario, case: HostCase, cases: int, failed: int = 1) -> Finding:
    """The finding about the first of the cases of a scenario that failed."""
    more = f", and {failed - 1} more of {cases}" if failed > 1 else ""
    message = f"{scenario.kind} of {scenario.op}: {case.name}: {case.problems[0]}{more}"
    return Finding(message, rule="wrong-value" if case.error is not None else "behaviour")


def _with(outcome: Outcome, told: Callable[[Sequence[Finding]], list[Finding]]) -> Outcome:
    if outcome.ran is None:
        return outcome
    return replace(outcome, ran=replace(outcome.ran, findings=tuple(told(outcome.ran.findings))))
