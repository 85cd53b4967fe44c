"""The table counts cases per mode and keeps the largest error of each output."""

from __future__ import annotations

import json
from pathlib import Path

from stackproof.engines.metal import Report, ReportKind
from stackproof.gates.common.error_table import Table, render
from stackproof.gates.metal_run.worker import is_theirs
from stackproof.ops import CaseResult

RESULTS = [
    CaseResult("bilinear", "float32", "a", {"grad_input": 0.25}, {"grad_input": 0.5}),
    CaseResult("bilinear", "float32", "b", {"grad_input": 0.75}, problems=("wrong",)),
    CaseResult("bilinear", "float16", "a", {"grad_input": 0.125}),
]


def filled() -> Table:
    table = Table()
    table.add("some_op", "race", RESULTS[2:])
    table.add("some_op", "plain", RESULTS)
    return table


def test_rows_count_cases_and_keep_the_largest_error() -> None:
    first = filled().rows[0]
    assert (first.run_mode, first.dtype, first.cases, first.failed) == ("plain", "float32", 2, 1)
    assert first.errors == {"grad_input": 0.75}
    assert first.cpu_errors == {"grad_input": 0.5}


def test_plain_comes_first_and_the_widest_dtype_first() -> None:
    assert [(row.run_mode, row.dtype) for row in filled().rows] == [
        ("plain", "float32"),
        ("plain", "float16"),
        ("race", "float16"),
    ]


def test_the_table_is_plain_data() -> None:
    rows = [row.as_json() for row in filled().rows]
    assert json.loads(json.dumps(rows)) == rows


def test_the_text_shows_the_cpu_beside_our_error() -> None:
    text = render(filled().rows)
    assert "grad_input 0.750 (0.500)" in text
    assert text.count("bilinear") == 3


def test_lanes_that_part_in_pytorchs_own_headers_are_a_note_and_elsewhere_a_failure() -> None:
    def report(file: str, kind: ReportKind = ReportKind.SIMDGROUP_DIVERGENCE) -> Report:
        return Report(kind, "k", "lanes part", file, 3)

    root = Path("/cache/tree")
    assert is_theirs(report("/cache/tree/c10/metal/reduction_utils.h"), root)
    assert not is_theirs(report("/cache/tree/aten/src/ATen/native/mps/kernels/A.metal"), root)
    assert not is_theirs(report("/cache/tree/c10/metal/atomic.h", ReportKind.RACE), root)
