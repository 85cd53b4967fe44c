"""The delta between two trees: which entries changed, in which way, and what the report says about each."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from compat_trees import BLEND, START, WEIGH, TreeRepository, functions, of_rule, with_functions
from stackproof.gates.common.functions import FUNCTIONS_PATH, TAGS_PATH
from stackproof.gates.common.schema import parse_schema
from stackproof.gates.fc_window.allowlist import CHECKER_PATH
from stackproof.gates.fc_window.delta import ArgumentChangeKind, argument_changes
from stackproof.model import GateResult, Verdict

KIND = ArgumentChangeKind
TODAY = START.date() + datetime.timedelta(days=100)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("f(int a)", "f(int a, int b=1)", {(KIND.ADDED, "b")}),
        ("f(int a, int b)", "f(int a)", {(KIND.REMOVED, "b")}),
        ("f(int a)", "f(int b)", {(KIND.RENAMED, "b")}),
        ("f(int a, float b)", "f(float b, int a)", {(KIND.REORDERED, "b, a")}),
        ("f(int a)", "f(int a=1)", {(KIND.DEFAULT_ADDED, "a")}),
        ("f(int a=1)", "f(int a)", {(KIND.DEFAULT_REMOVED, "a")}),
        ("f(int a=1)", "f(int a=2)", {(KIND.DEFAULT_CHANGED, "a")}),
        ("f(int a)", "f(SymInt a)", {(KIND.TYPE, "a")}),
        ("f(int a)", "f(*, int a)", {(KIND.KWARG_ONLY, "a")}),
        ("f(Tensor a)", "f(Tensor(x!) a)", {(KIND.ALIAS, "a")}),
        ("f(int a)", "f(int a, *, Tensor(x!) out)", {(KIND.OUT_ADDED, "out")}),
        ("f(int a, *, Tensor(x!) out)", "f(int a)", {(KIND.OUT_REMOVED, "out")}),
        (
            "f(int a, int b)",
            "f(int c, int b=2, int d=3)",
            {(KIND.RENAMED, "c"), (KIND.DEFAULT_ADDED, "b"), (KIND.ADDED, "d")},
        ),
    ],
)
def test_each_kind_of_argument_change_is_named(
    old: str, new: str, expected: set[tuple[ArgumentChangeKind, str]]
) -> None:
    changes = argument_changes(parse_schema(f"{old} -> Tensor"), parse_schema(f"{new} -> Tensor"))
    assert {(change.kind, change.argument) for change in changes} == expected


def test_a_changed_return_is_named() -> None:
    changes = argument_changes(parse_schema("f() -> Tensor"), parse_schema("f() -> (Tensor, Tensor)"))
    assert [change.kind for change in changes] == [KIND.RETURNS]


@pytest.fixture
def lab(tmp_path: Path) -> TreeRepository:
    return TreeRepository(tmp_path / "tree")


def judged(lab: TreeRepository, before: dict[str, str], after: dict[str, str]) -> GateResult:
    base = lab.commit(before)
    head = lab.commit(after, parents=(base,), at=START + datetime.timedelta(days=1))
    return lab.judge(base, head, today=TODAY)


def test_a_dispatch_only_change_passes_and_says_that_the_window_does_not_apply(lab: TreeRepository) -> None:
    before = with_functions(BLEND, WEIGH, extra={"blend": "  dispatch:\n    CPU, CUDA: blend_cpu\n"})
    after = with_functions(BLEND, WEIGH, extra={"blend": "  dispatch:\n    CPU, CUDA: blend_cpu\n    MPS: blend_mps\n"})
    result = judged(lab, before, after)
    assert result.verdict is Verdict.PASSED
    assert result.details["summary"] == (
        "dispatch-only change: no schema changed, the FC window does not apply, the bot will comment all the same"
    )
    (finding,) = of_rule(result, "dispatch-only")
    assert (finding.path, finding.line, finding.fails) == (FUNCTIONS_PATH, 1, False)
    assert finding.message == "aten::blend: dispatch-only change (MPS)"


def test_a_comma_key_that_loses_a_device_is_a_dispatch_change_of_that_device(lab: TreeRepository) -> None:
    before = with_functions(BLEND, extra={"blend": "  dispatch:\n    CPU, MPS: blend_any\n"})
    after = with_functions(BLEND, extra={"blend": "  dispatch:\n    CPU: blend_any\n"})
    assert "(MPS)" in of_rule(judged(lab, before, after), "dispatch-only")[0].message


def test_a_tag_only_change_is_told_apart(lab: TreeRepository) -> None:
    tags = {TAGS_PATH: "- tag: core\n  desc: |\n    kept\n- tag: pointwise\n  desc: x\n"}
    after = with_functions(BLEND, extra={"blend": "  tags: [core, pointwise]\n"})
    result = judged(lab, with_functions(BLEND) | tags, after)
    assert result.verdict is Verdict.PASSED
    assert "(core, pointwise)" in of_rule(result, "tag-only")[0].message


def test_removing_an_operator_fails_and_says_so(lab: TreeRepository) -> None:
    result = judged(lab, with_functions(BLEND, WEIGH), with_functions(BLEND))
    assert result.verdict is Verdict.FAILED
    (finding,) = of_rule(result, "bc")
    assert "aten::weigh: removed; not BC: no operator of this name and overload is left" in finding.message


def test_a_rename_is_a_removal_and_an_addition_that_knows_its_old_name(lab: TreeRepository) -> None:
    result = judged(lab, with_functions(BLEND, WEIGH), with_functions(BLEND, WEIGH.replace("weigh", "scale_by")))
    assert [finding.details["operator"] for finding in of_rule(result, "bc")] == ["aten::weigh"]
    (added,) = of_rule(result, "schema")
    assert added.message.startswith("aten::scale_by: renamed from aten::weigh")


def test_a_forward_break_only_warns_unless_the_operator_is_core(lab: TreeRepository) -> None:
    changed = WEIGH.replace("int scale", "int scale=1")
    plain = judged(lab, with_functions(WEIGH), with_functions(changed))
    assert plain.verdict is Verdict.PASSED
    assert [finding.fails for finding in of_rule(plain, "fc")] == [False]
    core = {"weigh": "  tags: core\n"}
    strict = judged(lab, with_functions(WEIGH, extra=core), with_functions(changed, extra=core))
    assert strict.verdict is Verdict.FAILED
    assert "a core ATen operator, for which no exception holds" in of_rule(strict, "fc")[0].message


def test_taking_the_core_tag_off_does_not_take_the_promise_back(lab: TreeRepository) -> None:
    before = with_functions(WEIGH, extra={"weigh": "  tags: core\n"})
    assert judged(lab, before, with_functions(WEIGH.replace("int scale", "int scale=1"))).verdict is Verdict.FAILED


def test_an_operator_that_torchgen_derived_before_is_not_new_when_it_is_written_out(lab: TreeRepository) -> None:
    out = "weigh.out(Tensor self, int scale, *, Tensor(a!) out) -> Tensor(a!)"
    before = with_functions(WEIGH, extra={"weigh": "  autogen: weigh.out\n"})
    result = judged(lab, before, with_functions(WEIGH, out))
    assert result.verdict is Verdict.PASSED
    assert "written out, derived by torchgen before" in of_rule(result, "schema")[0].message


def test_a_derived_operator_that_goes_away_fails(lab: TreeRepository) -> None:
    before = with_functions(WEIGH, extra={"weigh": "  autogen: weigh.out\n"})
    result = judged(lab, before, with_functions(WEIGH))
    assert result.verdict is Verdict.FAILED
    assert "the derived operators weigh.out are gone" in of_rule(result, "bc")[0].message


def test_a_schema_that_torch_cannot_read_is_reported_and_judged_otherwise(lab: TreeRepository) -> None:
    odd = "hush(Tensor self, Wavelength[] w) -> Tensor"
    result = judged(lab, with_functions(odd), with_functions(odd.replace("Wavelength[] w", "Wavelength[] w, int n")))
    (finding,) = of_rule(result, "not-judged")
    assert "is not judged by torch" in finding.message
    assert finding.message.endswith("judged by rules instead")
    assert of_rule(result, "bc")[0].fails


def test_the_table_of_the_report_has_a_row_per_entry(lab: TreeRepository) -> None:
    result = judged(lab, with_functions(BLEND, WEIGH), with_functions(BLEND, WEIGH.replace("int", "SymInt")))
    (row,) = result.details["entries"]
    assert (row["operator"], row["change"], row["BC"], row["FC"], row["window"]) == (
        "aten::weigh",
        "schema",
        True,
        True,
        "does not apply",
    )
    assert row["arguments"] == ["scale: type (int -> SymInt)"]


CHECKER = """
import datetime, torch_that_is_not_built
ALLOW_LIST = [
    ("aten::elsewhere", datetime.date(9999, 1, 1)),
    ("aten::weigh", datetime.date({year}, {month}, {day}){more}),
]
"""


def allow(until: datetime.date, more: str = "") -> dict[str, str]:
    return {CHECKER_PATH: CHECKER.format(year=until.year, month=until.month, day=until.day, more=more)}


def removed_with(lab: TreeRepository, checker: dict[str, str], *, tags: str = "") -> GateResult:
    before = with_functions(BLEND, WEIGH, extra={"weigh": tags}) | checker
    return judged(lab, before, with_functions(BLEND))


def test_a_listed_break_passes_and_the_entry_is_named(lab: TreeRepository) -> None:
    result = removed_with(lab, allow(TODAY + datetime.timedelta(days=90)))
    assert result.verdict is Verdict.PASSED
    assert f"by line 5 of {CHECKER_PATH}" in of_rule(result, "bc")[0].message
    listed = result.details["allow_list"]
    assert [(row["operator"], row["line"], row["never_expires"]) for row in listed["covers"]] == [
        ("aten::weigh", 5, False)
    ]
    assert listed["never_expires"] == ["aten::elsewhere"]
    assert listed["expires_within_30_days"] == []


def test_an_entry_holds_on_its_last_day_and_is_said_to_expire_soon(lab: TreeRepository) -> None:
    result = removed_with(lab, allow(TODAY))
    assert result.verdict is Verdict.PASSED
    assert of_rule(result, "bc")[0].message.endswith("(expires within 30 days)")
    assert len(result.details["allow_list"]["expires_within_30_days"]) == 1


def test_an_entry_that_expired_yesterday_does_not_help(lab: TreeRepository) -> None:
    result = removed_with(lab, allow(TODAY - datetime.timedelta(days=1)))
    assert result.verdict is Verdict.FAILED
    assert "the exception on line 5 expired on" in of_rule(result, "bc")[0].message


def test_the_list_does_not_hold_for_core_operators(lab: TreeRepository) -> None:
    assert removed_with(lab, allow(TODAY), tags="  tags: core\n").verdict is Verdict.FAILED


def test_a_second_pattern_that_does_not_match_decides_against(lab: TreeRepository) -> None:
    assert removed_with(lab, allow(TODAY, ', "float weight"')).verdict is Verdict.FAILED
    assert removed_with(lab, allow(TODAY, ', "int scale"')).verdict is Verdict.PASSED


def test_an_entry_that_is_no_literal_is_reported_and_not_used(lab: TreeRepository) -> None:
    checker = {CHECKER_PATH: "ALLOW_LIST = [('aten::weigh', tomorrow())]\n"}
    result = removed_with(lab, checker)
    assert result.verdict is Verdict.FAILED
    assert [finding.line for finding in of_rule(result, "allow-list")] == [1]


def test_functions_helper_writes_what_the_gate_reads() -> None:
    assert functions(BLEND).startswith(f"- func: {BLEND}\n")
