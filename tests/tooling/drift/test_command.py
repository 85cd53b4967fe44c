"""``apply-stack drift`` as a user types it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from checkouts import Lab, Snapshot
from checkouts.lab import Checkout, Run
from checkouts.sources import METAL, TREE
from references import clone_of
from upstream_history import Step, write_history

RENAMED = {METAL: TREE[METAL].replace(b"void brighten(", b"void brighten_up(")}
TITLE = "@who: rename 100% of it (#7)"
STEPS = (Step("Before"), Step(TITLE, RENAMED), Step("After"))


@pytest.fixture
def moved(lab: Lab) -> Checkout:
    """A checkout whose ``main`` has moved on by three commits, the second of which breaks the first change."""
    checkout = lab.checkout()
    write_history(checkout.path, STEPS, start=checkout.tip("main"))
    return checkout


def drift(checkout: Checkout, *more: str, since: str = "main~3", onto: str = "main") -> Run:
    arguments = ["drift", "--since", since, "--onto", onto, "--repo", str(checkout.path)]
    return checkout.lab.run(*arguments, "--series", str(checkout.lab.series), *more)


def test_the_report_has_a_line_for_each_change_with_states_commit_anchor_and_nearest(moved: Checkout) -> None:
    said = drift(moved).require(3).out.splitlines()
    (line,) = [line for line in said if line.startswith("  fade ")]
    culprit = moved.git("rev-parse", "--short=12", "main~1")
    for word in (
        "absent -> absent, 1 conflict",
        f"since {culprit} 2026-01-01 {TITLE}",
        "'after kernel brighten'",
        "nearest: kernel brighten_up at line 4",
    ):
        assert word in line
    assert any(line.startswith("  fade_tests ") and "[unchanged]" in line for line in said)
    assert said[-1] == "1 of 3 changes needs a person"


def test_json_has_the_same_facts_and_is_the_same_every_time(moved: Checkout) -> None:
    first = drift(moved, "--json").require(3)
    facts = first.json
    assert (facts["exit_code"], facts["commits"], facts["touching"]) == (3, 3, 1)
    change = facts["changes"][0]
    assert (change["id"], change["verdict"]) == ("fade", "drifted")
    (turn,) = change["turns"]
    assert turn["commit"] == {
        "hash": moved.tip("main~1"),
        "date": "2026-01-01",
        "title": TITLE,
        "pull_request": 7,
    }
    assert (turn["parts"][0]["anchor"], turn["parts"][0]["nearest"]) == (
        "after kernel brighten",
        ["kernel brighten_up at line 4"],
    )
    assert drift(moved, "--json").out == first.out


def test_nothing_drifted_is_exit_code_0(moved: Checkout) -> None:
    assert drift(moved, onto="main~2").require(0).out.endswith("nothing drifted\n")


def test_neither_the_checkout_nor_its_git_directory_changes(moved: Checkout) -> None:
    (moved.path / "README.md").write_text("not committed\n")
    with moved.nothing_written():
        drift(moved).require(3)


def test_annotations_are_escaped_as_workflow_commands_ask_for(moved: Checkout) -> None:
    said = drift(moved, "--github").require(3).out.splitlines()
    (error,) = [line for line in said if line.startswith("::error ")]
    assert error.startswith("::error title=fade%3A fade::since ")
    assert "@who: rename 100%25 of it" in error


def test_reports_are_named_by_fingerprint_and_carry_it_where_the_workflow_looks(moved: Checkout) -> None:
    folder = moved.lab.root / "reports"
    facts = drift(moved, "--json", "--reports", str(folder)).require(3).json
    fingerprint = facts["changes"][0]["turns"][0]["fingerprint"]
    (file,) = folder.iterdir()
    text = file.read_text()
    assert file.name == f"{fingerprint}.md"
    assert text.startswith("# fade: fade is blocked since ")
    assert "(pytorch/pytorch#7)" in text.splitlines()[0]
    assert f"\n<!-- apply-stack drift: {fingerprint} -->\n" in text
    assert moved.tip("main~1") in text
    assert f"\n    {TITLE}\n" in text, "indented: GitHub would notify @who"


def test_reports_do_not_depend_on_how_far_upstream_has_come(moved: Checkout) -> None:
    texts = []
    for onto in ("main~1", "main"):
        folder = moved.lab.root / f"reports on {onto}"
        drift(moved, "--reports", str(folder), onto=onto).require(3)
        texts.append({file.name: file.read_text() for file in folder.iterdir()})
    assert texts[0] == texts[1]
    assert len(texts[0]) == 1


def test_reports_of_another_day_are_not_mixed_with_those_of_today(moved: Checkout) -> None:
    folder = moved.lab.root / "reports"
    folder.mkdir()
    (folder / "0123456789abcdef.md").write_text("old\n")
    drift(moved, "--reports", str(folder)).refused(2, "the folder holds files", "0123456789abcdef.md")


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--onto", "main"], 2, ["--since"]),
        (["--since", "main"], 2, ["--onto"]),
        (["--since", "nowhere", "--onto", "main"], 2, ["--since nowhere", "no such branch or commit"]),
        (["--since", "main", "--onto", "main~1"], 4, ["it is not older than --onto"]),
        (["--since", "main~1", "--onto", "main", "--visits", "1"], 2, ["--visits"]),
        (["--since", "main~1", "--onto", "main", "--json", "--github"], 2, ["--json"]),
        (["--since", "main~1", "--onto", "main", "--reference", "2.6"], 2, ["--repo and --reference"]),
        (["--since", "main~1", "--onto", "main", "--series", "none"], 2, ["no series 'none'"]),
    ],
)
def test_bad_input_gets_one_sentence(moved: Checkout, arguments: list[str], status: int, words: list[str]) -> None:
    series = [] if "--series" in arguments else ["--series", str(moved.lab.series)]
    moved.lab.run("drift", *arguments, "--repo", str(moved.path), *series).refused(status, *words)


def test_options_of_the_applier_before_the_word_drift_are_refused(moved: Checkout) -> None:
    moved.lab.run("--onto", "main", "drift", "--since", "main~1").refused(2, "--onto stands before 'drift'")


def test_a_shallow_clone_is_refused_with_the_fetch_that_mends_it(moved: Checkout) -> None:
    clone = moved.lab.clone(moved, "shallow", "--depth=2", "--bare")
    drift(clone).refused(4, "this clone is shallow", "fetch --unshallow")


def test_a_partial_clone_is_refused_with_a_command_that_brings_what_is_missing(moved: Checkout) -> None:
    moved.git("config", "uploadpack.allowFilter", "true")
    clone = moved.lab.clone(moved, "partial clone", "--filter=blob:none", "--bare")
    drift(clone).refused(4, "the repository does not hold this object")
    command = drift(clone, "--json").json["error"]["next_command"]
    subprocess.run(["sh", "-c", command], env=clone.lab.env, check=True)
    assert drift(clone, "--json").require(3).out == drift(moved, "--json").require(3).out


def test_a_file_that_was_not_fetched_never_passes_for_one_that_upstream_took_away(moved: Checkout) -> None:
    moved.git("config", "uploadpack.allowFilter", "true")
    clone = moved.lab.clone(moved, "partial", "--filter=blob:none", "--bare")
    clone.git("cat-file", "-p", "main~3:aten/src/ATen/native/native_functions.yaml")
    facts = drift(clone, "--json").require(4).json
    assert set(facts) == {"error", "exit_code"}


@pytest.mark.needs_reference
def test_on_2_6_with_a_history_of_two_commits_it_says_that_there_is_no_commit_to_name(lab: Lab, tmp_path: Path) -> None:
    clone = clone_of("2.6", tmp_path / "2.6.git")
    second = lab.git(clone, "commit-tree", "-p", "main", "-m", "Another", "main^{tree}")
    lab.git(clone, "update-ref", "refs/heads/main", second)
    before = Snapshot.of(clone)
    run = lab.run("drift", "--since", "main~1", "--onto", "main", "--repo", str(clone)).require(4)
    before.require_same(Snapshot.of(clone))
    assert "--since is the first commit of this history: it does not tell what came before" in run.out
    assert "no commit between --since and --onto touches the series' files" in run.out
    assert "the tree lacks aten/src/ATen/native/mps/kernels/GridSampler.metal" in run.out
    assert run.out.splitlines()[-1].startswith("neither end is a tree that this series goes on")


@pytest.mark.exhaustive
@pytest.mark.needs_reference
@pytest.mark.parametrize("name", ["2.11", "2.13"])
def test_on_a_real_tree_whose_history_leaves_the_files_alone_nothing_drifted(
    lab: Lab, tmp_path: Path, name: str
) -> None:
    clone = clone_of(name, tmp_path / "clone.git")
    write_history(clone, [Step("One"), Step("Two")], start=lab.git(clone, "rev-parse", "main"))
    run = lab.run("drift", "--since", "main~2", "--onto", "main", "--repo", str(clone), "--json").require(0)
    (change, *_) = run.json["changes"]
    assert change["onto"]["upstream_state"] == {"2.11": "absent", "2.13": "present upstream"}[name]
