"""``validate-stack``: options, subcommands, and what an error looks like."""

from __future__ import annotations

import io
import sys
import traceback
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import click

from patchstack import __version__
from patchstack.cache import cache_dir
from patchstack.cli.group import require_no_options
from patchstack.cli.sections import SectionedGroup
from patchstack.errors import PatchstackError
from patchstack.tree.git.process import GitCommandError
from stackproof.cli import prove
from stackproof.cli.apple_kernels import apple_kernels
from stackproof.cli.bench import bench, bench_only
from stackproof.cli.common_options import common_options
from stackproof.cli.gate_options import options_of, with_options
from stackproof.cli.metal_files import metal
from stackproof.cli.summary import summary
from stackproof.gates.bench.script import script_text
from stackproof.gates.table import GATES
from stackproof.report.bench_files import GATE as BENCH
from stackproof.runner.report_file import write_report_file

# Options of the subcommand; they are heard here too, and left out of the help.
_OF_BENCH = {one.name for one in options_of(GATES) if one.gates == (BENCH,)}


_SECTIONS = {
    "What to judge": ("--repo", "--reference", "--series", "--base", "--head", "--each-commit"),
    "Which gates": ("--only", "--require", "--list"),
    "Parts and options of gates": (),
    "What to print and write": (
        "--verbose",
        "--github",
        "--json",
        "--junit",
        "--html",
        "--dry-run",
        "--print-workflow",
    ),
    "Else": ("--jobs", "--no-tree-code", "--version", "--help"),
}
_EXAMPLES = {
    "validate-stack --each-commit --html report.html": "every gate on every commit, and a page to read",
    "validate-stack --only fc-window --base A --head B": "one gate, on any range of a PyTorch tree",
}


@click.group(
    cls=SectionedGroup,
    sections=_SECTIONS,
    examples=_EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
)
@common_options
@click.option("--only", metavar="GATE,..", help="Run these gates only.")
@with_options(options_of(GATES), hidden=_OF_BENCH)
@bench_only(hidden=True)
@click.option("--print-workflow", is_flag=True, help="Print a GitHub Actions workflow that spreads the gates; end.")
@click.option("--list", "list_", is_flag=True, help="List the gates and end.")
@click.version_option(__version__, prog_name="validate-stack")
@click.pass_context
def command(
    context: click.Context,
    /,
    only: str | None,
    print_bench_script: bool,
    print_workflow: bool,
    list_: bool,
    **given: Any,
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
    if print_workflow:
        click.echo(files("stackproof.cli").joinpath("workflow.yml").read_text(encoding="utf-8"), nl=False)
        return
    if print_bench_script:
        click.echo(script_text(), nl=False)
        return
    sys.exit(prove.prove(prove.request_of(given, only=prove.names(only))))


command.add_command(bench)
command.add_command(apple_kernels)
command.add_command(metal)
command.add_command(summary)


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
        told = [one.told() for one in error.each()] if isinstance(error, PatchstackError) else [str(error)]
        for text in told:
            click.echo(f"validate-stack: {' '.join(text.split())}", err=True)
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
