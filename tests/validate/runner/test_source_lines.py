"""Findings carry the lines of the tree that they are about."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from kernel_trees import commit
from stackproof.model import Finding, GateResult, Verdict
from stackproof.report import RunReport
from stackproof.report.html import render
from stackproof.runner.source_lines import SOURCE, with_sources

TEXT = "kernel void k() {\n  int x = lost;\n}\n"


@pytest.fixture
def report(tmp_path: Path) -> RunReport:
    (tmp_path / "a.metal").write_text(TEXT)
    head = commit(tmp_path, "a kernel")
    places = [("a.metal", 2), ("a.metal", 1), ("a.metal", 9), ("gone.metal", 1), ("", 0), ("a.metal", 0)]
    findings = [Finding("no such name", path, line, "compile") for path, line in places]
    started = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
    results = [GateResult("metal-check", Verdict.FAILED, cases=1, failed=1, findings=findings)]
    return RunReport(str(tmp_path), head, head, results, started=started, series="mine")


def test_a_finding_with_a_place_has_its_line_and_those_around(report: RunReport) -> None:
    found = with_sources(report).results[0].findings
    assert [one.details.get(SOURCE) for one in found] == [
        ["     1 kernel void k() {", ">    2   int x = lost;", "     3 }"],
        [">    1 kernel void k() {", "     2   int x = lost;"],
        None,
        None,
        None,
        None,
    ]


def test_the_page_shows_them_and_names_the_series(report: RunReport) -> None:
    page = render(with_sources(report))
    assert "&gt;    2   int x = lost;" in page
    assert "<dt>series</dt><dd>mine</dd>" in page
