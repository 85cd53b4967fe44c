"""The gate's tables as files, in commit messages and in the HTML report."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from patchstack.errors import UsageError
from patchstack.messages.generated import Generated, with_generated
from patchstack.messages.model import Message
from patchstack.messages.rules import check_message
from stackproof.cli import prove
from stackproof.gates.bench.count import Counted
from stackproof.gates.bench.count_tables import markdown, plot
from stackproof.gates.bench.counts import RowCount, row_records
from stackproof.gates.bench.speed import Measured, geometric_mean, speed_markdown
from stackproof.gates.bench.timing import Timing
from stackproof.gates.bench.traffic import Step, Traffic
from stackproof.model import GateResult, Verdict
from stackproof.ops.grid_sampler.bench.rows import PR_GROUP, all_rows
from stackproof.report import CommitReport, ReportFiles, RunReport
from stackproof.report.html import render

FAST, SLOW = Timing(1.0, 0.9, 1.1), Timing(4.0, 3.9, 4.1)


def counts(*, base: bool = True) -> list[RowCount]:
    """Of every row, the head with half of the base's traffic."""
    head, before = (Counted("some way", (Step("k", Traffic(n, n, n, n, n, n, n, n)),)) for n in (500, 1000))
    return [RowCount(row, head, before if base else None) for row in all_rows()]


def speeds() -> list[Measured]:
    return [Measured(row, {"PyTorch": SLOW, "stack": FAST}) for row in all_rows()]


def result(commits: bool = False) -> GateResult:
    of = counts()
    details = {"markdown": markdown(of), "plot": plot(of), "rows": row_records(of), "summary": "Counted."}
    return GateResult("bench", Verdict.PASSED, cases=1, details=details)


def report() -> RunReport:
    commits = [CommitReport(str(n) * 40, "0" * 40, f"commit {n}", [result()], "", "") for n in (1, 2)]
    return RunReport("/some/where", "0" * 40, "9" * 40, [result()], commits)


@pytest.mark.parametrize(
    "table",
    [
        markdown(counts()),
        markdown(counts(base=False)),
        speed_markdown("Measured.", speeds(), "stack", 4.0, [PR_GROUP]),
    ],
    ids=["counted", "counted without a base", "measured"],
)
def test_the_table_can_stand_in_a_commit_message(table: str) -> None:
    message = Message("[MPS] Some change", with_generated("Prose.", Generated(benchmark=table)))
    assert [finding for finding in check_message(message) if finding.rule] == []
    assert len(table) < 30_000


def test_the_pull_requests_rows_come_one_by_one_and_the_others_summed_up() -> None:
    counted, measured = markdown(counts()), speed_markdown("", speeds(), "stack", 4.0, [PR_GROUP])
    for table in (counted, measured):
        assert len(re.findall(r"^\| (?:bilinear|bicubic) \| float", table, re.MULTILINE)) == 32
    assert "| 2.00 |" in counted
    assert "**smooth grids**\n\nstack over PyTorch: geometric mean 4.00, lowest 4.00" in measured


def test_without_a_base_commit_there_is_no_column_for_it() -> None:
    assert "before" not in markdown(counts(base=False))


def test_every_report_has_its_own_files_and_the_plot_can_be_opened_alone(tmp_path: Path) -> None:
    ReportFiles(bench=str(tmp_path)).write(report())
    names = {file.name for file in tmp_path.iterdir()}
    stems = ("bench", f"bench-1-{'1' * 12}", f"bench-2-{'2' * 12}")
    assert names == {f"{stem}.{kind}" for stem in stems for kind in ("md", "svg", "json")}
    assert (tmp_path / "bench.md").read_text() == markdown(counts())
    picture = ElementTree.parse(tmp_path / "bench.svg").getroot()
    assert picture.tag == "{http://www.w3.org/2000/svg}svg"
    assert picture[0].tag == "{http://www.w3.org/2000/svg}style"
    assert len(json.loads((tmp_path / "bench.json").read_text())["rows"]) == len(all_rows())


def test_a_gate_that_was_not_run_writes_nothing(tmp_path: Path) -> None:
    nothing = GateResult("bench", Verdict.NOT_RUN, reason="no GPU")
    ReportFiles(bench=str(tmp_path)).write(RunReport("", "0" * 40, "1" * 40, [nothing]))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_found_before_the_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no such folder.*mkdir -p"):
        ReportFiles(bench=str(tmp_path / "nowhere")).require_writable()


@pytest.mark.parametrize(
    "option", [{"options": {"device": "host"}}, {"files": ReportFiles(bench=".")}], ids=["device", "files"]
)
def test_options_of_a_gate_that_is_left_out_are_refused(option: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=r"--(device|bench-out) is for the gate 'bench', which --only leaves out"):
        prove.prove(prove.Request(only=("lint",), **option))  # type: ignore[arg-type]


def test_the_html_report_shows_the_plot_and_every_row() -> None:
    page = render(report())
    assert "bytes of all sectors touched, over the bytes that must move, float32</text>" in page
    assert page.count(f"rows ({len(all_rows())})") == 3
    assert "| interpolation |" not in page


def test_a_geometric_mean_is_one_of_ratios() -> None:
    assert geometric_mean([1, 4, 16]) == pytest.approx(4)
    assert geometric_mean([]) != geometric_mean([])
