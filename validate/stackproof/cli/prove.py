"""``validate-stack`` without a subcommand: the gates over a commit range, and their report."""

from __future__ import annotations

import contextlib
import datetime
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import click
from rich.console import Console

from patchstack.cache import cache_dir
from patchstack.confine.policy import OPTION, tree_code
from patchstack.errors import UsageError
from patchstack.series import load_series
from patchstack.tree.git import GitCommitHash, Repository
from stackproof.cli.environment import describe_environment
from stackproof.cli.gate_options import listed, typed_words
from stackproof.gates.common.errors import MALFORMED_RULE
from stackproof.gates.spec import Spec
from stackproof.gates.table import GATES
from stackproof.model import GateResult, Verdict
from stackproof.report import CommitReport, ReportFiles, RunReport
from stackproof.report.bench_files import GATE as BENCH
from stackproof.report.github import workflow_commands
from stackproof.report.json import render as render_json
from stackproof.report.terminal import show
from stackproof.runner import Range, Stage, run_stages
from stackproof.runner.dry_run import plan_lines
from stackproof.runner.progress import watcher
from stackproof.runner.source_lines import with_sources
from stackproof.runner.target import StackCommit, Target, find_target, stack_commits
from stackproof.runner.unproved import unproved_kernels

EXIT_PASSED, EXIT_FAILED, EXIT_USAGE, EXIT_NOT_SHOWN = 0, 1, 2, 5
EXIT_INTERRUPTED = 130  # what a shell reports for Ctrl-C


@dataclass(frozen=True)
class Request:
    """What the command line asks for.

    Attributes:
        options: what was given for the options of gates, by name.
    """

    repo: Path | None = None
    reference: str | None = None
    series: str | None = None
    base: str | None = None
    head: str | None = None
    each_commit: bool = False
    only: tuple[str, ...] = ()
    require: tuple[str, ...] = ()
    files: ReportFiles = field(default_factory=ReportFiles)
    jobs: int = 2
    dry_run: bool = False
    verbose: bool = False
    github: bool = False
    tree_code: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)


def request_of(given: Mapping[str, Any], *, only: tuple[str, ...]) -> Request:
    """The request of a command.

    Args:
        given: its parameters by name.
        only: the gates that it runs; all of them if there is none.

    Raises:
        UsageError: a gate that is required does not exist.
    """
    own = {one.name for one in fields(Request)} | {"json", "junit", "html", "bench_out"}
    plain = {name: value for name, value in given.items() if name in own}
    options = {name: value for name, value in given.items() if name not in own}
    files = ReportFiles(plain.pop("json"), plain.pop("junit"), plain.pop("html"), plain.pop("bench_out"))
    required = names(plain.pop("require"))
    return Request(only=only, require=required, files=files, options=options, **plain)


def prove(request: Request) -> int:
    """Run the gates that the command line asks for, write and print the report; returns the exit code.

    Raises:
        PatchstackError: the range cannot be found, or a report cannot be written.
    """
    if request.dry_run:
        _dry_run(request)
        return EXIT_PASSED
    _require_bench(request)
    request.files.require_writable()
    report = run(request)
    try:
        request.files.write(report)
    finally:
        _print(report, request)
    return exit_code(report, request.require)


def _require_bench(request: Request) -> None:
    option = "--device" if request.options.get("device") else "--bench-out" if request.files.bench else ""
    if option and BENCH not in {spec.name for spec in selected(request.only)}:
        raise UsageError(f"{option} is for the gate '{BENCH}', which --only leaves out", next_command=f"--only {BENCH}")


def gate_lines() -> list[str]:
    """One line for each gate."""
    return [f"{spec.name:<14} {spec.summary} [{_runs(spec)}]" for spec in GATES]


def _runs(spec: Spec) -> str:
    """Whose code a gate executes, in words."""
    return f"runs {spec.runs}" if spec.runs else "runs no code of the tree"


def run(request: Request) -> RunReport:
    """Run the gates that the command line asks for; an interrupted run gives a partial report.

    Raises:
        PatchstackError: the range cannot be found.
    """
    clock, started = time.perf_counter(), datetime.datetime.now(datetime.timezone.utc)
    with tree_code(allowed=request.tree_code):
        target = _target(request)
    series = load_series(request.series)
    stacked = stack_commits(target, series)
    commits = stacked if request.each_commit else ()
    stage = Stage(target.repository.root, selected(request.only), cache_dir(), request.jobs, request.tree_code)
    trees = {name: target.repository.commit(name).tree for name in _names_of(target, commits)}
    target.repository.close()
    with _terminations_interrupt(), watcher() as observer:
        outcome = run_stages(stage, _ranges(target, commits, request, stacked), observer)
    per_commit = [
        CommitReport(commit.commit, commit.base, commit.title, results, trees[commit.commit], trees[commit.base])
        for commit, results in zip(commits, outcome.results, strict=False)
    ]
    report = RunReport(
        str(target.repository.root),
        target.base,
        target.head,
        outcome.results[-1],
        per_commit,
        partial=outcome.interrupted,
        started=started,
        seconds=time.perf_counter() - clock,
        environment=describe_environment(),
        base_tree=trees[target.base],
        head_tree=trees[target.head],
        command=typed(request),
        series=series.name,
        not_asked=tuple(spec.name for spec in GATES if spec not in selected(request.only)),
    )
    report = with_sources(report)
    return replace(report, unproved=_unproved(report), required_not_run=_required_not_run(report, request))


def _unproved(report: RunReport) -> dict[tuple[str, str], tuple[str, ...]]:
    """Of each range the kernels that nothing looked at; an interrupted run says nothing of them."""
    if report.partial:
        return {}
    with Repository.open(Path(report.repository)) as repository:
        found = {
            (base, head): unproved_kernels(
                repository, GitCommitHash(base), GitCommitHash(head), results, cache_dir() / "kernels"
            )
            for _heading, base, head, results in report.ranges()
        }
    return {range_: kernels for range_, kernels in found.items() if kernels}


def _required_not_run(report: RunReport, request: Request) -> tuple[str, ...]:
    """Each required gate that did not run, why, and what to type where it was not even selected."""
    found = []
    for gate in dict.fromkeys(request.require):
        if request.only and gate not in request.only:
            wanted = ",".join((*request.only, gate))
            found.append(f"{gate}: not selected, --only leaves it out (next: the same command with --only {wanted})")
            continue
        for heading, results in report.parts():
            reasons = [one.reason for one in results if one.name == gate and one.verdict is Verdict.NOT_RUN]
            found += [f"{gate}{f' ({heading})' if heading else ''}: {reason}" for reason in reasons]
    return tuple(found)


def typed(request: Request) -> str:
    """The command as another person would type it: without paths, and without what changes no result."""
    only_bench = request.only == (BENCH,)
    words = ["validate-stack", *(["bench"] if only_bench else [])]
    if request.reference:
        words += ["--reference", request.reference]
    if request.series and "/" not in request.series:
        words += ["--series", request.series]
    if not request.tree_code:
        words.append(OPTION)
    if request.each_commit:
        words.append("--each-commit")
    for option, names in (("--only", () if only_bench else request.only), ("--require", request.require)):
        words += [option, ",".join(names)] if names else []
    return " ".join([*words, *typed_words(selected(request.only), request.options)])


def _names_of(target: Target, commits: Sequence[StackCommit]) -> set[GitCommitHash]:
    return {target.base, target.head, *(name for commit in commits for name in (commit.commit, commit.base))}


def exit_code(report: RunReport, required: Sequence[str]) -> int:
    """Of a report, from its verdicts.

    A required gate has to have run on every commit that was judged, and a kernel that the stack brings has to have been
    launched where gates that launch kernels were asked for.
    """
    if report.partial:
        return EXIT_INTERRUPTED
    results = [result for _, results in report.parts() for result in results]
    if any(finding.rule == MALFORMED_RULE for result in results for finding in result.findings):
        return EXIT_USAGE  # the tree is not what a gate can judge, which says nothing about the stack
    if report.verdict is Verdict.FAILED:
        return EXIT_FAILED
    missing = any(set(required) - _ran(results) for _, results in report.parts())
    return EXIT_NOT_SHOWN if missing or report.unproved else EXIT_PASSED


def selected(only: Sequence[str]) -> tuple[Spec, ...]:
    """The gates named, in the order of the report; all of them if none is."""
    return tuple(spec for spec in GATES if not only or spec.name in only)


def _ran(results: Sequence[GateResult]) -> set[str]:
    return {result.name for result in results if result.verdict is not Verdict.NOT_RUN}


def names(text: str | None) -> tuple[str, ...]:
    """The gates in a comma-separated list.

    Raises:
        UsageError: one of them does not exist.
    """
    named = listed(text)
    known = [spec.name for spec in GATES]
    for name in named:
        if name not in known:
            raise UsageError(
                f"no gate '{name}'", expected=f"one of {', '.join(known)}", next_command="validate-stack --list"
            )
    return named


def _target(request: Request) -> Target:
    return find_target(
        repo=request.repo, reference=request.reference, base=request.base, head=request.head, series=request.series
    )


def _given(request: Request, ops: Sequence[str]) -> dict[str, Any]:
    """What there is for the options of gates: what was asked for, and the operators of the changes otherwise.

    Args:
        request: of the command line.
        ops: of the changes that the commits have, where their titles tell: the series may have others, for other trees.
    """
    # Gates run elsewhere than where the command was typed.
    series = os.path.abspath(request.series) if request.series and os.path.isdir(request.series) else request.series
    asked = {name: value for name, value in request.options.items() if value}
    return {"ops": tuple(ops), **asked, "series": series, "each_commit": request.each_commit}


def _ranges(
    target: Target, commits: Sequence[StackCommit], request: Request, stacked: Sequence[StackCommit]
) -> list[Range]:
    """Every commit's range, then the whole; of each commit its own operators, where the command line names none."""
    each = [Range(one.base, one.commit, one.title, _given(request, one.ops)) for one in commits]
    return [*each, Range(target.base, target.head, "", _given(request, _ops_of(stacked)))]


def _ops_of(stacked: Sequence[StackCommit]) -> Sequence[str]:
    return stacked[-1].ops if stacked else ()


def _dry_run(request: Request) -> None:
    target = _target(request)
    given = _given(request, _ops_of(stack_commits(target, load_series(request.series))))
    for line in plan_lines(selected(request.only), target, cache_dir(), request.jobs, given):
        click.echo(line)


def _print(report: RunReport, request: Request) -> None:
    """Print the report; by then the work is done, and a reader that went away (``| head``) changes nothing about it."""
    try:
        _print_parts(report, request)
        sys.stdout.flush()
    except BrokenPipeError:
        discard_output()


def _print_parts(report: RunReport, request: Request) -> None:
    if request.github:
        annotations = [line for _, results in report.parts() for line in workflow_commands(results)]
        for line in dict.fromkeys(annotations):
            click.echo(line)
    if request.files.json_on_output:
        click.echo(render_json(report), nl=False)
    else:
        show(report, Console(file=sys.stdout), verbose=request.verbose)
    if report.partial:
        click.echo("validate-stack: interrupted; the report is partial", err=True)


@contextlib.contextmanager
def _terminations_interrupt() -> Iterator[None]:
    """SIGTERM and SIGHUP end a run as Ctrl-C does: no process left behind, and a partial report.

    What is ignored stays ignored: under ``nohup`` a run outlives its terminal.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    numbers = [one for one in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(one) is not signal.SIG_IGN]
    before = [signal.signal(number, interrupt) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def discard_output() -> None:
    """What is still buffered must not fail again when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
