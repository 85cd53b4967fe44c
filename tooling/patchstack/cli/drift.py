"""``apply-stack drift``: which upstream commit broke the series, or landed a part of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import click

from patchstack.cli import options
from patchstack.cli.apply import as_reference, locate
from patchstack.cli.output import coloured, print_lines
from patchstack.cli.sections import CommandWithExamples
from patchstack.drift import DEFAULT_VISITS, Drift, find_drift
from patchstack.drift import report as reporting
from patchstack.drift.line import resolve
from patchstack.errors import UsageError
from patchstack.reference.progress import for_this_terminal
from patchstack.series import load_series
from patchstack.tree.git import Repository


@dataclass(frozen=True)
class DriftRequest:
    """What the command line asks to be searched for, and where the findings go."""

    since: str
    onto: str
    repo: Path | None = None
    reference: str | None = None
    series: str | None = None
    visits: int = DEFAULT_VISITS
    reports: Path | None = None


@click.command(
    "drift",
    cls=CommandWithExamples,
    examples={
        "apply-stack drift --since REF --onto main": "which commit since REF broke an anchor",
        "apply-stack drift --print-workflow": "a workflow that looks every night",
    },
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option("--since", metavar="REF", help="Commit that the series is known to apply to; keep it from run to run.")
@click.option("--onto", metavar="REF", help="Commit of today; a local branch wins over other names.")
@options.repo
@options.reference
@options.series
@click.option(
    "--visits",
    type=click.IntRange(min=2),
    default=DEFAULT_VISITS,
    show_default=True,
    help="Trees to plan on before settling for what bisection found.",
)
@options.as_json
@click.option("--github", is_flag=True, help="Also print findings as GitHub workflow annotations.")
@click.option("--reports", type=click.Path(path_type=Path), metavar="DIR", help="Write one Markdown file per finding.")
@click.option("--print-workflow", is_flag=True, help="Print a GitHub Actions workflow that runs this nightly.")
def drift(
    since: str | None,
    onto: str | None,
    repo: Path | None,
    reference: str | None,
    series: str | None,
    visits: int,
    as_json_: bool,
    github: bool,
    reports: Path | None,
    print_workflow: bool,
) -> None:
    """Find the upstream commits that broke an anchor of the series, or changed how much of it upstream has.

    Reads the history between two commits of the checkout; fetches nothing, and writes nothing there.

    Exit codes: 0 nothing drifted, 3 a change needs a person, 2 usage or manifest, 4 the history or the tree cannot be
    used, 1 internal error (with a report file).
    """
    if print_workflow:
        print_lines([files("patchstack.drift").joinpath("workflow.yml").read_text(encoding="utf-8").rstrip("\n")])
        return
    if since is None or onto is None:
        raise click.MissingParameter(param_hint="'--since'" if since is None else "'--onto'", param_type="option")
    if github and as_json_:
        raise UsageError("--github and --json do not go together", next_command="apply-stack drift --help")
    found, notes = run(DriftRequest(since, onto, repo, reference, series, visits, reports))
    _print(found, notes, as_json=as_json_, github=github)
    sys.exit(int(found.exit_code))


def run(request: DriftRequest) -> tuple[Drift, tuple[str, ...]]:
    """Search as the command line asks for, and write the reports; what was found, and notes about the tree.

    Raises:
        PatchstackError: with the exit code that belongs to it.
    """
    series = load_series(request.series)
    if request.reports:
        reporting.require_empty(request.reports)
    path, notes = locate(request.repo, request.reference)
    with as_reference(path, request.reference), Repository.open(path) as repository:
        since = resolve(repository, "--since", request.since)
        onto = resolve(repository, "--onto", request.onto)
        found = find_drift(repository, series, since, onto, visits=request.visits, on_visit=_progress(request.visits))
    if request.reports:
        reporting.write_reports(found, request.reports)
    return found, notes


def _print(found: Drift, notes: tuple[str, ...], *, as_json: bool, github: bool) -> None:
    if as_json:
        print_lines([json.dumps({**reporting.as_json(found), "notes": [*notes, *found.notes]}, indent=2)])
        return
    print_lines([*(f"note: {note}" for note in notes), *map(coloured, reporting.lines(found))])
    if github:
        print_lines(reporting.workflow_annotations(found))


def _progress(visits: int) -> Callable[[int], None]:
    say = for_this_terminal()
    return lambda count: say(f"planning on tree {count}, of about {visits} at most")
