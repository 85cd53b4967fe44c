"""``apply-stack``: the command line."""

from __future__ import annotations

import io
import json
import os
import platform
import sys
import time
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from patchstack import __version__
from patchstack.errors import ExitCode, PatchstackError, TreeError, UsageError
from patchstack.git import Repository
from patchstack.git.process import GitCommandError
from patchstack.planning import StackPlan, plan_stack
from patchstack.report import RunReport, as_json, lines
from patchstack.series import load_series
from patchstack.stack.execute import check_messages, write_stack
from patchstack.stack.onto import resolve_onto
from patchstack.stack.refs import check_name
from patchstack.stack.switch import Switch

_INTERRUPTED = 130  # what a shell reports for Ctrl-C


@dataclass(frozen=True)
class Request:
    """What the command line asks for."""

    onto: str
    repo: Path | None = None
    reference: str | None = None
    series: str | None = None
    branch: str | None = None
    only: tuple[str, ...] = ()
    dry_run: bool = False
    explain: bool = False
    as_json: bool = False
    format_patch: Path | None = None
    checkout: bool = False
    force: bool = False


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--onto", required=True, metavar="REF", help="Commit to build on; a local branch wins over other names.")
@click.option("--repo", type=click.Path(path_type=Path), help="PyTorch checkout (default: around the current folder).")
@click.option("--reference", metavar="2.11|2.13|2.6", help="Use a reference tree; built in the cache on first use.")
@click.option("--series", metavar="NAME", help="A series of this distribution, or a folder with series.yaml.")
@click.option("--branch", metavar="NAME", help="Branch to write (default: stack/<series>).")
@click.option("--only", multiple=True, metavar="CHANGE", help="Apply only this change; may be repeated.")
@click.option("--dry-run", is_flag=True, help="Plan and report; write nothing.")
@click.option("--explain", is_flag=True, help="Show each edit's anchor, its matches, its rung and its diff.")
@click.option("--json", "as_json_", is_flag=True, help="Report as JSON on standard output.")
@click.option("--format-patch", type=click.Path(path_type=Path), metavar="DIR", help="Also write a mailbox series.")
@click.option("--checkout", is_flag=True, help="Check the branch out in this worktree afterwards.")
@click.option("--force", is_flag=True, help="Overwrite a branch that holds other commits; the old tip is kept.")
@click.version_option(__version__, prog_name="apply-stack")
def command(
    onto: str,
    repo: Path | None,
    reference: str | None,
    series: str | None,
    branch: str | None,
    only: tuple[str, ...],
    dry_run: bool,
    explain: bool,
    as_json_: bool,
    format_patch: Path | None,
    checkout: bool,
    force: bool,
) -> None:
    """Apply a series to a PyTorch tree as a ghstack-ready commit stack.

    Exit codes: 0 applied or nothing left to apply, 2 usage or manifest, 3 conflict (nothing written), 4 not a usable
    tree, 1 internal error (with a report file).
    """
    request = Request(
        onto, repo, reference, series, branch, only, dry_run, explain, as_json_, format_patch, checkout, force
    )
    report = run(request)
    if request.as_json:
        _print([json.dumps(as_json(report, explain=explain), indent=2)])
    else:
        _print(map(_coloured, lines(report, explain=explain)))
    sys.exit(int(report.exit_code))


def run(request: Request) -> RunReport:
    """Do what the command line asks for.

    Raises:
        PatchstackError: with the exit code that belongs to it.
    """
    started = time.perf_counter()
    if request.repo and request.reference:
        raise UsageError("--repo and --reference do not go together")
    if request.dry_run and (request.format_patch or request.checkout):
        raise UsageError("--dry-run writes nothing, so it does not go with --format-patch or --checkout")
    series = load_series(request.series)
    if request.format_patch:
        from patchstack.mailbox import require_own_folder

        require_own_folder(request.format_patch)
    path, notes = _where(request)
    with Repository.open(path) as repository:
        branch = check_name(repository, f"stack/{series.name}" if request.branch is None else request.branch)
        onto = resolve_onto(repository, request.onto)
        if onto.is_branch and onto.name == branch:
            raise UsageError("the branch to write is the one to build on", where="--branch", found=branch)
        switch = Switch(repository, branch) if request.checkout else None
        if switch:
            switch.require_possible()
        plan = plan_stack(repository, series, onto.commit, only=request.only)
        report = RunReport(repository, onto, branch, plan, dry_run=request.dry_run, notes=notes)
        if not plan.blocked and plan.commits and not request.dry_run:
            report = _write(request, report, switch)
        elif plan.commits:
            _check_planned_messages(plan)
        seconds = {**plan.seconds, **(report.written.seconds if report.written else {})}
        return replace(report, seconds={**seconds, "total": time.perf_counter() - started})


def _where(request: Request) -> tuple[Path, tuple[str, ...]]:
    if not request.reference:
        return request.repo or _current_folder(), ()
    from patchstack.reference import build_reference
    from patchstack.reference.progress import for_this_terminal

    tree = build_reference(request.reference, progress=for_this_terminal())
    return tree.path, tree.notes


def _current_folder() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        problem = "the current folder does not exist any more"
        raise TreeError(problem, next_command="cd to a checkout, or --repo PATH") from None


def _write(request: Request, report: RunReport, switch: Switch | None) -> RunReport:
    repository = report.repository
    written = write_stack(
        repository,
        report.plan,
        report.branch,
        force=request.force,
        switch=switch,
        identity_may_stand_in=request.reference is not None,
    )
    report = replace(report, written=written)
    if request.format_patch:
        from patchstack.mailbox import format_patches

        files = format_patches(repository, report.plan.onto, written.tip, request.format_patch)
        report = replace(report, patches=tuple(str(file) for file in files))
    return report


def _check_planned_messages(plan: StackPlan) -> None:
    """A dry run finds bad messages too."""
    from patchstack.messages.model import Message

    check_messages(plan.series, tuple(Message(c.change.title, c.change.body) for c in plan.commits))


def _coloured(line: str) -> str:
    """Colours for a terminal; click takes them out where there is none, but does not know https://no-color.org."""
    if os.environ.get("NO_COLOR"):
        return line
    if line.startswith("conflict"):
        return click.style(line, fg="red", bold=True)
    if line.lstrip().startswith("warning:"):
        return click.style(line, fg="yellow")
    stripped = line.lstrip()
    if line.startswith("        ") and stripped.startswith(("+", "-")):
        return click.style(line, fg="green" if stripped.startswith("+") else "red")
    return line


def _print(texts: Iterable[str]) -> None:
    """Print the report; by then the work is done, and a reader that went away (``| head``) changes nothing about it."""
    try:
        for text in texts:
            click.echo(text)
    except BrokenPipeError:
        _discard_output()
    except OSError as error:
        _discard_output()
        click.echo(f"apply-stack: the work is done, but the report cannot be printed: {error}", err=True)
        sys.exit(int(ExitCode.INTERNAL))


def _discard_output() -> None:
    """What is still buffered must not fail again when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the console script."""
    wants_json = "--json" in (sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a path may have letters, or bytes, the terminal has not
    try:
        command.main(
            args=None if arguments is None else list(arguments), prog_name="apply-stack", standalone_mode=False
        )
    except PatchstackError as error:
        _complain(str(error), error.as_json(), error.exit_code, as_json=wants_json)
    except GitCommandError as error:
        unusable = TreeError("a git command failed", found=str(error), next_command="git fsck")
        _complain(str(unusable), unusable.as_json(), unusable.exit_code, as_json=wants_json)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.ClickException as error:
        problem = UsageError(error.format_message(), next_command="apply-stack --help")
        _complain(str(problem), problem.as_json(), ExitCode.USAGE, as_json=wants_json)
    except (KeyboardInterrupt, click.Abort):
        problem_text = "interrupted; the branch is as it was or complete"
        _complain(problem_text, {"problem": problem_text}, _INTERRUPTED, as_json=wants_json)
    except Exception as error:
        file = _write_report(error)
        problem_text = f"internal error: {type(error).__name__}: {error}"
        _complain(
            f"{problem_text} (report: {file})",
            {"problem": problem_text, "report": file},
            ExitCode.INTERNAL,
            as_json=wants_json,
        )


def _complain(text: str, facts: dict[str, str], code: int, *, as_json: bool) -> None:
    one_line = text.replace("\n", "\\n")
    click.echo(f"apply-stack: {one_line}", err=True)
    if as_json:
        _print([json.dumps({"error": facts, "exit_code": int(code)}, indent=2)])
    sys.exit(int(code))


def _write_report(error: Exception) -> str:
    """Where the details of an internal error went; an empty string where even that failed."""
    from patchstack.cache import cache_dir

    try:
        folder = cache_dir() / "reports"
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"apply-stack-{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}.txt"
        details = "".join(traceback.format_exception(error))
        file.write_text(
            f"apply-stack {__version__}, Python {platform.python_version()}, {platform.platform()}\n"
            f"arguments: {sys.argv[1:]}\n\n{details}"
        )
    except (OSError, TreeError):
        return "none, the cache folder cannot be written"
    return str(file)


if __name__ == "__main__":
    main()
