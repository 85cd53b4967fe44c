"""A branch with commits that the tool did not make is never overwritten without --force, and kept with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace

import pytest

from checkouts import Checkout, Lab
from checkouts.lab import write_series
from checkouts.sources import METAL, TITLES
from patchstack.stack.record import Record
from patchstack.tree.git import Repository

Work = Callable[[Checkout], None]


@pytest.fixture
def stacked(checkout: Checkout) -> Checkout:
    """A checkout that holds the stack, with ``main`` checked out and a revised series that would move the branch."""
    checkout.run().require()
    write_series(checkout.lab.series, {"fade_notes.md": ("What", "All that")})
    return checkout


def on_the_stack(work: Work) -> Work:
    """Do some work with the branch checked out, then go back to ``main``."""

    def do(checkout: Checkout) -> None:
        checkout.git("switch", "-q", checkout.branch)
        work(checkout)
        checkout.git("switch", "-q", "main")

    do.__name__ = work.__name__
    return do


@on_the_stack
def amends_the_message(checkout: Checkout) -> None:
    checkout.git("commit", "-q", "--amend", "-m", "[MPS] Describe fade\n\nIn words of my own.")


@on_the_stack
def amends_the_files(checkout: Checkout) -> None:
    (checkout.path / "docs" / "fade.md").write_text("better\n")
    checkout.git("commit", "-q", "-a", "--amend", "--no-edit")


@on_the_stack
def amends_a_lower_commit(checkout: Checkout) -> None:
    tip = checkout.tip("HEAD")
    checkout.git("reset", "-q", "--hard", "HEAD~2")
    checkout.git("commit", "-q", "--amend", "-m", "[MPS] Add fade\n\nReworded.")
    checkout.git("cherry-pick", f"{tip}~2..{tip}")


@on_the_stack
def adds_a_commit_on_top(checkout: Checkout) -> None:
    checkout.commit("Mine", {"mine.txt": "mine\n"})


@on_the_stack
def adds_an_empty_commit_in_the_middle(checkout: Checkout) -> None:
    tip = checkout.tip("HEAD")
    checkout.git("reset", "-q", "--hard", "HEAD~1")
    checkout.git("commit", "-q", "--allow-empty", "-m", "Mine: see the discussion")
    checkout.git("cherry-pick", tip)


@on_the_stack
def puts_a_commit_below(checkout: Checkout) -> None:
    tip = checkout.tip("HEAD")
    checkout.git("reset", "-q", "--hard", "main")
    checkout.commit("Mine", {"mine.txt": "mine\n"})
    checkout.git("cherry-pick", f"main..{tip}")


@on_the_stack
def rebases_the_stack(checkout: Checkout) -> None:
    checkout.git("rebase", "-q", "--onto", "main~1", "main")


@on_the_stack
def merges_other_work_into_it(checkout: Checkout) -> None:
    checkout.git("switch", "-q", "-c", "other", "main")
    checkout.commit("Other work", {"other.txt": "other\n"})
    checkout.git("switch", "-q", checkout.branch)
    checkout.git("merge", "-q", "-m", "Merge", "other")


def makes_a_branch_of_that_name(checkout: Checkout) -> None:
    checkout.git("switch", "-q", "-C", checkout.branch, "main")
    checkout.commit("Mine", {"mine.txt": "mine\n"})
    checkout.git("switch", "-q", "main")


def has_a_branch_without_common_history(checkout: Checkout) -> None:
    tree = checkout.git("rev-parse", "main^{tree}")
    checkout.git("branch", "-f", checkout.branch, checkout.git("commit-tree", tree, "-m", "Another root"))


WORK = [
    amends_the_message,
    amends_the_files,
    amends_a_lower_commit,
    adds_a_commit_on_top,
    adds_an_empty_commit_in_the_middle,
    puts_a_commit_below,
    rebases_the_stack,
    merges_other_work_into_it,
    makes_a_branch_of_that_name,
    has_a_branch_without_common_history,
]


@pytest.mark.parametrize("work", WORK, ids=lambda work: work.__name__.replace("_", " "))
def test_work_of_the_user_is_not_overwritten_and_with_force_it_is_kept(stacked: Checkout, work: Work) -> None:
    work(stacked)
    mine = stacked.tip()
    with stacked.nothing_written_but("apply-stack"):
        stacked.run().refused(3, "that apply-stack did not make", "nothing was written", "--force")
    result = stacked.run("--force", "--json").require()
    assert stacked.tip() == result.json["tip"] != mine
    assert stacked.tip(result.json["backup"]) == mine
    assert stacked.complete()


def test_the_backup_is_named_to_a_person_too(stacked: Checkout) -> None:
    adds_a_commit_on_top(stacked)
    mine = stacked.tip()
    said = stacked.run("--force").require().out
    assert f"the old tip is kept as refs/apply-stack/backup/stack/fade/{mine[:12]}" in said


def test_every_forced_run_keeps_its_own_backup(stacked: Checkout) -> None:
    tips = []
    for _ in range(2):
        adds_a_commit_on_top(stacked)
        tips.append(stacked.tip())
        stacked.run("--force").require()
    kept = stacked.git("for-each-ref", "--format=%(objectname)", "refs/apply-stack/backup").split()
    assert sorted(kept) == sorted(tips)


def test_force_without_foreign_commits_leaves_no_backup(stacked: Checkout) -> None:
    assert stacked.run("--force", "--json").require().json["backup"] is None


def test_the_tools_own_stack_is_replaced_when_the_series_changes(stacked: Checkout) -> None:
    before = stacked.tip()
    assert stacked.run("--json").require().json["moved"] is True
    assert stacked.tip() != before
    assert stacked.complete()


@pytest.mark.parametrize("to", ["main", "main~1", "stack/fade~1", "stack/fade~2"])
def test_a_branch_reset_to_a_lower_commit_is_completed_again(stacked: Checkout, to: str) -> None:
    stacked.git("branch", "-f", stacked.branch, to)
    stacked.run().require()
    assert stacked.complete()


def test_the_stack_follows_when_main_moves(stacked: Checkout) -> None:
    stacked.commit("Upstream goes on", {"README.md": "newer\n"})
    stacked.run().require()
    assert stacked.complete()
    assert stacked.tip(f"{stacked.branch}~3") == stacked.tip("main")


def test_the_stack_follows_when_main_is_thrown_back(stacked: Checkout) -> None:
    stacked.git("update-ref", "refs/remotes/origin/main", "main")
    stacked.git("reset", "-q", "--hard", "main~1")
    stacked.run().require()
    assert stacked.tip(f"{stacked.branch}~3") == stacked.tip("main")


def test_a_release_branch_below_the_old_stack_is_not_taken_for_work_of_the_user(stacked: Checkout) -> None:
    stacked.git("switch", "-q", "-c", "release/2.11")
    stacked.commit("Only for the release", {"README.md": "release\n"})
    stacked.run(onto="release/2.11").require()
    stacked.run().require()
    assert stacked.complete()


def test_commits_below_the_old_stack_that_no_other_branch_holds_are_work_of_the_user(stacked: Checkout) -> None:
    stacked.git("switch", "-q", "-c", "topic")
    stacked.commit("Mine", {"README.md": "mine\n"})
    stacked.run(onto="topic").require()
    stacked.git("switch", "-q", "main")
    stacked.git("branch", "-q", "-D", "topic")
    with stacked.branch_kept():
        stacked.run().refused(3, "'Mine'")


def test_a_landed_stack_is_upstreams_and_not_work_of_the_user(stacked: Checkout) -> None:
    stacked.git("update-ref", "refs/remotes/origin/main", stacked.branch)
    stacked.run().require()
    assert stacked.complete()


@pytest.mark.parametrize("onto", ["main~1", "v1"])
def test_main_itself_is_not_overwritten(stacked: Checkout, onto: str) -> None:
    stacked.git("tag", "v1", "main~1")
    stacked.git("switch", "-q", "--detach")
    before = stacked.tip("main")
    stacked.run("--branch", "main", onto=onto).refused(3, "'The second commit'")
    assert stacked.tip("main") == before


def test_another_branch_cannot_be_written_through_a_symbolic_ref(stacked: Checkout) -> None:
    stacked.git("branch", "precious", "main~1")
    stacked.git("symbolic-ref", "refs/heads/stack/link", "refs/heads/precious")
    with stacked.branch_kept():
        stacked.run("--branch", "stack/link", "--force").refused(3, "symbolic ref", "refs/heads/precious")


@pytest.mark.parametrize(("existing", "wanted"), [("stack", "stack/fade"), ("x/y/z", "x/y"), ("x", "x/y/z")])
def test_a_name_that_is_a_folder_of_another_branch_is_refused(checkout: Checkout, existing: str, wanted: str) -> None:
    checkout.git("branch", existing)
    with checkout.untouched():
        checkout.run("--branch", wanted).refused(3, f"found {existing}", "cannot have this branch beside another")


# What ghstack does to the commits of a stack when it submits them.


def submit(checkout: Checkout, *, first: int = 101) -> dict[str, list[str]]:
    """Rewrite every commit as ghstack does: trailers added, nothing else; title to the trailers it got."""
    commits = checkout.git("rev-list", "--reverse", f"main..{checkout.branch}").split()
    parent, trailers = checkout.tip("main"), {}
    for number, commit in enumerate(commits, first):
        tree = checkout.git("rev-parse", f"{commit}^{{tree}}")
        message = checkout.git("log", "-1", "--format=%B", commit).rstrip("\n")
        lines = [f"ghstack-source-id: {tree}", f"Pull-Request: https://github.com/pytorch/pytorch/pull/{number}"]
        trailers[message.split("\n", 1)[0]] = lines
        text = "\n".join([message, "", *lines]) + "\n"
        parent = checkout.git("commit-tree", tree, "-p", parent, "-F", "-", stdin=text)
    checkout.git("update-ref", f"refs/heads/{checkout.branch}", parent)
    return trailers


def trailers_of(checkout: Checkout) -> dict[str, list[str]]:
    """Title to the last paragraph, for the commits of the stack that have ghstack's trailers."""
    found = {}
    for commit in checkout.git("rev-list", f"main..{checkout.branch}").split():
        message = checkout.git("log", "-1", "--format=%B", commit).strip()
        last = message.rsplit("\n\n", 1)[1].split("\n")
        if last[0].startswith("ghstack-source-id"):
            found[message.split("\n", 1)[0]] = last
    return found


def test_a_submitted_stack_is_the_tools_own_and_its_trailers_are_carried_over(stacked: Checkout) -> None:
    trailers = submit(stacked)
    stacked.run().require()
    assert trailers_of(stacked) == trailers
    assert set(trailers) == set(TITLES)


def test_trailers_survive_one_regeneration_after_another(stacked: Checkout) -> None:
    trailers = submit(stacked)
    for text in ("first", "second"):
        stacked.commit(f"Upstream, {text}", {"README.md": text})
        stacked.run().require()
        assert trailers_of(stacked) == trailers


def test_a_second_submit_of_a_regenerated_stack_is_recognised_too(stacked: Checkout) -> None:
    submit(stacked)
    stacked.run().require()
    again = stacked.git("log", "-1", "--format=%B", stacked.branch)
    changed = again.replace("ghstack-source-id: ", "ghstack-source-id: f")
    tree = stacked.git("rev-parse", f"{stacked.branch}^{{tree}}")
    tip = stacked.git("commit-tree", tree, "-p", f"{stacked.branch}~1", "-F", "-", stdin=changed + "\n")
    stacked.git("branch", "-f", stacked.branch, tip)
    write_series(stacked.lab.series, {"fade_notes.md": ("What", "Once more, what")})
    stacked.run().require()
    assert any("f" in line for line in trailers_of(stacked)[TITLES[-1]])


def test_with_force_the_trailers_below_the_users_commit_are_carried_over(stacked: Checkout) -> None:
    trailers = submit(stacked)
    stacked.run().require()
    adds_a_commit_on_top(stacked)
    stacked.run("--force").require()
    assert trailers_of(stacked) == trailers


def test_with_force_an_amended_commit_keeps_its_pull_request(stacked: Checkout) -> None:
    trailers = submit(stacked)
    amends_the_files(stacked)
    stacked.run("--force").require()
    assert trailers_of(stacked) == trailers


def test_leaving_out_a_change_with_a_pull_request_is_said_and_the_branch_is_kept(stacked: Checkout) -> None:
    submit(stacked)
    before = stacked.tip()
    result = stacked.run("--only", "fade", "--json").require()
    assert stacked.tip(result.json["backup"]) == before
    assert any("--only leaves out 'fade_tests'" in warning for warning in result.json["warnings"])
    assert set(trailers_of(stacked)) == {TITLES[0]}


def test_a_symbolic_ref_whose_branch_is_gone_does_not_bring_that_branch_about(stacked: Checkout) -> None:
    stacked.git("symbolic-ref", "refs/heads/stack/link", "refs/heads/gone")
    stacked.run("--branch", "stack/link").refused(3, "symbolic ref", "refs/heads/gone")
    assert stacked.git("branch", "--list", "gone") == ""


# The record of what the tool made.


def test_without_the_record_nothing_is_known_to_be_the_tools_own(stacked: Checkout) -> None:
    (stacked.git_dir / "apply-stack" / "made.jsonl").unlink()
    with stacked.branch_kept():
        stacked.run().refused(3, "3 commit(s) that apply-stack did not make")
    assert stacked.run("--force", "--json").require().json["backup"]


def test_a_record_cut_short_loses_only_what_was_cut(stacked: Checkout) -> None:
    record = stacked.git_dir / "apply-stack" / "made.jsonl"
    record.write_bytes(record.read_bytes()[:-20])
    with stacked.branch_kept():
        stacked.run().refused(3, "1 commit(s) that apply-stack did not make", TITLES[-1])
    stacked.git("branch", "-f", stacked.branch, f"{stacked.branch}~1")
    stacked.run().require()
    assert stacked.complete()
    last = record.read_text().splitlines()[-1]
    assert json.loads(last)["commit"] == stacked.tip()


@pytest.mark.parametrize("rubbish", [b"\xff\xfe\x00", b"null\n[]\n{}\n7\n", b'{"commit": 1, "tree": []}\n', b"\n\n"])
def test_rubbish_in_the_record_is_skipped(stacked: Checkout, rubbish: bytes) -> None:
    with (stacked.git_dir / "apply-stack" / "made.jsonl").open("ab") as record:
        record.write(rubbish)
    stacked.run().require()
    assert stacked.complete()


@pytest.mark.parametrize("key", ["commit", "tree", "series", "change", "message", "onto"])
@pytest.mark.parametrize("value", [[], None, 7, "\ud800"], ids=repr)
def test_a_line_of_the_record_whose_values_are_no_texts_is_skipped(stacked: Checkout, key: str, value: object) -> None:
    record = Record(Repository.open(stacked.path))
    before = record.read()
    with record.file.open("a") as out:
        out.write(json.dumps({**asdict(before[0]), key: value}) + "\n")
    assert record.read() == before


def test_a_record_that_cannot_be_read_is_a_clear_refusal(stacked: Checkout) -> None:
    record = stacked.git_dir / "apply-stack" / "made.jsonl"
    record.unlink()
    record.mkdir()
    with stacked.branch_kept():
        stacked.run().refused(4, "made.jsonl")


def test_two_worktrees_share_one_record(lab: Lab, stacked: Checkout) -> None:
    linked = lab.root / "linked"
    stacked.git("worktree", "add", "-q", "--detach", str(linked))
    lab.git(linked, "status")
    Checkout(lab, linked, stacked.git_dir).run().require()
    assert stacked.complete()


def test_the_file_that_the_stack_edits_does_not_matter_in_the_working_directory(stacked: Checkout) -> None:
    (stacked.path / METAL).unlink()
    with stacked.untouched():
        stacked.run().require()


def test_commits_that_a_renamed_series_makes_again_are_recorded_as_its_own(stacked: Checkout) -> None:
    with Repository.open(stacked.path) as repository:
        record = Record(repository)
        made = record.read()
        renamed = [replace(one, series="renamed") for one in made]
        record.append([*made, *renamed])
        record.append(renamed)
        assert record.read() == [*made, *renamed]
