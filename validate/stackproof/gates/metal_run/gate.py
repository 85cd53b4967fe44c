"""The gate "metal-run": the kernels of the head commit run on this host, op by op, in every run mode.

The plain run has the whole matrix of each op's proof; the detectors, which are slow, have a small one that reaches
every kernel. What a run here cannot show is said in the result's limits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from patchstack.errors import PatchstackError
from patchstack.tree.git import Tree
from stackproof.engines.errors import CompileError
from stackproof.engines.metal.brought import kernels_brought
from stackproof.engines.metal.toolchain import find_toolchain
from stackproof.engines.pool.tasks import Died, run_tasks
from stackproof.gates.common.error_table import Table
from stackproof.gates.common.results import judged, merged, not_run
from stackproof.gates.metal_run.below import Below, problem_of
from stackproof.gates.metal_run.spec import PLAIN, SPEC, Options
from stackproof.gates.metal_run.worker import CALL_FAILED, Done, Setup, Task, peak_bytes
from stackproof.launches import DETAIL, Launches, looked_at, never_launched
from stackproof.model import Finding, GateContext, GateResult
from stackproof.ops import CaseResult, OpProof, proof_for
from stackproof.ops.sources import OpSource, op_sources, written_source

# A kernel that crashes everywhere would otherwise cost a new process for each unit.
_CRASHES_TO_GIVE_UP = 3
# Seconds for one unit or one compilation; a kernel that loops for ever must not hold up the rest.
_TIMEOUT = 300.0


@dataclass
class _Collected:
    """What has come in so far."""

    table: Table = field(default_factory=Table)
    findings: list[Finding] = field(default_factory=list)
    results: dict[str, list[CaseResult]] = field(default_factory=dict)
    cases: int = 0
    failed: int = 0
    peaks: dict[str, int] = field(default_factory=dict)
    counts: Launches = field(default_factory=Launches)
    brought: Mapping[str, str] = field(default_factory=dict)


def run(context: GateContext, options: Options) -> GateResult:
    """Judge the head commit's kernels.

    Raises:
        ToolchainError: there is no compiler.
    """
    find_toolchain()
    try:
        ops = options.named_ops
        proofs = [proof for op in ops if (proof := proof_for(op)) is not None]
        if not proofs:
            return not_run(SPEC, f"no proof exists for {', '.join(ops) or 'any op: the series names none'}")
        theirs = _sources_below(context, proofs)
        sources = {proof.op: _materialise(context, proof, theirs.get(proof.op)) for proof in proofs}
        brought = _brought(context, proofs)
    except PatchstackError as error:
        return _result([Finding(str(error), path=error.where, rule="not-run")], _Collected())
    unproved = [_without_proof(op) for op in ops if proof_for(op) is None]
    collected = _Collected(findings=list(unproved), brought=brought)
    tasks = list(_tasks(proofs, sources, options))
    if not any(task.unit for task in tasks):
        return not_run(SPEC, "no batch of cases matches the options")
    below = Below(context, Setup(sources, context.cache / SPEC.name), theirs, _TIMEOUT)
    answers = list(_answers(context, tasks, below, collected))
    for task, answer in below.noted(answers):
        _collect(collected, task, answer, sources[task.op])
    for proof in proofs:
        found = proof.judge(collected.results.get(proof.op, []))
        asked = [task for task, _ in answers if (task.op, task.run_mode) == (proof.op, PLAIN) and task.unit]
        small = (Task(proof.op, PLAIN, unit) for unit in proof.units(full=False))
        collected.findings += below.judged(proof, found, asked, small=small)
    crashed = any(one.rule == "crash" and one.fails for one in collected.findings)
    if options.is_whole and not crashed:  # what was given up is said already
        all_ops = len(proofs) == len(ops)
        collected.findings += never_launched(collected.counts, brought, fails=all_ops, gate=SPEC.name)
    findings = merged(collected.findings, lambda message: message.rsplit(": ", 1)[0])
    return _result(sorted(findings, key=lambda one: (one.path, one.line, one.rule)), collected)


def _answers(
    context: GateContext, tasks: Sequence[Task], below: Below, collected: _Collected
) -> Iterator[tuple[Task, Done | Died]]:
    """What comes of each task; comparisons with the kernels below the stack come last, and run apart."""
    own = [task for task in tasks if not (task.unit and task.unit.compares)]
    comparing = [task for task in tasks if task.unit and task.unit.compares]
    crashes = 0
    for done, (task, answer) in enumerate(_run(own, below), 1):
        yield task, answer
        context.progress(done, len(tasks), task.label)
        crashes += isinstance(answer, Died) and not below.is_theirs(task, answer)
        if crashes == _CRASHES_TO_GIVE_UP and done < len(own):
            collected.findings.append(_given_up(len(own) - done))
            break
    for done, (task, answer) in enumerate(_run(comparing, below), len(own) + 1):
        yield task, below.compared(task, answer)
        context.progress(done, len(tasks), task.label)


def _run(tasks: Sequence[Task], below: Below) -> Iterator[tuple[Task, Done | Died]]:
    return run_tasks(tasks, below.setup, jobs=below.context.jobs, timeout=below.timeout)


def _brought(context: GateContext, proofs: Sequence[OpProof]) -> Mapping[str, str]:
    """The kernels that the stack brings to the sources of the ops; none where their own compilation will say more."""
    head, base = (Tree.at(context.repository, commit) for commit in (context.head, context.base))
    paths = {path for proof in proofs for path in op_sources(head, proof)}
    try:
        return kernels_brought(base, head, sorted(paths), context.cache / SPEC.name)
    except CompileError:
        return {}


def _without_proof(op: str) -> Finding:
    return Finding(f"{op}: no proof exists for this op, its kernels were not run", rule="no-proof", fails=False)


def _given_up(left: int) -> Finding:
    message = f"given up after {_CRASHES_TO_GIVE_UP} crashes: {left} batches of cases were not run"
    return Finding(message, rule="not-run")


def _materialise(context: GateContext, proof: OpProof, before: OpSource | None) -> OpSource:
    source = written_source(Tree.at(context.repository, context.head), proof, context.cache)
    return replace(source, before=before if proof.compares_with_base else None)


def _sources_below(context: GateContext, proofs: Sequence[OpProof]) -> dict[str, OpSource]:
    """The ops' sources in the base, for the ops that it has them for."""
    base = Tree.at(context.repository, context.base)
    there = [proof for proof in proofs if all(base.exists(path) for path in (proof.source, *proof.headers))]
    return {proof.op: written_source(base, proof, context.cache) for proof in there}


def _tasks(proofs: Sequence[OpProof], sources: Mapping[str, OpSource], options: Options) -> Iterator[Task]:
    # Ops of one file share its library, and two processes would compile it at the same time.
    ordered = sorted(proofs, key=lambda one: one.compares_with_base)
    compiled_by = {(sources[proof.op].root, sources[proof.op].source): proof for proof in ordered}
    for run_mode in options.chosen_modes:
        for proof in compiled_by.values():
            yield Task(proof.op, run_mode)
    for run_mode in options.chosen_modes:
        full = run_mode == PLAIN and not options.small
        for proof in proofs:
            for unit in proof.units(full=full):
                if options.match in unit.label:
                    yield Task(proof.op, run_mode, unit)


def _collect(collected: _Collected, task: Task, answer: Done | Died, source: OpSource) -> None:
    if isinstance(answer, Died):
        collected.cases += task.unit.cases if task.unit else 0
        collected.failed += task.unit.cases if task.unit else 0
        collected.findings.append(Finding(f"{task.label}: {answer.reason}", path=source.path, rule="crash"))
        return
    results = [result for result in answer.results if not result.skipped]
    collected.findings += [_skipped(task, result, source) for result in answer.results if result.skipped]
    collected.table.add(task.op, task.run_mode, results)
    collected.cases += len(results)
    collected.peaks[answer.process] = answer.peak_bytes
    collected.findings += answer.findings
    collected.counts.add(answer.counts)
    if task.unit and any(finding.rule == CALL_FAILED and finding.fails for finding in answer.findings):
        collected.cases += task.unit.cases
        collected.failed += task.unit.cases
    for result in results:
        if result.problems:
            collected.failed += 1
            collected.findings.append(problem_of(task, result, source.path))
        if result.note:
            note = f"{task.op}, {result.mode}, {result.dtype}: {result.note} ({result.case})"
            collected.findings.append(Finding(note, path=source.path, rule="worse-before", fails=False))
    if task.run_mode == PLAIN:
        collected.results.setdefault(task.op, []).extend(results)


def _skipped(task: Task, result: CaseResult, source: OpSource) -> Finding:
    message = f"{task.op}: {result.skipped}: not compared"
    return Finding(message, path=source.path, rule="not-compared", fails=False)


def _result(findings: Sequence[Finding], seen: _Collected) -> GateResult:
    return judged(
        SPEC,
        cases=seen.cases,
        failed=seen.failed,
        worst_error=seen.table.worst_error,
        undecided=f"no case could be judged: {findings[0].message}" if findings and not seen.cases else "",
        findings=findings,
        details={
            **seen.table.details,
            "peak_bytes": peak_bytes() + sum(seen.peaks.values()),
            DETAIL: looked_at(seen.counts, seen.brought),
        },
    )
