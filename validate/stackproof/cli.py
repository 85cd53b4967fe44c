"""``validate-stack``: the command line."""

from __future__ import annotations

import contextlib
import datetime
import io
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import click
from rich.console import Console

from patchstack import __version__
from patchstack.cache import cache_dir
from patchstack.errors import PatchstackError, UsageError
from patchstack.git import GitCommitHash
from patchstack.git.process import GitCommandError
from patchstack.series import load_series
from stackproof.compat.errors import MALFORMED_RULE
from stackproof.dry_run import plan_lines
from stackproof.environment import describe_environment
from stackproof.gates import GATES, GateEntry
from stackproof.github import workflow_commands
from stackproof.model import GateResult, Verdict
from stackproof.report import CommitReport, ReportFiles, RunReport
from stackproof.report.json import render as render_json
from stackproof.report.progress import watcher
from stackproof.report.terminal import show
from stackproof.runner import Range, Stage, run_stages
from stackproof.runner.report_file import write_report_file
from stackproof.target import StackCommit, Target, find_target, stack_commits

EXIT_PASSED, EXIT_FAILED, EXIT_USAGE, EXIT_REQUIRED_NOT_RUN = 0, 1, 2, 5
EXIT_INTERRUPTED = 130  # what a shell reports for Ctrl-C


@dataclass(frozen=True)
class Request:
    """What the command line asks for."""

    repo: Path | None = None
    reference: str | None = None
    series: str | None = None
    base: str | None = None
    head: str | None = None
    onto: str | None = None
    each_commit: bool = False
    only: tuple[str, ...] = ()
    require: tuple[str, ...] = ()
    files: ReportFiles = field(default_factory=ReportFiles)
    jobs: int = 2
    today: datetime.date | None = None
    dry_run: bool = False
    verbose: bool = False
    github: bool = False


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--repo", type=click.Path(path_type=Path), help="PyTorch checkout (default: around the current folder).")
@click.option("--reference", metavar="2.11|2.13|2.6", help="A reference tree; the series is applied to it first.")
@click.option("--series", metavar="NAME", help="A series of this distribution, or a folder with series.yaml.")
@click.option("--base", metavar="REF", help="Commit the stack is built on (default: where it leaves main).")
@click.option("--head", metavar="REF", help="Commit to judge (default: stack/<series>).")
@click.option("--each-commit", is_flag=True, help="Also judge every commit of the stack on its own.")
@click.option("--onto", metavar="REF", help="Branch whose history dates new schemas (default: main).")
@click.option("--only", metavar="GATE,..", help="Run these gates only.")
@click.option("--require", metavar="GATE,..", help="Exit with 5 if one of these could not be run.")
@click.option("--json", metavar="FILE", help="Write the report as JSON; '-' for standard output.")
@click.option("--junit", metavar="FILE", help="Write the report as JUnit XML.")
@click.option("--html", metavar="FILE", help="Write the report as one self-contained HTML file.")
@click.option(
    "--jobs", type=click.IntRange(min=1), default=os.cpu_count() or 2, show_default=True, help="Processes at once."
)
@click.option("--today", type=click.DateTime(["%Y-%m-%d"]), help="Judge the FC window as of this day (UTC).")
@click.option("--dry-run", is_flag=True, help="Print the commands that gates would run, and end.")
@click.option("--verbose", "-v", is_flag=True, help="Print whole tables and every finding.")
@click.option("--github", is_flag=True, help="Print findings as GitHub workflow annotations.")
@click.option("--list", "list_", is_flag=True, help="List the gates and end.")
@click.version_option(__version__, prog_name="validate-stack")
def command(
    only: str | None,
    require: str | None,
    json: str | None,
    junit: str | None,
    html: str | None,
    today: datetime.datetime | None,
    list_: bool,
    **plain: Any,
) -> None:
    """Prove a commit stack, gate by gate.

    Exit codes: 0 all that ran passed, 1 a gate failed, 2 usage, 5 a required gate was not run, 130 interrupted.
    """
    if list_:
        for entry in GATES:
            click.echo(f"{entry.name:<14} {entry.summary}{'' if entry.factory else ' (not in this version)'}")
        return
    request = Request(
        only=_names(only),
        require=_names(require),
        files=ReportFiles(json, junit, html),
        today=today.date() if today else None,
        **plain,
    )
    if request.dry_run:
        _dry_run(request)
        return
    request.files.require_writable()
    report = run(request)
    try:
        request.files.write(report)
    finally:
        _print(report, request)
    sys.exit(exit_code(report, request.require))


def run(request: Request) -> RunReport:
    """Run the gates that the command line asks for; an interrupted run gives a partial report.

    Raises:
        PatchstackError: the range cannot be found.
    """
    clock, started = time.perf_counter(), datetime.datetime.now(datetime.timezone.utc)
    target = _target(request)
    commits = stack_commits(target, load_series(request.series)) if request.each_commit else ()
    stage = Stage(target.repository.root, selected(request.only), cache_dir(), request.jobs)
    trees = {name: target.repository.commit(name).tree for name in _names_of(target, commits)}
    target.repository.close()
    with _terminations_interrupt(), watcher() as observer:
        outcome = run_stages(stage, _ranges(target, commits, _options(request)), observer)
    per_commit = [
        CommitReport(commit.commit, commit.base, commit.title, results, trees[commit.commit], trees[commit.base])
        for commit, results in zip(commits, outcome.results, strict=False)
    ]
    return RunReport(
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
    )


def typed(request: Request) -> str:
    """The command as another person would type it: without paths, and without what changes no result."""
    words = ["validate-stack"]
    if request.reference:
        words += ["--reference", request.reference]
    if request.series and "/" not in request.series:
        words += ["--series", request.series]
    if request.each_commit:
        words.append("--each-commit")
    for option, names in (("--only", request.only), ("--require", request.require)):
        words += [option, ",".join(names)] if names else []
    return " ".join([*words, *(["--today", str(request.today)] if request.today else [])])


def _names_of(target: Target, commits: Sequence[StackCommit]) -> set[GitCommitHash]:
    return {target.base, target.head, *(name for commit in commits for name in (commit.commit, commit.base))}


def exit_code(report: RunReport, required: Sequence[str]) -> int:
    """Of a report, from its verdicts; a required gate has to have run on every commit that was judged."""
    if report.partial:
        return EXIT_INTERRUPTED
    results = [result for _, results in report.parts() for result in results]
    if any(finding.rule == MALFORMED_RULE for result in results for finding in result.findings):
        return EXIT_USAGE  # the tree is not what a gate can judge, which says nothing about the stack
    if report.verdict is Verdict.FAILED:
        return EXIT_FAILED
    missing = any(set(required) - _ran(results) for _, results in report.parts())
    return EXIT_REQUIRED_NOT_RUN if missing else EXIT_PASSED


def selected(only: Sequence[str]) -> tuple[GateEntry, ...]:
    """The gates named, in the order of the report; all of them if none is."""
    return tuple(entry for entry in GATES if not only or entry.name in only)


def _ran(results: Sequence[GateResult]) -> set[str]:
    return {result.name for result in results if result.verdict is not Verdict.NOT_RUN}


def _names(text: str | None) -> tuple[str, ...]:
    names = tuple(name.strip() for name in (text or "").split(",") if name.strip())
    known = [entry.name for entry in GATES]
    for name in names:
        if name not in known:
            raise UsageError(
                f"no gate '{name}'", expected=f"one of {', '.join(known)}", next_command="validate-stack --list"
            )
    return names


def _target(request: Request) -> Target:
    return find_target(
        repo=request.repo, reference=request.reference, base=request.base, head=request.head, series=request.series
    )


def _options(request: Request) -> dict[str, Any]:
    """A gate that finds a key missing uses its own default, so only what was asked for is passed on."""
    asked = {"series": request.series, "onto": request.onto, "today": request.today}
    return {"github": request.github} | {name: value for name, value in asked.items() if value}


def _ranges(target: Target, commits: Sequence[StackCommit], options: dict[str, Any]) -> list[Range]:
    """Every commit's range, then the whole."""
    of_commits = [
        Range(commit.base, commit.commit, commit.title, options | ({"ops": commit.ops} if commit.ops else {}))
        for commit in commits
    ]
    return [*of_commits, Range(target.base, target.head, "", options)]


def _dry_run(request: Request) -> None:
    target = _target(request)
    options = _options(request)
    for line in plan_lines(selected(request.only), target, cache_dir(), request.jobs, options):
        click.echo(line)


def _print(report: RunReport, request: Request) -> None:
    """Print the report; by then the work is done, and a reader that went away (``| head``) changes nothing about it."""
    try:
        _print_parts(report, request)
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()


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
    """SIGTERM and SIGHUP end a run as Ctrl-C does: no process left behind, and a partial report."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, interrupt) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the console script."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a message may have letters that the terminal has not
    try:
        command.main(
            args=None if arguments is None else list(arguments), prog_name="validate-stack", standalone_mode=False
        )
    except (PatchstackError, GitCommandError) as error:
        click.echo(f"validate-stack: {' '.join(str(error).split())}", err=True)
        sys.exit(EXIT_USAGE)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.ClickException as error:
        click.echo(f"validate-stack: {error.format_message()} (next: validate-stack --help)", err=True)
        sys.exit(EXIT_USAGE)
    except (KeyboardInterrupt, click.Abort):
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:  # of --list or --dry-run
        _discard_output()
        sys.exit(EXIT_PASSED)
    except Exception as error:
        file = write_report_file(cache_dir() / "reports", "itself", traceback.format_exc())
        click.echo(f"validate-stack: internal error: {type(error).__name__}: {error} (report: {file})", err=True)
        sys.exit(EXIT_FAILED)


def _discard_output() -> None:
    """What is still buffered must not fail again when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
