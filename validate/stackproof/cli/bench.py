"""``validate-stack bench``: the gate "bench" alone, with the options that only it has, and what belongs to it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from patchstack.cli.group import require_no_options
from stackproof.cli import prove
from stackproof.cli.common_options import common_options
from stackproof.cli.gate_options import Command, options_of, with_options
from stackproof.gates.bench.script import script_text
from stackproof.gates.bench.spec import SPEC
from stackproof.report.bench_files import GATE


def bench_only(*, hidden: bool) -> Callable[[Command], Command]:
    """What gives a command the options that belong to the gate but are none of its own."""

    def decorate(command: Command) -> Command:
        script = "Print a benchmark that needs PyTorch only, and end."
        command = click.option("--print-bench-script", is_flag=True, hidden=hidden, help=script)(command)
        out = "Write the table as Markdown, and its plot, there."
        return click.option("--bench-out", metavar="FOLDER", hidden=hidden, help=out)(command)

    return decorate


@click.group("bench", invoke_without_command=True)
@common_options
@with_options(options_of([SPEC]))
@bench_only(hidden=False)
@click.pass_context
def bench(context: click.Context, /, print_bench_script: bool, **given: Any) -> None:
    """Measure what the backward passes cost: traffic on the host, or time on a GPU.

    Exit codes: those of validate-stack.
    """
    if context.invoked_subcommand is not None:
        require_no_options(context)
    elif print_bench_script:
        click.echo(script_text(), nl=False)
    else:
        sys.exit(prove.prove(prove.request_of(given, only=(GATE,))))


@bench.command("record")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
def record(files: Sequence[Path]) -> None:
    """Take the counts in FILES over into the record: after a change of the kernels that is meant.

    FILES are the bench.json of --bench-out. Only rows of the quick table and the series' own kernels are kept.
    """
    from stackproof.gates.bench.record import take_over

    take_over(files)
