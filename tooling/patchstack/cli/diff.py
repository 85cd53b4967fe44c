"""``apply-stack diff``: what a series gives on two trees, or before and after its working changes."""

from __future__ import annotations

import json
from pathlib import Path

import click

from patchstack.cli import options
from patchstack.cli.apply import as_reference, locate
from patchstack.cli.output import print_lines
from patchstack.cli.sections import CommandWithExamples
from patchstack.confine.policy import tree_code as allowed
from patchstack.errors import UsageError
from patchstack.series import load_series
from patchstack.tree.git import Repository


@click.command(
    "diff",
    cls=CommandWithExamples,
    examples={
        "apply-stack diff --series ../mine": "what the series gives now, beside its branch",
        "apply-stack diff v1 v2 --series ../mine": "what it gives on two commits",
    },
)
@click.argument("trees", nargs=-1, metavar="[OLD NEW]")
@options.series
@click.option("--branch", default="", metavar="NAME", help="Branch to compare with (default: stack/<series>).")
@options.repo
@options.reference
@options.tree_code
@options.as_json
def diff(
    trees: tuple[str, ...],
    series: str | None,
    branch: str,
    repo: Path | None,
    reference: str | None,
    tree_code: bool,
    as_json_: bool,
) -> None:
    """Compare the commits that a series gives on two commits; without these, its branch with what it gives now.

    Exit codes: 0 compared, 2 usage or manifest, 3 the series does not apply on one of them, 4 not a usable tree,
    1 internal error.
    """
    from patchstack.refresh import compare

    if len(trees) not in (0, 2):
        raise UsageError("one commit is nothing to compare", expected="OLD and NEW, or neither", found=" ".join(trees))
    if trees and branch:
        raise UsageError("--branch does not go with OLD and NEW")
    path, notes = locate(repo, reference)
    loaded = load_series(series)
    with allowed(allowed=tree_code), as_reference(path, reference), Repository.open(path) as repository:
        if trees:
            found = compare.compare_trees(repository, loaded, *trees)
        else:
            found = compare.compare_branch(repository, loaded, branch or f"stack/{loaded.name}")
    if as_json_:
        print_lines([json.dumps({**compare.as_json(found), "notes": list(notes)}, indent=2)])
    else:
        print_lines([*(f"note: {note}" for note in notes), *compare.lines(found)])
