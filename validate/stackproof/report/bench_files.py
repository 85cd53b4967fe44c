"""The table and the plot of the gate "bench" as files: for a commit message, a pull request, a page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from stackproof.model import GateResult
from stackproof.report.json import plain
from stackproof.report.model import RunReport
from stackproof.report.svg import standalone

GATE = "bench"
_OWN_FILES = ("markdown", "plot")


def bench_files(report: RunReport) -> Iterator[tuple[str, str]]:
    """Name and text of each file: of the whole range, then of each commit with its number and the start of its id."""
    yield from _files(GATE, report.results)
    for number, commit in enumerate(report.commits, 1):
        if not report.is_whole(commit):
            yield from _files(f"{GATE}-{number}-{commit.commit[:12]}", commit.results)


def _files(name: str, results: Sequence[GateResult]) -> Iterator[tuple[str, str]]:
    for result in results:
        if result.name == GATE and result.details.get("markdown"):
            yield f"{name}.md", result.details["markdown"]
            yield f"{name}.svg", standalone(result.details["plot"])
            rest = {key: value for key, value in result.details.items() if key not in _OWN_FILES}
            yield f"{name}.json", json.dumps(plain(rest), indent=1, allow_nan=False) + "\n"
