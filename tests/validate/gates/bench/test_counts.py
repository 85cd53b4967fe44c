"""What is a finding: traffic that grew since the base commit or the record, and what another division may trade."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gate_contexts import options_of
from stackproof.gates.bench.count import Counted
from stackproof.gates.bench.counts import Record, RowCount, findings
from stackproof.gates.bench.spec import SPEC as BENCH
from stackproof.gates.bench.traffic import Step, Traffic
from stackproof.model import Finding
from stackproof.ops.grid_sampler.bench.rows import quick_rows

ROW = quick_rows()[0]
OURS, OTHER = "a thread per position", "divided by layout and channels"
TRAFFIC = Traffic(*[1000] * 8)


def counted(scheme: str, traffic: Traffic) -> Counted:
    """A pass of two launches."""
    return Counted(scheme, (Step("aten::zero_", Traffic()), Step("kernel", traffic)))


def found(head: Counted, base: Counted | None = None, record: Record | None = None) -> list[Finding]:
    return list(findings([RowCount(ROW, head, base)], record or {}))


def test_the_same_traffic_is_no_finding() -> None:
    same = counted(OURS, TRAFFIC)
    assert found(same, same, {OURS: {ROW.label: {"kernel": [1000] * 8}}}) == []


@pytest.mark.parametrize("name", ["atomics", "load_sectors", "loaded_bytes"])
def test_more_of_what_costs_time_fails_where_the_work_is_divided_as_before(name: str) -> None:
    more = replace(TRAFFIC, **{name: 1001})
    said = found(counted(OURS, more), counted(OURS, TRAFFIC))
    assert said
    assert all(finding.fails and "than the base commit's kernels" in finding.message for finding in said)


def test_more_loads_of_the_same_sectors_are_only_said() -> None:
    said = found(counted(OURS, replace(TRAFFIC, loads=1001)), counted(OURS, TRAFFIC))
    assert [finding.fails for finding in said] == [False]
    assert "1 more loads" in said[0].message


def test_another_division_may_trade_anything_but_atomics() -> None:
    dearer = replace(TRAFFIC, loads=2000, stores=2000, loaded_bytes=2000, load_sectors=2000)
    said = found(counted(OTHER, dearer), counted(OURS, TRAFFIC))
    assert [(finding.fails, "more sectors" in finding.message) for finding in said] == [(False, True)]
    assert f"({OTHER}, was {OURS})" in said[0].message
    worse = found(counted(OTHER, replace(TRAFFIC, atomics=1001)), counted(OURS, TRAFFIC))
    assert [finding.fails for finding in worse] == [True]


def test_anything_more_than_the_record_fails_and_anything_less_is_said() -> None:
    record = {OURS: {ROW.label: {"zero": [0] * 8, "kernel": [1000] * 8}}}
    more = found(counted(OURS, replace(TRAFFIC, loads=1001)), record=record)
    assert [finding.fails for finding in more] == [True]
    assert "than is recorded for these kernels" in more[0].message
    less = found(counted(OURS, replace(TRAFFIC, loads=999)), record=record)
    assert [(finding.fails, finding.rule) for finding in less] == [(False, "less-traffic")]
    assert "validate-stack bench record" in less[0].message


def test_kernels_that_take_no_more_than_the_base_commits_are_not_held_against_a_record() -> None:
    record = {OURS: {ROW.label: {"zero": [0] * 8, "kernel": [1000] * 8}}}
    same = counted(OURS, replace(TRAFFIC, loads=1001))
    (note,) = found(same, same, record)
    assert not note.fails
    assert note.message.endswith("than is recorded for these kernels (as before the stack)")
    worse = found(counted(OURS, replace(TRAFFIC, loads=1001, atomics=1001)), same, record)
    assert {finding.fails for finding in worse} == {True}


def test_the_record_of_other_kernels_says_nothing() -> None:
    record = {OURS: {ROW.label: {"kernel": [1] * 8}}}
    assert found(counted("upstream's kernels", TRAFFIC), record=record) == []


@pytest.mark.parametrize(
    ("given", "whole"),
    [({}, False), ({"device": "host"}, True), ({"device": "host", "each_commit": True}, False)],
    ids=["by default", "a device is named", "commit by commit"],
)
def test_the_whole_table_is_for_whoever_names_a_device(given: dict[str, Any], whole: bool) -> None:
    assert options_of(BENCH, **given).all_rows is whole
