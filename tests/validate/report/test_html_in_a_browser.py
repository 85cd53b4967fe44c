"""The HTML report in a real browser: nothing goes wrong in it, and a phone shows it without scrolling sideways."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from browser import rendered
from stackproof.model import Finding, GateResult, Verdict
from stackproof.report import RunReport
from stackproof.report.html import render
from stackproof.report.svg import Bar, bar_plot

PHONE, DESK = 390, 1280
_LONG = "aten/src/ATen/native/mps/kernels/" + "AVeryLongNameOfAFileWithoutAnyPlaceToBreakIt" * 3 + ".metal"


@pytest.fixture
def wide(report: RunReport) -> RunReport:
    """The same run with what is wide: a long path and name, a plot of times, gates that nobody asked for."""
    plot = bar_plot([Bar("bilinear float32 (16,128,256,256)", {"traffic": 2.5, "time": 0.5})], "beside upstream")
    bench = GateResult(
        "bench",
        Verdict.FAILED,
        cases=3,
        failed=1,
        findings=[Finding(f"{_LONG} is slower than {_LONG}", _LONG, 12, "slower", details={"source": ["x" * 200]})],
        details={"plot": plot, "summary": _LONG, "table": ["a line of a table " * 20]},
        limits=[f"{_LONG} was not run"],
    )
    commits = [replace(commit, title=commit.title + _LONG) for commit in report.commits]
    return replace(
        report, results=[*report.results, bench], commits=commits, not_asked=["op-run"], environment={"folder": _LONG}
    )


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_the_page_fits_its_screen_and_the_console_stays_empty(wide: RunReport, width: int, tmp_path: Path) -> None:
    seen = rendered(render(wide), width, tmp_path)
    assert seen.asked in range(width - 20, width + 1)  # without the bar that scrolls up and down
    assert seen.needed == seen.asked
    assert seen.console == ()


def test_tables_and_the_plots_of_errors_and_of_times_fit_a_phone(report: RunReport, tmp_path: Path) -> None:
    seen = rendered(render(report), PHONE, tmp_path)
    assert set(seen.boxes) <= {"scroll:dense"}  # the numbers of the plots, folded away


def test_the_check_sees_a_page_that_is_too_wide_and_a_script_that_fails(tmp_path: Path) -> None:
    page = "<body><div style='width:500px'>wide</div><script>missing()</script></body>"
    seen = rendered(page, PHONE, tmp_path)
    assert seen.needed >= 500 > seen.asked
    assert "missing is not defined" in " ".join(seen.console)
