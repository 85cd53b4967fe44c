"""The two-week window on real histories: when a schema landed, and from which moment on it may be used."""

from __future__ import annotations

import datetime
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from compat_trees import BLEND, START, UTC, WEIGH, TreeRepository, of_rule, with_functions
from gate_contexts import run_gate
from patchstack.tree.git import GitCommitHash, Repository
from stackproof.gates.fc_window.clock import Landing, LandingState, moment
from stackproof.gates.fc_window.spec import SPEC as FC_WINDOW
from stackproof.model import GateContext, GateResult, Verdict

GLOW = "glow(Tensor self, float power=1.0) -> Tensor"
FRONTEND = "torch/paint.py"
OLD_CODE = "import torch\n\n\ndef shine(x):\n    return x\n"
NEW_USE = "import torch\n\n\ndef shine(x):\n    return torch.glow(x)\n"
LANDED = START + datetime.timedelta(days=30)
DAY, MINUTE = datetime.timedelta(days=1), datetime.timedelta(minutes=1)


@dataclass
class Branch:
    """A main branch on which ``glow`` landed at LANDED, and a stack that starts to use it."""

    lab: TreeRepository
    root: str
    base: str
    head: str

    def judge(self, now: datetime.datetime | datetime.date | None = None, **options: object) -> GateResult:
        return self.lab.judge(self.base, self.head, today=now, **options)


@pytest.fixture
def lab(tmp_path: Path) -> TreeRepository:
    return TreeRepository(tmp_path / "tree")


def branch(lab: TreeRepository, *, landed: datetime.datetime = LANDED, zone: str = "+0000") -> Branch:
    root = lab.commit(with_functions(BLEND, WEIGH) | {FRONTEND: OLD_CODE})
    base = lab.commit(with_functions(BLEND, WEIGH, GLOW), parents=(root,), at=landed, zone=zone, title="add glow")
    head = lab.commit({FRONTEND: NEW_USE}, parents=(base,), at=landed + DAY, title="use glow")
    return Branch(lab, root, base, head)


@pytest.mark.parametrize(
    ("age", "verdict"),
    [
        (13 * DAY + 23 * 60 * MINUTE + 59 * MINUTE, Verdict.FAILED),
        (14 * DAY - datetime.timedelta(seconds=1), Verdict.FAILED),
        (14 * DAY, Verdict.PASSED),
        (14 * DAY + MINUTE, Verdict.PASSED),
    ],
    ids=["13-days-23:59", "a-second-short", "14-days", "14-days-00:01"],
)
def test_the_window_ends_at_fourteen_times_24_hours_inclusive(
    lab: TreeRepository, age: datetime.timedelta, verdict: Verdict
) -> None:
    assert branch(lab).judge(LANDED + age).verdict is verdict


def test_a_finding_names_place_operator_landing_and_first_day(lab: TreeRepository) -> None:
    made = branch(lab)
    (finding,) = of_rule(made.judge(LANDED + DAY), "window")
    assert (finding.path, finding.line, finding.fails) == (FRONTEND, 5, True)
    assert "torch.glow uses the function glow" in finding.message
    assert "landed on 2030-01-31 12:00 UTC" in finding.message
    assert finding.message.endswith("existing code may use it from 2030-02-15 on")
    assert finding.details["landed_by"] == made.base
    assert finding.details["usable_from"] == "2030-02-14T12:00:00+00:00"


def test_a_day_stands_for_its_first_second(lab: TreeRepository) -> None:
    made = branch(lab)
    assert made.judge(datetime.date(2030, 2, 14)).verdict is Verdict.FAILED
    assert made.judge(datetime.date(2030, 2, 15)).verdict is Verdict.PASSED


def test_a_landing_at_midnight_may_be_used_on_the_very_day(lab: TreeRepository) -> None:
    made = branch(lab, landed=datetime.datetime(2030, 1, 31, tzinfo=UTC))
    assert made.judge(datetime.date(2030, 2, 13)).verdict is Verdict.FAILED
    assert made.judge(datetime.date(2030, 2, 14)).verdict is Verdict.PASSED


@pytest.mark.parametrize("zone", ["+1400", "-1100", "+0530"])
def test_the_zone_a_commit_was_made_in_changes_nothing(lab: TreeRepository, zone: str) -> None:
    made = branch(lab, zone=zone)
    assert made.judge(LANDED + 14 * DAY - MINUTE).verdict is Verdict.FAILED
    assert made.judge(LANDED + 14 * DAY).verdict is Verdict.PASSED


def test_a_moment_given_in_another_zone_is_the_same_moment() -> None:
    there = datetime.timezone(datetime.timedelta(hours=9))
    assert moment(datetime.datetime(2030, 1, 1, 9, tzinfo=there)) == datetime.datetime(2030, 1, 1, tzinfo=UTC)
    assert moment(datetime.datetime(2030, 1, 1)) == datetime.datetime(2030, 1, 1, tzinfo=UTC)


def test_a_commit_dated_in_the_future_never_passes(lab: TreeRepository) -> None:
    made = branch(lab, landed=LANDED + 1000 * DAY)
    result = made.judge(LANDED)
    assert result.verdict is Verdict.FAILED
    assert "dated in the future" in of_rule(result, "window")[0].message


def test_a_commit_dated_before_its_parents_counts_from_them(lab: TreeRepository) -> None:
    root = lab.commit(with_functions(BLEND) | {FRONTEND: OLD_CODE})
    parent = lab.commit(with_functions(BLEND, WEIGH), parents=(root,), at=LANDED)
    base = lab.commit(with_functions(BLEND, WEIGH, GLOW), parents=(parent,), at=START + DAY)
    head = lab.commit({FRONTEND: NEW_USE}, parents=(base,), at=LANDED + DAY)
    assert lab.judge(base, head, today=LANDED + 13 * DAY).verdict is Verdict.FAILED
    assert lab.judge(base, head, today=LANDED + 14 * DAY).verdict is Verdict.PASSED


def test_an_operator_that_was_reverted_and_came_back_counts_from_the_last_time(lab: TreeRepository) -> None:
    root = lab.commit(with_functions(BLEND) | {FRONTEND: OLD_CODE})
    first = lab.commit(with_functions(BLEND, GLOW), parents=(root,), at=START + DAY)
    reverted = lab.commit(with_functions(BLEND), parents=(first,), at=LANDED - DAY)
    base = lab.commit(with_functions(BLEND, GLOW), parents=(reverted,), at=LANDED)
    head = lab.commit({FRONTEND: NEW_USE}, parents=(base,), at=LANDED + DAY)
    assert lab.judge(base, head, today=LANDED + 13 * DAY).verdict is Verdict.FAILED
    result = lab.judge(base, head, today=LANDED + 5 * DAY)
    assert "it was reverted and came back, the last time counts" in of_rule(result, "window")[0].message
    assert lab.judge(base, head, today=LANDED + 14 * DAY).verdict is Verdict.PASSED


def test_a_renamed_operator_is_new_under_its_new_name(lab: TreeRepository) -> None:
    root = lab.commit(with_functions(BLEND, GLOW.replace("glow", "gleam")) | {FRONTEND: OLD_CODE})
    base = lab.commit(with_functions(BLEND, GLOW), parents=(root,), at=LANDED)
    head = lab.commit({FRONTEND: NEW_USE}, parents=(base,), at=LANDED + DAY)
    assert lab.judge(base, head, today=LANDED + 2 * DAY).verdict is Verdict.FAILED


def test_what_a_merge_brings_lands_with_the_merge(lab: TreeRepository) -> None:
    root = lab.commit(with_functions(BLEND) | {FRONTEND: OLD_CODE})
    side = lab.commit(with_functions(BLEND, GLOW), parents=(root,), at=START + DAY)
    mainline = lab.commit({"README.md": "more"}, parents=(root,), at=START + 2 * DAY)
    merge = lab.commit(with_functions(BLEND, GLOW), parents=(mainline, side), at=LANDED)
    head = lab.commit({FRONTEND: NEW_USE}, parents=(merge,), at=LANDED + DAY)
    result = lab.judge(merge, head, today=LANDED + 13 * DAY)
    assert result.verdict is Verdict.FAILED
    assert of_rule(result, "window")[0].details["landed_by"] == merge
    assert lab.judge(merge, head, today=LANDED + 14 * DAY).verdict is Verdict.PASSED


def test_a_shallow_clone_is_unknown_and_never_a_pass(lab: TreeRepository, tmp_path: Path) -> None:
    made = branch(lab)
    lab.branch("main", made.head)
    clone = tmp_path / "shallow"
    subprocess.run(["git", "clone", "-q", "--bare", "--depth=2", f"file://{lab.path}", str(clone)], check=True)
    context = GateContext(
        Repository.open(clone),
        GitCommitHash(made.base),
        GitCommitHash(made.head),
        tmp_path,
    )
    result = run_gate(FC_WINDOW, context, today=LANDED + DAY)
    assert result.verdict is Verdict.NOT_RUN
    assert "the clone is shallow" in result.reason
    assert [finding.rule for finding in result.findings] == ["summary", "window-unknown"]


def test_a_shallow_clone_that_reaches_back_far_enough_is_judged(lab: TreeRepository, tmp_path: Path) -> None:
    made = branch(lab)
    lab.branch("main", made.head)
    clone = tmp_path / "shallow"
    subprocess.run(["git", "clone", "-q", "--bare", "--depth=2", f"file://{lab.path}", str(clone)], check=True)
    base, head = GitCommitHash(made.base), GitCommitHash(made.head)
    result = run_gate(FC_WINDOW, GateContext(Repository.open(clone), base, head, tmp_path), today=LANDED + 20 * DAY)
    assert result.verdict is Verdict.PASSED


def test_a_history_that_begins_inside_the_window_is_unknown(lab: TreeRepository) -> None:
    base = lab.commit(with_functions(BLEND, GLOW) | {FRONTEND: OLD_CODE}, at=LANDED)
    head = lab.commit({FRONTEND: NEW_USE}, parents=(base,), at=LANDED + DAY)
    result = lab.judge(base, head, today=LANDED + DAY)
    assert result.verdict is Verdict.NOT_RUN
    assert "the history begins with" in result.reason


def test_a_stack_without_frontend_code_passes_even_where_the_history_is_unknown(lab: TreeRepository) -> None:
    base = lab.commit(with_functions(BLEND, GLOW) | {FRONTEND: NEW_USE}, at=LANDED)
    head = lab.commit({"README.md": "more"}, parents=(base,), at=LANDED + DAY)
    assert lab.judge(base, head, today=LANDED + DAY).verdict is Verdict.PASSED


def test_the_history_of_the_onto_branch_decides(lab: TreeRepository) -> None:
    made = branch(lab)
    lab.branch("main", made.root)
    result = made.judge(LANDED + 100 * DAY, onto="main")
    assert result.verdict is Verdict.FAILED
    assert "has not landed yet" in of_rule(result, "window")[0].message


def test_an_onto_that_does_not_exist_is_not_run_and_says_so(lab: TreeRepository) -> None:
    result = branch(lab).judge(LANDED, onto="no-such-branch")
    assert result.verdict is Verdict.NOT_RUN
    assert "no-such-branch" in result.reason


def test_two_uses_in_one_file_are_two_findings(lab: TreeRepository) -> None:
    made = branch(lab)
    twice = NEW_USE + "\n\ndef dull(x):\n    return x\n"
    base = lab.commit({FRONTEND: OLD_CODE + "\n\ndef dull(x):\n    return x\n"}, parents=(made.base,))
    head = lab.commit(
        {FRONTEND: twice.replace("return x\n", "return torch.ops.aten.glow.default(x)\n")}, parents=(base,)
    )
    findings = of_rule(lab.judge(base, head, today=LANDED + DAY), "window")
    assert [(finding.line, finding.details["written"]) for finding in findings] == [
        (5, "torch.glow"),
        (9, "torch.ops.aten.glow.default"),
    ]


def test_a_use_that_was_there_before_the_range_is_information(lab: TreeRepository) -> None:
    made = branch(lab)
    later = lab.commit({"torch/other.py": "import torch\n"}, parents=(made.head,))
    result = lab.judge(made.head, later, today=LANDED + DAY)
    assert result.verdict is Verdict.PASSED
    assert [finding.line for finding in of_rule(result, "window-existing")] == [5]


@pytest.mark.parametrize(
    "path", ["torch/testing/_internal/ops.py", "torch/_dynamo/test_case.py", "torchgen/gen.py", "test/test_torch.py"]
)
def test_tests_and_torchgen_are_not_frontend(lab: TreeRepository, path: str) -> None:
    made = branch(lab)
    head = lab.commit({path: NEW_USE}, parents=(made.base,))
    assert lab.judge(made.base, head, today=LANDED + DAY).verdict is Verdict.PASSED


def test_a_stack_that_adds_and_uses_is_told_which_commit_must_wait(lab: TreeRepository) -> None:
    base = lab.commit(with_functions(BLEND) | {FRONTEND: OLD_CODE})
    adds = lab.commit(with_functions(BLEND, GLOW), parents=(base,), title="add glow", at=LANDED)
    uses = lab.commit({FRONTEND: NEW_USE}, parents=(adds,), title="use glow", at=LANDED)
    result = lab.judge(base, uses, today=LANDED)
    assert result.verdict is Verdict.FAILED
    advice = f"{uses[:12]} (use glow) must wait until two weeks after {adds[:12]} (add glow) has landed"
    assert of_rule(result, "window")[0].message.endswith(advice)


def test_a_commit_that_adds_and_uses_is_to_be_split(lab: TreeRepository) -> None:
    base = lab.commit(with_functions(BLEND) | {FRONTEND: OLD_CODE})
    both = lab.commit(with_functions(BLEND, GLOW) | {FRONTEND: NEW_USE}, parents=(base,), title="glow", at=LANDED)
    (finding,) = of_rule(lab.judge(base, both, today=LANDED), "window")
    assert f"split {both[:12]} (glow)" in finding.message


def test_a_new_defaulted_argument_of_an_old_operator_must_wait(lab: TreeRepository) -> None:
    wider = BLEND.replace("weight=0.5", "weight=0.5, bool soft=False")
    root = lab.commit(with_functions(BLEND) | {FRONTEND: OLD_CODE})
    base = lab.commit(with_functions(wider), parents=(root,), at=LANDED)
    old_call = OLD_CODE.replace("return x", "return torch.blend(x, x, weight=1.0)")
    new_call = OLD_CODE.replace("return x", "return x.blend(x, soft=True)")
    for code, verdict in ((old_call, Verdict.PASSED), (new_call, Verdict.FAILED)):
        head = lab.commit({FRONTEND: code}, parents=(base,))
        assert lab.judge(base, head, today=LANDED + DAY).verdict is verdict


def test_a_changed_file_that_is_no_python_is_unknown(lab: TreeRepository) -> None:
    made = branch(lab)
    head = lab.commit({FRONTEND: NEW_USE + "def broken(:\n"}, parents=(made.base,))
    result = lab.judge(made.base, head, today=LANDED + DAY)
    assert result.verdict is Verdict.NOT_RUN
    assert FRONTEND in result.reason


def test_only_a_known_landing_can_be_open() -> None:
    now = LANDED + 1000 * DAY
    assert Landing(LandingState.KNOWN, LANDED).is_open(now)
    for state in (LandingState.BEFORE_HISTORY, LandingState.NOT_LANDED, LandingState.FUTURE):
        assert not Landing(state, LANDED).is_open(now)
