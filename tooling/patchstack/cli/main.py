"""``apply-stack``: the command line; every error is one sentence and an exit code."""

from __future__ import annotations

import io
import json
import os
import platform
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import click

from patchstack import __version__
from patchstack.cli import options
from patchstack.cli.apply import run
from patchstack.cli.group import LazyGroup, options_given, require_no_options
from patchstack.cli.output import coloured, print_lines
from patchstack.cli.report import as_json, lines
from patchstack.cli.request import Request
from patchstack.cli.sections import SectionedGroup
from patchstack.errors import ExitCode, PatchstackError, TreeError, UsageError
from patchstack.tree.git.process import GitCommandError

_INTERRUPTED = 130  # what a shell reports for Ctrl-C


class Subcommands(LazyGroup, SectionedGroup):
    """The subcommands of ``apply-stack``, a module each."""

    lazy: ClassVar[Mapping[str, str]] = {
        "capture": "patchstack.cli.capture:capture",
        "diff": "patchstack.cli.diff:diff",
        "drift": "patchstack.cli.drift:drift",
        "new": "patchstack.cli.new:new",
        "reference": "patchstack.cli.reference:reference",
        "refresh": "patchstack.cli.refresh:refresh",
        "resolve": "patchstack.cli.resolve:resolve",
        "submit-check": "patchstack.cli.submit_check:submit_check",
    }


_SECTIONS = {
    "What to apply": ("--series", "--only", "--replace"),
    "Where": ("--onto", "--repo", "--reference", "--branch", "--checkout"),
    "How": ("--dry-run", "--check", "--resolve", "--force", "--no-tree-code"),
    "What to print and quote": ("--explain", "--json", "--format-patch", "--results", "--bench"),
    "Else": (),
}
_EXAMPLES = {
    "apply-stack --onto main --dry-run": "what would happen in this checkout",
    "apply-stack --onto main --series ../mine": "move stack/mine to the commits of a series of yours",
}


@click.group(
    cls=Subcommands,
    sections=_SECTIONS,
    examples=_EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
)
@click.option("--onto", metavar="REF", help="Commit to build on; a local branch wins over other names.")
@options.repo
@options.reference
@options.several_series
@click.option("--branch", metavar="NAME", help="Branch to write (default: stack/<series>).")
@click.option("--only", multiple=True, metavar="CHANGE", help="Apply only this change; may be repeated.")
@click.option("--replace", multiple=True, metavar="CHANGE", help="Let this change replace what the tree has instead.")
@click.option("--dry-run", is_flag=True, help="Plan and report; write nothing.")
@click.option("--explain", is_flag=True, help="Show each edit's anchor, its matches, its rung and its diff.")
@options.as_json
@click.option("--format-patch", type=click.Path(path_type=Path), metavar="DIR", help="Also write a mailbox series.")
@click.option("--checkout", is_flag=True, help="Check the branch out in this worktree afterwards.")
@click.option("--check", is_flag=True, help="Compile the commits with validate-stack before the branch moves.")
@click.option("--force", is_flag=True, help="Overwrite a branch that holds other commits; the old tip is kept.")
@click.option("--resolve", is_flag=True, help="On a conflict, open a worktree to resolve it in.")
@click.option("--results", type=click.Path(path_type=Path), metavar="FILE", help="Quote this validate-stack --json.")
@click.option("--bench", multiple=True, metavar="[CHANGE=]FILE", help="Quote this Markdown table; may be repeated.")
@options.tree_code
@click.version_option(__version__, prog_name="apply-stack")
@click.pass_context
def command(
    context: click.Context,
    onto: str | None,
    repo: Path | None,
    reference: str | None,
    series: tuple[str, ...],
    branch: str | None,
    only: tuple[str, ...],
    replace: tuple[str, ...],
    dry_run: bool,
    explain: bool,
    as_json_: bool,
    format_patch: Path | None,
    checkout: bool,
    force: bool,
    results: Path | None,
    bench: tuple[str, ...],
    check: bool,
    tree_code: bool,
    resolve: bool,
) -> None:
    """Apply a series to a PyTorch tree as a ghstack-ready commit stack.

    Exit codes: 0 applied or nothing left to apply, 2 usage or manifest, 3 conflict (nothing written), 4 not a usable
    tree, 5 --check could not compile (nothing moved), 1 internal error (with a report file).
    """
    if context.invoked_subcommand is not None:
        require_no_options(context)
        return
    if onto is None:
        if not options_given(context):
            _say_what_it_would_do()
        raise click.MissingParameter(ctx=context, param_hint="'--onto'", param_type="option")
    request = Request(
        onto,
        repo,
        reference,
        series[0] if series else None,
        branch,
        only,
        replace,
        dry_run,
        explain,
        as_json_,
        format_patch,
        checkout,
        force,
        results,
        bench,
        check,
        tree_code,
        resolve,
        series[1:],
    )
    report = run(request)
    if request.as_json:
        print_lines([json.dumps(as_json(report, explain=explain), indent=2)])
    else:
        print_lines(map(coloured, lines(report, explain=explain)))
    sys.exit(int(report.exit_code))


def _say_what_it_would_do() -> None:
    """In a checkout with a ``main``, end with the plan for it; nothing is written."""
    try:
        report = run(Request("main", dry_run=True))
    except PatchstackError:
        return  # not in such a checkout: what is missing is said instead
    print_lines(map(coloured, lines(report, explain=False)))
    print_lines(["next: apply-stack --onto main", "all options: apply-stack --help"])
    sys.exit(int(report.exit_code))


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
        *others, last = error.each()
        for other in others:
            _say(other.told())
        _complain(last.told(), error.as_json(), error.exit_code, as_json=wants_json)
    except GitCommandError as error:
        unusable = TreeError("a git command failed", found=str(error), next_command="git fsck")
        _complain(unusable.told(), unusable.as_json(), unusable.exit_code, as_json=wants_json)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.ClickException as error:
        context = error.ctx if isinstance(error, click.UsageError) else None
        problem = UsageError(
            error.format_message(), next_command=f"{context.command_path if context else 'apply-stack'} --help"
        )
        _complain(problem.told(), problem.as_json(), ExitCode.USAGE, as_json=wants_json)
    except (KeyboardInterrupt, click.Abort):
        problem_text = "interrupted; the branch is as it was or complete"
        _complain(problem_text, PatchstackError(problem_text).as_json(), _INTERRUPTED, as_json=wants_json)
    except Exception as error:
        file = _write_report(error)
        problem_text = f"internal error: {type(error).__name__}: {error}"
        _complain(
            f"{problem_text} (report: {file})",
            {**PatchstackError(problem_text).as_json(), "report": file},
            ExitCode.INTERNAL,
            as_json=wants_json,
        )


def _say(text: str) -> None:
    one_line = text.replace("\n", "\\n")
    click.echo(f"apply-stack: {one_line}", err=True)


def _complain(text: str, facts: dict[str, Any], code: int, *, as_json: bool) -> None:
    _say(text)
    if as_json:
        print_lines([json.dumps({"error": facts, "exit_code": int(code)}, indent=2)])
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
