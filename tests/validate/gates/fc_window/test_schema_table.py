"""The verdict table: one schema edit per row, with what torch, the rules and the window must say about it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from skips import lacks, pip
from stackproof.gates.common.functions import NativeFunction
from stackproof.gates.common.schema import parse_schema
from stackproof.gates.fc_window.delta import EntryDelta, argument_changes
from stackproof.gates.fc_window.judge import TorchJudge
from stackproof.gates.fc_window.need import WindowNeed, window_need
from stackproof.gates.fc_window.rules import Judgement, judge

NOT_APPLICABLE, APPLIES, CANNOT_HELP = WindowNeed.NOT_APPLICABLE, WindowNeed.APPLIES, WindowNeed.CANNOT_HELP


@dataclass(frozen=True)
class Row:
    """One edit: both schemas and the three verdicts."""

    name: str
    old: str
    new: str
    backward: bool
    forward: bool
    window: WindowNeed


PLAIN = "f(Tensor self, int n) -> Tensor"
DEFAULTED = "f(Tensor self, int n=1) -> Tensor"
OUT = "f.out(Tensor self, int n, *, Tensor(a!) out) -> Tensor(a!)"

ROWS = (
    Row("nothing", PLAIN, PLAIN, True, True, NOT_APPLICABLE),
    # Arguments that come.
    Row("defaulted argument at the end", PLAIN, "f(Tensor self, int n, bool b=False) -> Tensor", True, True, APPLIES),
    Row("optional argument at the end", PLAIN, "f(Tensor self, int n, float? x=None) -> Tensor", True, True, APPLIES),
    Row("two defaulted arguments", PLAIN, "f(Tensor self, int n, int a=1, int b=2) -> Tensor", True, True, APPLIES),
    Row("defaulted keyword-only", PLAIN, "f(Tensor self, int n, *, int k=3) -> Tensor", True, True, APPLIES),
    Row("defaulted list argument", PLAIN, "f(Tensor self, int n, int[] d=[]) -> Tensor", True, False, APPLIES),
    Row("defaulted fixed list", PLAIN, "f(Tensor self, int n, int[2] d=0) -> Tensor", True, False, APPLIES),
    Row("optional list without value", PLAIN, "f(Tensor self, int n, int[]? d=None) -> Tensor", True, True, APPLIES),
    Row("defaulted and list", PLAIN, "f(Tensor self, int n, int a=1, int[] d=[]) -> Tensor", True, False, APPLIES),
    Row(
        "defaulted argument in the middle",
        PLAIN,
        "f(Tensor self, bool b=False, int n=1) -> Tensor",
        False,
        False,
        CANNOT_HELP,
    ),
    Row(
        "defaulted argument first", PLAIN, "f(int a=1, Tensor self=None, int n=1) -> Tensor", False, False, CANNOT_HELP
    ),
    Row("argument without default", PLAIN, "f(Tensor self, int n, bool b) -> Tensor", False, False, CANNOT_HELP),
    Row(
        "defaulted before out",
        OUT,
        "f.out(Tensor self, int n, int a=1, *, Tensor(a!) out) -> Tensor(a!)",
        True,
        True,
        APPLIES,
    ),
    Row(
        "list before out",
        OUT,
        "f.out(Tensor self, int n, int[] d=[], *, Tensor(a!) out) -> Tensor(a!)",
        True,
        False,
        APPLIES,
    ),
    # Arguments that go, move or change their name.
    Row(
        "trailing defaulted argument removed",
        "f(Tensor self, int n, bool b=False) -> Tensor",
        PLAIN,
        False,
        True,
        CANNOT_HELP,
    ),
    Row("argument without default removed", PLAIN, "f(Tensor self) -> Tensor", False, True, CANNOT_HELP),
    Row("argument removed from the middle", "f(Tensor self, int a, int n) -> Tensor", PLAIN, False, False, CANNOT_HELP),
    Row("renamed", PLAIN, "f(Tensor self, int count) -> Tensor", False, False, CANNOT_HELP),
    Row("reordered", PLAIN, "f(int n, Tensor self) -> Tensor", False, False, CANNOT_HELP),
    Row("renamed and one added", PLAIN, "f(Tensor self, int count, int a=1) -> Tensor", False, False, CANNOT_HELP),
    # Defaults.
    Row("default added", PLAIN, DEFAULTED, True, False, APPLIES),
    Row("default removed", DEFAULTED, PLAIN, False, False, CANNOT_HELP),
    Row("default changed", DEFAULTED, "f(Tensor self, int n=2) -> Tensor", False, False, CANNOT_HELP),
    Row(
        "default written otherwise",
        "f(Tensor self, float x=1) -> Tensor",
        "f(Tensor self, float x=1.0) -> Tensor",
        True,
        True,
        NOT_APPLICABLE,
    ),
    Row(
        "list default written otherwise",
        "f(int[2] a=1) -> Tensor",
        "f(int[2] a=[1,1]) -> Tensor",
        True,
        True,
        NOT_APPLICABLE,
    ),
    Row("default added and one more", PLAIN, "f(Tensor self, int n=1, int a=2) -> Tensor", True, False, APPLIES),
    # Types.
    Row("int to SymInt", PLAIN, "f(Tensor self, SymInt n) -> Tensor", True, True, NOT_APPLICABLE),
    Row("SymInt to int", "f(Tensor self, SymInt n) -> Tensor", PLAIN, True, True, NOT_APPLICABLE),
    Row("int to optional", PLAIN, "f(Tensor self, int? n) -> Tensor", True, False, APPLIES),
    Row("optional to int", "f(Tensor self, int? n) -> Tensor", PLAIN, False, True, CANNOT_HELP),
    Row("int to Scalar", PLAIN, "f(Tensor self, Scalar n) -> Tensor", True, False, APPLIES),
    Row("int to float", PLAIN, "f(Tensor self, float n) -> Tensor", False, False, CANNOT_HELP),
    Row("list length", "f(int[2] a) -> Tensor", "f(int[3] a) -> Tensor", False, False, CANNOT_HELP),
    Row("SymInt and a default", PLAIN, "f(Tensor self, SymInt n=1) -> Tensor", True, False, APPLIES),
    # Keyword-only, aliasing, out.
    Row("becomes keyword-only", PLAIN, "f(Tensor self, *, int n) -> Tensor", False, False, CANNOT_HELP),
    Row("no longer keyword-only", "f(Tensor self, *, int n) -> Tensor", PLAIN, True, True, NOT_APPLICABLE),
    Row("written to", PLAIN, "f(Tensor(a!) self, int n) -> Tensor", False, False, CANNOT_HELP),
    Row(
        "out added",
        "f.o(Tensor self) -> Tensor",
        "f.o(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
        False,
        False,
        CANNOT_HELP,
    ),
    Row(
        "out removed",
        "f.o(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
        "f.o(Tensor self) -> Tensor",
        False,
        False,
        CANNOT_HELP,
    ),
    Row("out renamed", OUT, "f.out(Tensor self, int n, *, Tensor(a!) result) -> Tensor(a!)", False, False, CANNOT_HELP),
    # Returns and names.
    Row("return added", PLAIN, "f(Tensor self, int n) -> (Tensor, Tensor)", False, False, CANNOT_HELP),
    Row("return removed", "f(Tensor self) -> (Tensor, Tensor)", "f(Tensor self) -> Tensor", False, False, CANNOT_HELP),
    Row(
        "return renamed",
        "f(Tensor self) -> (Tensor a, Tensor b)",
        "f(Tensor self) -> (Tensor a, Tensor c)",
        False,
        True,
        CANNOT_HELP,
    ),
    Row("return type", PLAIN, "f(Tensor self, int n) -> int", False, True, CANNOT_HELP),
    Row("overload renamed", "f.a(Tensor self) -> Tensor", "f.b(Tensor self) -> Tensor", False, False, CANNOT_HELP),
    Row("function renamed", "f(Tensor self) -> Tensor", "g(Tensor self) -> Tensor", False, False, CANNOT_HELP),
)

by_name = pytest.mark.parametrize("row", ROWS, ids=[row.name.replace(" ", "-") for row in ROWS])


@pytest.fixture(scope="module")
def torch() -> TorchJudge:
    found = TorchJudge()
    if not found.version:
        pytest.skip(lacks("torch is not installed", pip("torch")))
    return found


@by_name
def test_torch_gives_the_verdict_of_the_table(row: Row, torch: TorchJudge) -> None:
    judgement, refusal = torch.judge(parse_schema(row.old), parse_schema(row.new))
    assert refusal == ""
    assert judgement is not None
    assert (judgement.backward, judgement.forward) == (row.backward, row.forward)


@by_name
def test_the_rules_give_the_same_verdict_and_a_reason_for_each_no(row: Row) -> None:
    judgement = judge(parse_schema(row.old), parse_schema(row.new))
    assert (judgement.backward, judgement.forward) == (row.backward, row.forward)
    assert bool(judgement.backward_reason) == (not row.backward)
    assert bool(judgement.forward_reason) == (not row.forward)


@by_name
def test_the_window_verdict_follows_from_both(row: Row) -> None:
    old, new = parse_schema(row.old), parse_schema(row.new)
    entry = EntryDelta(
        new.name, NativeFunction(old, 1, {}), NativeFunction(new, 1, {}), arguments=argument_changes(old, new)
    )
    need, reason = window_need(entry, judge(old, new))
    assert need is row.window
    assert reason


def test_the_table_has_known_bad_pairs_in_both_directions() -> None:
    verdicts = {(row.backward, row.forward) for row in ROWS}
    assert verdicts == {(True, True), (True, False), (False, True), (False, False)}
    assert len(ROWS) >= 30


def test_an_added_out_argument_is_no_even_where_torch_only_looks_at_the_returns(torch: TorchJudge) -> None:
    old, new = "f(Tensor self) -> Tensor", "f(Tensor self, *, Tensor(a!) out) -> Tensor"
    judgement, _ = torch.judge(parse_schema(old), parse_schema(new))
    assert judgement is not None
    assert judgement.backward is False
    assert judgement.backward_reason == "the number of out arguments changes"


def test_torch_says_no_without_a_reason_and_the_rules_add_one(torch: TorchJudge) -> None:
    judgement, _ = torch.judge(parse_schema(PLAIN), parse_schema("f(Tensor self, int n) -> (Tensor, Tensor)"))
    assert isinstance(judgement, Judgement)
    assert judgement.forward_reason == "the number of returns changes from 1 to 2"
    assert judgement.judged_by.startswith("torch ")
