"""A change in the middle of a series that is not for this tree: what is said, written, numbered and mailed."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkouts import Checkout
from checkouts.lab import write_series
from checkouts.sources import HOST, METAL, TITLES, TREE
from patchstack.series import load_series
from patchstack.tree.git import GitCommitHash, Repository
from stackproof.runner.target import Target, stack_commits

STATES = ["absent", "not applicable", "absent"]
KEPT = [TITLES[0], TITLES[2]]


def condition(name: str, path: str = HOST) -> dict[str, tuple[str, str]]:
    """The second change is for trees whose file defines a name."""
    key = f"    only_where:\n      - {{defines: {name}, path: {path}, reason: trees with darken}}\n"
    return {"series.yaml": ("    message: fade_tests.md\n", f"    message: fade_tests.md\n{key}")}


@pytest.fixture
def skipping(checkout: Checkout) -> Checkout:
    """The second of the three changes is for other trees."""
    write_series(checkout.lab.series, condition("darken_mps"))
    return checkout


def darken(checkout: Checkout) -> None:
    """Upstream gets what the condition asks for."""
    text = TREE[HOST].decode().replace("Tensor brighten_mps", "void darken_mps() {\n}\n\nTensor brighten_mps")
    checkout.commit("Darken", {HOST: text})


def test_the_report_says_which_change_is_left_out_and_why(skipping: Checkout) -> None:
    dry = skipping.run("--dry-run").require().out
    assert (
        "[MPS] Test fade  [not applicable]\n      left out, it is for trees in which Fade.mm defines darken_mps" in dry
    )
    assert "(trees with darken)" in dry
    assert "2 commits would go onto stack/fade" in dry
    facts = skipping.run("--json").require().json
    assert [change["upstream_state"] for change in facts["changes"]] == STATES
    assert [change["not_applicable"] for change in facts["changes"]] == [
        [],
        [{"lacks": "Fade.mm defines darken_mps", "path": HOST, "reason": "trees with darken"}],
        [],
    ]
    assert facts["changes"][1]["commit"] is None
    assert facts["conflicts"] == facts["warnings"] == facts["next"] == []
    assert skipping.titles() == KEPT


def test_the_stack_is_numbered_and_mailed_without_it_and_the_same_when_made_again(
    skipping: Checkout, tmp_path: Path
) -> None:
    first = skipping.run("--format-patch", str(tmp_path / "mail"), "--json").require().json
    tip = skipping.tip()
    subjects = [
        next(line for line in Path(file).read_text().splitlines() if line.startswith("Subject:"))
        for file in first["patches"]
    ]
    assert subjects == [f"Subject: [PATCH 1/2] {TITLES[0]}", f"Subject: [PATCH 2/2] {TITLES[2]}"]
    again = skipping.run("--json").require().json
    assert (again["tip"], again["moved"]) == (tip, False)
    other = skipping.lab.checkout("other")
    other.run().require()
    assert other.tip() == tip
    skipping.git("switch", "-q", "--detach", "main")
    skipping.git("am", "-q", "--keep-non-patch", *first["patches"])
    assert skipping.tip("HEAD^{tree}") == skipping.tip(f"{skipping.branch}^{{tree}}")


def test_each_commit_is_judged_against_the_one_below_it_that_is_there(skipping: Checkout) -> None:
    manifest = skipping.lab.series / "series.yaml"
    head, *changes = manifest.read_text().split("  - id: ")
    changes[1] = changes[1].replace("ops: [fade]", "ops: [wash]")
    manifest.write_text("  - id: ".join([head, *changes]))
    skipping.run().require()
    commits = [GitCommitHash(skipping.tip(name)) for name in ("main", f"{skipping.branch}~1", skipping.branch)]
    with Repository.open(skipping.path) as repository:
        target = Target(repository, commits[0], commits[-1])
        found = stack_commits(target, load_series(str(skipping.lab.series)))
    assert [(c.title, c.base, c.commit, c.ops) for c in found] == [
        (TITLES[0], commits[0], commits[1], ("fade",)),
        (TITLES[2], commits[1], commits[2], ("fade",)),
    ]


def test_on_a_tree_of_its_own_kind_the_change_is_back_in_its_place(skipping: Checkout) -> None:
    skipping.run().require()
    darken(skipping)
    facts = skipping.run("--json").require().json
    assert [change["upstream_state"] for change in facts["changes"]] == ["absent"] * 3
    assert skipping.titles() == list(TITLES)


@pytest.mark.parametrize("option", ["--only", "--replace"])
def test_asking_for_it_by_name_is_refused_in_one_sentence(skipping: Checkout, option: str) -> None:
    with skipping.nothing_written():
        skipping.run(option, "fade_tests").refused(
            2, f"{option} fade_tests", "'fade_tests' is not applicable", "darken"
        )


def test_a_stack_of_the_others_can_be_asked_for_by_name(skipping: Checkout) -> None:
    skipping.run("--only", "fade_notes").require()
    assert skipping.titles() == [TITLES[2]]


def test_what_is_advised_after_a_stop_does_not_name_it(skipping: Checkout) -> None:
    skipping.commit("Rename", {METAL: TREE[METAL].decode().replace("void brighten(", "void brighten_up(")})
    stopped = skipping.run("--json").require(3)
    assert stopped.json["next"] == ["--only fade_notes leaves out what stops"]


def test_a_series_of_which_nothing_is_applicable_is_success(checkout: Checkout) -> None:
    key = "    only_where:\n      - {defines: f, path: f.h, reason: other trees}\n    ops: [fade]\n"
    write_series(checkout.lab.series, {"series.yaml": ("    ops: [fade]\n", key)})
    with checkout.branch_kept():
        said = checkout.run().require().out
    assert said.count("[not applicable]") == 3
    assert "nothing left to apply: the tree has every change that is applicable; nothing was written" in said


def test_a_condition_that_always_holds_would_not_leave_it_out(checkout: Checkout) -> None:
    """The seeded fault."""
    write_series(checkout.lab.series, condition("brighten_mps"))
    checkout.run().require()
    assert checkout.titles() == list(TITLES)
