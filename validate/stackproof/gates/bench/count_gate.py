"""The half of the gate that needs no GPU: counts each row of the head commit, and of the base where it has kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from patchstack.errors import PatchstackError
from stackproof.base_commit.findings import AS_BEFORE, as_note, same_words
from stackproof.engines.metal import RunMode
from stackproof.engines.pool.tasks import Died, run_tasks
from stackproof.gates.bench.count import Counted, CountTask, CountWork
from stackproof.gates.bench.count_tables import COUNTED, markdown, plot, text
from stackproof.gates.bench.counts import RowCount, as_record, findings, recorded, row_records, step_records
from stackproof.gates.bench.sources import BASE, HEAD, rows_that_fail, sources_of
from stackproof.gates.bench.spec import HOST, SPEC
from stackproof.gates.common.results import failed_early, judged, not_run
from stackproof.gates.common.touched import Touched
from stackproof.model import Finding, GateContext, GateResult
from stackproof.ops.grid_sampler.bench.rows import Row
from stackproof.ops.sources import BUILDS, OpSource, compile_error

_TIMEOUT = 300.0  # seconds for one row


def count_on_host(context: GateContext, rows: Sequence[Row]) -> GateResult:
    """Count ``rows`` on both commits and compare."""
    builds = context.cache / BUILDS
    try:
        sources = sources_of(context, rows)
    except PatchstackError as error:
        return not_run(SPEC, str(error))
    refused = compile_error(sources[HEAD], builds, RunMode.TRAFFIC)
    if refused is not None:
        below = compile_error(sources[BASE], builds, RunMode.TRAFFIC) if BASE in sources else None
        if below is not None and same_words(str(below)) == same_words(str(refused)):
            return not_run(SPEC, f"the kernels do not compile, {AS_BEFORE}: {refused}")
        finding = Finding(f"the kernels do not compile: {refused}", sources[HEAD].path, rule="compile")
        return failed_early(SPEC, finding)
    answers = _answers(context, sources, rows)
    counts, failures = _paired(rows, answers)
    if failures:
        failures = _as_below(context, failures, rows, answers)
    if not counts and not failures:
        return not_run(SPEC, "the head commit has no backward kernels that this gate knows how to launch")
    return _result(counts, failures)


def _answers(
    context: GateContext, sources: Mapping[str, OpSource], rows: Sequence[Row]
) -> dict[tuple[str, Row], Counted]:
    """By commit and row; the base commit is only asked about ops that it has kernels for."""
    tasks = [CountTask(HEAD, row) for row in rows]
    if BASE in sources:
        # Before the pool, so that not every process of it compiles the same.
        compile_error(sources[BASE], context.cache / BUILDS, RunMode.TRAFFIC)
        tasks += [CountTask(BASE, row) for row in rows]
    answers: dict[tuple[str, Row], Counted] = {}
    work = CountWork(sources, context.cache / BUILDS)
    for done, (task, answer) in enumerate(run_tasks(tasks, work, jobs=context.jobs, timeout=_TIMEOUT), 1):
        answers[task.side, task.row] = Counted(failure=answer.reason) if isinstance(answer, Died) else answer
        context.progress(done, len(tasks), task.label)
    return answers


def _paired(rows: Sequence[Row], answers: Mapping[tuple[str, Row], Counted]) -> tuple[list[RowCount], list[Finding]]:
    """What was counted of each row, and what could not be; a base commit that cannot be counted is its own affair."""
    counts: list[RowCount] = []
    failures: list[Finding] = []
    for row in rows:
        head, base = answers[HEAD, row], answers.get((BASE, row))
        if head.failure:
            details = {"traceback": head.details} if head.details else {}
            failures.append(Finding(f"{row.label}: {head.failure}", rule="not-counted", details=details))
        elif head.scheme:
            counts.append(RowCount(row, head, base if base is not None and base.scheme else None))
    return counts, failures


def _as_below(
    context: GateContext, failures: Sequence[Finding], rows: Sequence[Row], answers: Mapping[tuple[str, Row], Counted]
) -> list[Finding]:
    """The rows that could not be counted, with those as notes that the base has too and the stack does not touch."""
    touched = Touched.by(context)
    theirs = {
        same_words(f"{row.label}: {answers[BASE, row].failure}")
        for row in rows
        if (BASE, row) in answers and not touched.launches(row.op)
    }
    return [as_note(one) if same_words(one.message) in theirs else one for one in failures]


def _result(counts: Sequence[RowCount], failures: Sequence[Finding]) -> GateResult:
    found = [*failures, *findings(counts, recorded())]
    return judged(
        SPEC,
        cases=len(counts) + len(failures),
        failed=rows_that_fail(found),
        findings=found,
        details={
            "device": HOST,
            "summary": COUNTED,
            "text": text(counts) if counts else "",
            "markdown": markdown(counts) if counts else "",
            "plot": plot(counts) if counts else "",
            "rows": row_records(counts),
            "launches": step_records(counts),
            "record": as_record(counts),
        },
    )
