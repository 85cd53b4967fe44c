"""The HTML report: one file, well formed, with nothing loaded, and each limit next to its result."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser

import pytest

from stackproof.model import Finding, GateResult, Verdict
from stackproof.report import RunReport
from stackproof.report.html import render
from stackproof.report.svg import LogScale

_VOID = {"meta", "br", "hr", "img", "input", "link"}


class Reader(HTMLParser):
    """Checks nesting, and collects ids, links, elements, and the text of each table row."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.rows: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        facts = dict(attributes)
        self.attributes |= set(facts)
        if facts.get("id"):
            self.ids.append(str(facts["id"]))
        if facts.get("href"):
            self.links.append(str(facts["href"]))
        if tag == "tr":
            self.rows.append("")
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "tr" in self.open:
            self.rows[-1] += data


def test_the_page_is_well_formed_and_its_links_lead_somewhere(report: RunReport) -> None:
    page = Reader(render(report))
    assert len(set(page.ids)) == len(page.ids)
    assert page.links
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)


def test_the_page_loads_and_runs_nothing(report: RunReport) -> None:
    text = render(report)
    page = Reader(text)
    assert page.tags.isdisjoint({"script", "link", "img", "iframe", "object", "embed", "base"})
    assert page.attributes.isdisjoint({"src", "srcset", "onclick", "onload", "action", "xlink:href"})
    assert all(link.startswith("#") for link in page.links)
    assert not re.search(r"url\(|@import|https?:", text)


def test_text_from_gates_cannot_become_markup(report: RunReport) -> None:
    text = render(report)
    assert "off by &lt;130&gt; &amp;" in text
    assert "<another>" not in text
    assert "<any>" not in text


@pytest.mark.parametrize("hostile", ['"><script>alert(1)</script>', "' onload='x", "{{ 7 * 7 }}{% raw %}", "&lt;b&gt;"])
def test_hostile_text_is_shown_as_it_is_wherever_it_stands(report: RunReport, hostile: str) -> None:
    records = [{hostile: hostile}]
    details = {"summary": hostile, "text": hostile, hostile: records, "rest": hostile}
    finding = Finding(hostile, hostile, 1, hostile)
    result = GateResult(hostile, Verdict.FAILED, reason=hostile, findings=[finding], details=details, limits=[hostile])
    commits = [replace(commit, title=hostile, results=[result]) for commit in report.commits]
    text = render(
        replace(report, results=[result], commits=commits, environment={hostile: hostile}, required_not_run=[hostile])
    )
    page = Reader(text)
    assert page.tags.isdisjoint({"script", "b"})
    assert "onload" not in page.attributes
    assert "49" not in text.replace(hostile, "")
    assert unescape(text).count(hostile) > 20


def test_limits_and_reasons_stand_in_the_row_of_their_result(report: RunReport) -> None:
    rows = Reader(render(report)).rows
    metal_run = next(row for row in rows if row.startswith("metal-run"))
    build = next(row for row in rows if row.startswith("build"))
    assert "Not shown by this:Apple's compiler was not run." in metal_run
    assert "needs macOS & Xcode" in build
    assert "nothing was built" not in build  # what was not run has nothing to be qualified


def test_there_is_a_plot_of_times_and_one_of_errors_for_each_way_of_running(report: RunReport) -> None:
    text = render(report)
    assert text.count('aria-label="seconds of each gate"') == 1
    whole = text[: text.index("Commit 1:")]
    assert whole.count('aria-label="largest errors by mode, float32, in epsilons"') == 2
    assert whole.count('aria-label="largest errors by mode, float16, in epsilons"') == 2
    assert "worst, float16: kernel grad_grid inf" in text
    assert "best, float32: CPU grad_input 0.25" in text


def test_a_partial_report_says_so_at_the_top(report: RunReport) -> None:
    text = render(report)
    assert text.index("Partial report") < text.index("<table")


def test_the_page_has_colours_for_light_and_dark(report: RunReport) -> None:
    assert "prefers-color-scheme: dark" in render(report)


@pytest.mark.parametrize("values", [[0.5, 2.0], [0.0, math.inf, math.nan], [1e-30, 1e30], [], [3.85], [1.0]])
def test_every_value_lands_on_the_scale(values: list[float]) -> None:
    scale = LogScale.over(values, 200.0)
    places = [scale(value) for value in [*values, 1.0]]
    assert all(0.0 <= place <= 200.0 for place in places)
    assert 3 <= scale.last - scale.first <= 8


def test_larger_errors_lie_further_right() -> None:
    scale = LogScale.over([0.01, 100.0], 200.0)
    assert scale(0.0) == 0.0
    assert scale(0.1) < scale(1.0) < scale(10.0) < scale(math.inf) == 200.0


def test_lists_of_records_become_tables_and_other_details_are_folded_away(report: RunReport) -> None:
    records = [{"name": "<one>", "seconds": 0.123456, "ok": True}, {"name": "two", "seconds": 2.0, "ok": None}]
    result = GateResult(
        "g", Verdict.PASSED, cases=1, details={"scenarios": records, "summary": "In short.", "odd": [{"a": [1]}, 2]}
    )
    text = render(RunReport("r", "b", "h", [result]))
    rows = Reader(text).rows
    assert "<p>In short.</p>" in text
    assert "scenarios (2)" in text
    assert "<one>0.123yes" in rows
    assert "two2" in rows
    assert '"odd"' in unescape(text)


def test_what_was_not_run_stands_with_its_reason_and_what_to_type(report: RunReport) -> None:
    lacking = GateResult(
        "metal-check", Verdict.NOT_RUN, reason="needs the package lief (next: pip install 'lief>=0.15')"
    )
    rows = Reader(render(replace(report, results=[*report.results, lacking], not_asked=["bench"]))).rows
    alone = f"--base {'0' * 12} --head {'2' * 12}"
    assert (
        f"metal-checkneeds the package lief (the whole stack)pip install 'lief>=0.15'"
        f"validate-stack --only metal-check {alone}" in rows
    )
    assert f"benchnot asked for (the whole stack)validate-stack --only bench {alone}" in rows
    assert (
        f"buildneeds macOS & Xcode (111111111111, 222222222222, the whole stack)validate-stack --only build {alone}"
        in rows
    )


def test_where_every_gate_ran_nothing_is_said_of_what_was_not_run(report: RunReport) -> None:
    text = render(replace(report, results=[report.results[0]], commits=[]))
    assert "What was not run" not in text


def test_the_matrix_has_a_row_for_each_gate_and_a_column_for_each_commit(report: RunReport) -> None:
    rows = Reader(render(report)).rows
    assert "gatecommit 1commit 2" in rows
    assert "fc-windowpassedpassed" in [re.sub(r"\s+", "", row) for row in rows]
    assert "metal-runfailed" in [re.sub(r"\s+", "", row) for row in rows]
