"""``validate-stack``: options, subcommands, and what an error looks like."""

from __future__ import annotations

import datetime
import io
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any

import click

from patchstack import __version__
from patchstack.cache import cache_dir
from patchstack.cli import options
from patchstack.cli.group import require_no_options
from patchstack.errors import PatchstackError, UsageError
from patchstack.tree.git.process import GitCommandError
from stackproof.cli import prove
from stackproof.cli.apple_kernels import apple_kernels
from stackproof.cli.metal_files import metal
from stackproof.gates.bench.script import script_text
from stackproof.report import ReportFiles
from stackproof.runner.report_file import write_report_file

# Of metal-run, whose own table needs torch.
RUN_MODES = ("plain", "detectors", "permuted threads", "fast math")


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, invoke_without_command=True)
@options.repo
@click.option(
    "--reference",
    metavar="RELEASE",
    help="A reference tree (2.11, 2.13, latest, ...); the series is applied to it first.",
)
@options.series
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
@options.tree_code
@click.option("--ops", metavar="OP,..", help="Judge these operators only (default: those of the stack's changes).")
@click.option("--match", metavar="TEXT", default="", help="Of metal-run, only batches whose name has this text.")
@click.option("--small", is_flag=True, help="Of metal-run, the small table of cases only.")
@click.option("--run-modes", metavar="MODE,..", help=f"Of metal-run, only these: {', '.join(RUN_MODES)}.")
@click.option("--kinds", metavar="KIND,..", help="Of host-run, only these kinds of scenarios (values, detectors, ...).")
@click.option("--tests", metavar="TEXT,..", help="Of test-mps, only tests whose name has one of these texts.")
@click.option("--today", type=click.DateTime(["%Y-%m-%d"]), help="Judge the FC window as of this day (UTC).")
@click.option("--dry-run", is_flag=True, help="Print the commands that gates would run, and end.")
@click.option("--verbose", "-v", is_flag=True, help="Print whole tables and every finding.")
@click.option("--github", is_flag=True, help="Print findings as GitHub workflow annotations.")
@click.option("--device", type=click.Choice(("host", "cuda", "mps")), help="Measure every row of 'bench' here.")
@click.option("--bench-out", metavar="FOLDER", help="Write the table of 'bench' as Markdown, and its plot, there.")
@click.option("--print-bench-script", is_flag=True, help="Print a benchmark that needs PyTorch only, and end.")
@click.option("--list", "list_", is_flag=True, help="List the gates and end.")
@click.version_option(__version__, prog_name="validate-stack")
@click.pass_context
def command(
    context: click.Context,
    /,
    only: str | None,
    require: str | None,
    json: str | None,
    junit: str | None,
    html: str | None,
    bench_out: str | None,
    print_bench_script: bool,
    today: datetime.datetime | None,
    ops: str | None,
    match: str,
    small: bool,
    run_modes: str | None,
    kinds: str | None,
    tests: str | None,
    list_: bool,
    **plain: Any,
) -> None:
    """Prove a commit stack, gate by gate.

    Exit codes: 0 all that ran passed, 1 a gate failed, 2 usage, 5 a required gate was not run, or no gate launched some
    kernel of the stack although gates that launch kernels were asked for, 130 interrupted.
    """
    if context.invoked_subcommand is not None:
        require_no_options(context)
        return
    if list_:
        for line in prove.gate_lines():
            click.echo(line)
        return
    if print_bench_script:
        click.echo(script_text(), nl=False)
        return
    request = prove.Request(
        only=prove.names(only),
        require=prove.names(require),
        files=ReportFiles(json, junit, html, bench_out),
        today=today.date() if today else None,
        parts=prove.Parts(
            ops=prove.listed(ops),
            match=match,
            small=small,
            run_modes=_run_modes(run_modes),
            kinds=prove.listed(kinds),
            patterns=prove.listed(tests),
        ),
        **plain,
    )
    sys.exit(prove.prove(request))


def _run_modes(text: str | None) -> tuple[str, ...]:
    """The modes in a list.

    Raises:
        UsageError: one of them does not exist.
    """
    named = prove.listed(text)
    for name in named:
        if name not in RUN_MODES:
            raise UsageError(f"no run mode '{name}'", expected=f"some of {', '.join(RUN_MODES)}")
    return named


command.add_command(apple_kernels)
command.add_command(metal)


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
        for one in error.each() if isinstance(error, PatchstackError) else (error,):
            click.echo(f"validate-stack: {' '.join(str(one).split())}", err=True)
        sys.exit(prove.EXIT_USAGE)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.ClickException as error:
        click.echo(f"validate-stack: {error.format_message()} (next: validate-stack --help)", err=True)
        sys.exit(prove.EXIT_USAGE)
    except (KeyboardInterrupt, click.Abort):
        sys.exit(prove.EXIT_INTERRUPTED)
    except BrokenPipeError:  # of --list or --dry-run
        prove.discard_output()
        sys.exit(prove.EXIT_PASSED)
    except Exception as error:
        file = write_report_file(cache_dir() / "reports", "itself", traceback.format_exc())
        click.echo(f"validate-stack: internal error: {type(error).__name__}: {error} (report: {file})", err=True)
        sys.exit(prove.EXIT_FAILED)
