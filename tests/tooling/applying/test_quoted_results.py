"""Messages that quote results: only about the very trees of the commits, and without changing any tree."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from checkouts import Checkout
from checkouts.lab import write_series

GATE = {"name": "metal-run", "verdict": "passed", "cases": 3, "failed": 0, "worst_error": None, "details": {}}


@pytest.fixture
def stacked(checkout: Checkout) -> Checkout:
    checkout.run().require()
    return checkout


def trees(checkout: Checkout, tip: str = "") -> list[str]:
    """Trees from main up."""
    return checkout.git("log", "--reverse", "--format=%T", f"main~1..{tip or checkout.branch}").split()


def results(checkout: Checkout, judged: Sequence[int] = (0, 1, 2)) -> Path:
    """A report about some of the commits, as validate-stack --each-commit writes it."""
    known = trees(checkout)
    report = {
        "partial": False,
        "command": "validate-stack --each-commit",
        "environment": {"platform": "Linux-x86_64"},
        "base_tree": known[0],
        "head_tree": known[-1],
        "gates": [GATE],
        "commits": [{"base_tree": known[i], "tree": known[i + 1], "gates": [GATE]} for i in judged],
    }
    file = checkout.lab.root / "results.json"
    file.write_text(json.dumps(report))
    return file


def bodies(checkout: Checkout) -> list[str]:
    """Messages from the bottom up."""
    return messages(checkout, checkout.branch)


def messages(checkout: Checkout, tip: str) -> list[str]:
    listed = checkout.git("log", "--reverse", "-z", "--format=%B", f"main..{tip}")
    return [message.rstrip("\n") + "\n" for message in listed.split("\0") if message]


def test_results_get_into_every_message_and_no_tree_changes(stacked: Checkout) -> None:
    before = trees(stacked)
    assert all("Nothing was run on this version" in body for body in bodies(stacked))
    stacked.run("--results", str(results(stacked))).require()
    assert all("- metal-run: passed, 3 cases" in body for body in bodies(stacked))
    assert trees(stacked) == before


def test_the_same_results_give_the_same_commits(stacked: Checkout) -> None:
    file = str(results(stacked))
    first = stacked.run("--results", file, "--json").require().json["tip"]
    stacked.run().require()
    assert stacked.run("--results", file, "--json").require().json["tip"] == first


def test_results_of_other_trees_are_refused_as_stale(stacked: Checkout) -> None:
    file = results(stacked)
    stacked.commit("Upstream goes on", {"README.md": "newer\n"})
    with stacked.branch_kept():
        stacked.run("--results", str(file)).refused(2, "stale", "validate-stack --each-commit")


def test_a_dry_run_refuses_stale_results_and_says_which_commits_lack_some(stacked: Checkout) -> None:
    file = results(stacked, [0, 2])
    with stacked.nothing_written():
        notes = stacked.run("--results", str(file), "--dry-run", "--json").require().json["notes"]
        assert [note for note in notes if "no results for the tree of '[MPS] Test fade'" in note]
    stacked.commit("Upstream goes on", {"README.md": "newer\n"})
    with stacked.nothing_written():
        stacked.run("--results", str(file), "--dry-run").refused(2, "stale")


def test_results_of_the_whole_stack_are_refused_with_the_option_that_was_left_out(stacked: Checkout) -> None:
    file = results(stacked, [])
    with stacked.branch_kept():
        stacked.run("--results", str(file)).refused(2, "the whole stack", "validate-stack --each-commit")


def test_a_commit_that_changed_since_says_that_nothing_was_run_on_it(stacked: Checkout) -> None:
    file = results(stacked)
    write_series(stacked.lab.series, {"overlay/docs/fade.md": ("halves", "takes half of")})
    warnings = stacked.run("--results", str(file), "--json").require().json["warnings"]
    assert [("passed" in body) for body in bodies(stacked)] == [True, True, False]
    assert [w for w in warnings if "no results for the tree of '[MPS] Describe fade'" in w] == warnings


def test_a_stack_with_results_can_be_mailed_and_resubmitted_by_the_same_words(stacked: Checkout) -> None:
    folder = stacked.lab.root / "mails"
    stacked.run("--results", str(results(stacked)), "--format-patch", str(folder)).require()
    stacked.git("switch", "-q", "--detach", "main")
    stacked.git("am", "-q", "--keep-non-patch", *map(str, sorted(folder.iterdir())))
    assert trees(stacked, "HEAD") == trees(stacked)
    assert messages(stacked, "HEAD") == bodies(stacked)


@pytest.mark.parametrize("name", ["fade_notes", "fade"])
def test_a_table_goes_to_the_change_it_names(stacked: Checkout, name: str) -> None:
    table = stacked.lab.root / "table.md"
    table.write_text("| a | b |\n|---|---|\n")
    stacked.run("--bench", f"{name}={table}").require()
    titles = [body.split("\n", 1)[0] for body in bodies(stacked) if "| a | b |" in body]
    assert titles == [{"fade": "[MPS] Add fade", "fade_notes": "[MPS] Describe fade"}[name]]


def test_a_table_without_a_change_is_asked_about_where_there_are_several(stacked: Checkout) -> None:
    table = stacked.lab.root / "table.md"
    table.write_text("| a |\n")
    stacked.run("--bench", str(table)).refused(2, "which commit", "fade|fade_tests|fade_notes")


def test_a_table_that_would_cut_the_message_is_refused(stacked: Checkout) -> None:
    table = stacked.lab.root / "table.md"
    table.write_text("---\n| a |\n")
    with stacked.branch_kept():
        stacked.run("--bench", f"fade={table}").refused(2, "mail-cut")


KEYS = {
    "co_authors: [Ada <ada@example.com>]": "Co-authored-by: Ada <ada@example.com>",
    "test_plan: [python test/test_mps.py -k fade]": "\npython test/test_mps.py -k fade\n",
    "cc: [ada, pytorch/mps]": "\ncc @ada @pytorch/mps\n",
}


@pytest.mark.parametrize(("key", "text"), KEYS.items(), ids=[key.split(":")[0] for key in KEYS])
def test_a_key_of_the_manifest_gets_into_the_message(stacked: Checkout, key: str, text: str) -> None:
    write_series(stacked.lab.series, {"series.yaml": ("    ops: [fade]\n", f"    ops: [fade]\n    {key}\n")})
    stacked.run().require()
    assert text in bodies(stacked)[0]


BAD_KEYS = ["co_authors: [Ada]", 'labels: ["a,b"]', 'cc: ["@ada"]', 'test_plan: ["a`b"]', 'labels: [""]', "cc: [null]"]


@pytest.mark.parametrize("key", BAD_KEYS)
def test_a_value_that_cannot_be_used_is_refused_with_its_line(stacked: Checkout, key: str) -> None:
    write_series(stacked.lab.series, {"series.yaml": ("    ops: [fade]\n", f"    ops: [fade]\n    {key}\n")})
    told = stacked.run().require(2).err.splitlines()
    assert [line.split("series.yaml:")[1].split(":")[0] for line in told] == ["7", "29", "47"]  # each change has it


def test_labels_are_in_the_report(stacked: Checkout) -> None:
    write_series(
        stacked.lab.series, {"series.yaml": ("    ops: [fade]\n", "    ops: [fade]\n    labels: [ciflow/mps]\n")}
    )
    report = stacked.run("--json").require().json
    assert report["changes"][0]["labels"] == ["ciflow/mps"]
    assert report["submit_command"] == 'ghstack submit --label "ciflow/mps"'


def test_a_label_that_a_shell_would_read_is_quoted(stacked: Checkout) -> None:
    label = "    ops: [fade]\n    labels: ['a $(touch x)']\n"
    write_series(stacked.lab.series, {"series.yaml": ("    ops: [fade]\n", label)})
    assert stacked.run("--json").require().json["submit_command"] == "ghstack submit --label 'a $(touch x)'"


def test_an_empty_table_and_a_second_one_are_refused(stacked: Checkout, tmp_path: Path) -> None:
    empty, table = tmp_path / "empty.md", tmp_path / "table.md"
    empty.write_text("\n\n")
    table.write_text("| a |\n|---|\n| 1 |\n")
    with stacked.branch_kept():
        stacked.run("--bench", f"fade={empty}").refused(2, "no table")
        stacked.run("--bench", f"fade={table}", "--bench", f"fade={table}").refused(2, "second")


def test_a_table_about_a_change_that_becomes_no_commit_is_refused(stacked: Checkout, tmp_path: Path) -> None:
    table = tmp_path / "table.md"
    table.write_text("| a |\n|---|\n| 1 |\n")
    with stacked.branch_kept():
        stacked.run("--only", "fade", "--bench", f"fade_notes={table}").refused(2, "becomes no commit", "fade")


def test_a_table_with_an_open_code_block_is_refused(stacked: Checkout, tmp_path: Path) -> None:
    table = tmp_path / "table.md"
    table.write_text("```\n| a |\n")
    with stacked.branch_kept():
        stacked.run("--bench", f"fade={table}").refused(2, "a code block of the table is not closed")
    table.write_text("```\n| a |\n```\n")
    stacked.run("--bench", f"fade={table}").require()
