"""Where the trailers of the last submit are found when the branch has them no longer, and who is believed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from checkouts.lab import write_series
from checkouts.sources import TITLES
from ghstack_hub import pull

from .conftest import Contributor

THREE = [pull(500 + index, title) for index, title in enumerate(TITLES)]
BRANCH, BRANCH_LOG, HEAD_LOG, RECORD = (
    "the branch",
    "the reflog of the branch",
    "the reflog of HEAD",
    "the record of earlier runs",
)
REMOTE = "the remote's refs, where its tree and its words are a commit's that was made here"

Lose = Callable[[Contributor], None]


def delete_the_branch(contributor: Contributor) -> None:
    contributor.checkout.git("switch", "-q", "main")
    contributor.checkout.git("branch", "-q", "-D", "stack/fade")


def reset_the_branch(contributor: Contributor) -> None:
    contributor.checkout.git("reset", "-q", "--hard", "main")


def delete_it_with_its_reflogs(contributor: Contributor) -> None:
    """What is left then are the remote's refs, whose commits were made here."""
    delete_the_branch(contributor)
    contributor.forget("reflogs")


def delete_it_after_a_second_round(contributor: Contributor) -> None:
    """The record has the trailers that the second stack took over from the first."""
    write_series(contributor.checkout.lab.series, {"fade.md": ("Fade a tensor", "Fade any tensor")})
    contributor.apply()
    delete_it_with_its_reflogs(contributor)


LOSSES = [
    (delete_the_branch, HEAD_LOG),
    (reset_the_branch, BRANCH_LOG),
    (delete_it_with_its_reflogs, REMOTE),
    (delete_it_after_a_second_round, RECORD),
]


@pytest.mark.parametrize(("lose", "source"), LOSSES, ids=[lose.__name__.replace("_", " ") for lose, _ in LOSSES])
def test_the_same_pull_requests_are_updated_after(submitted: Contributor, lose: Lose, source: str) -> None:
    lose(submitted)
    report = submitted.apply()
    assert [fate["source"] for fate in report["pull_requests"]] == [source] * 3
    assert submitted.submit_as_predicted() == dict.fromkeys(TITLES, "Skipped")
    assert submitted.hub.pulls() == THREE


def test_with_everything_forgotten_new_pull_requests_would_be_opened_and_submit_check_says_so(
    submitted: Contributor,
) -> None:
    """The seeded fault: nothing ties the stack to its pull requests any more."""
    delete_it_with_its_reflogs(submitted)
    submitted.forget("record")
    report = submitted.apply()
    assert [fate["becomes"] for fate in report["pull_requests"]] == ["new"] * 3
    assert {c["rule"] for c in submitted.check().require(3).json["concerns"]} == {"duplicate"}
    assert submitted.submit() == dict.fromkeys(TITLES, "Created")
    assert len(submitted.hub.pulls()) == 6


def test_a_commit_amended_with_other_words_keeps_its_pull_request(submitted: Contributor) -> None:
    """Its trailers are gone from the branch, its title is another: the commit before it tells."""
    submitted.checkout.git("commit", "-q", "--amend", "-m", "[MPS] Describe fade in my words")
    report = submitted.apply("--force")
    assert report["pull_requests"][2]["source"] == BRANCH_LOG
    assert submitted.submit() == dict.fromkeys(TITLES, "Skipped")
    assert submitted.hub.pulls() == THREE


def test_a_rebased_commit_with_another_title_is_known_by_its_pull_request(submitted: Contributor) -> None:
    submitted.upstream_goes_on("newer\n")
    submitted.checkout.git("switch", "-q", "stack/fade")
    submitted.checkout.git("rebase", "-q", "main")
    message = submitted.checkout.git("log", "-1", "--format=%B").replace(TITLES[2], "[MPS] Describe it better")
    submitted.checkout.git("commit", "-q", "--amend", "-F", "-", stdin=message)
    report = submitted.apply("--force")
    last = report["pull_requests"][2]
    assert (last["number"], last["source"]) == (502, BRANCH)
    assert last["evidence"] == "an earlier commit of the change named the same pull request"
    assert submitted.submit() == dict.fromkeys(TITLES, "Updated")
    assert submitted.hub.pulls() == THREE


def test_a_commit_that_was_unlinked_on_purpose_stays_unlinked(submitted: Contributor) -> None:
    submitted.hub.unlink(submitted.path)
    report = submitted.apply()
    assert [fate["becomes"] for fate in report["pull_requests"]] == ["new"] * 3
    assert all("unlinked on the branch" in warning for warning in report["warnings"])
    assert submitted.submit() == dict.fromkeys(TITLES, "Created")


def test_a_submit_that_died_before_it_rewrote_the_commits_is_recognised(stacked: Contributor) -> None:
    """GitHub has the pull requests, the branch knows nothing of them."""
    before = stacked.checkout.tip()
    stacked.submit()
    stacked.checkout.git("reset", "-q", "--hard", before)
    stacked.forget("reflogs")
    report = stacked.apply()
    assert {(fate["number"], fate["source"]) for fate in report["pull_requests"]} == {
        (number, REMOTE) for number in (500, 501, 502)
    }
    assert stacked.submit() == dict.fromkeys(TITLES, "Skipped")
    assert stacked.hub.pulls() == THREE


def test_pull_requests_of_another_series_on_the_same_titles_are_not_taken_from_the_record(
    submitted: Contributor,
) -> None:
    record = submitted.checkout.git_dir / "apply-stack" / "made.jsonl"
    record.write_text(record.read_text().replace('"series": "fade"', '"series": "other"'))
    delete_it_with_its_reflogs(submitted)
    assert {fate["becomes"] for fate in submitted.apply()["pull_requests"]} == {"new"}


def test_a_linked_worktree_knows_what_head_was_on_in_the_main_one(submitted: Contributor) -> None:
    delete_the_branch(submitted)
    linked = submitted.checkout.lab.root / "linked"
    submitted.checkout.git("worktree", "add", "-q", "--detach", str(linked), "main")
    lab = submitted.checkout.lab
    lab.start(["--onto", "main", "--repo", str(linked), "--series", str(lab.series), "--json"])
    report = lab.finish().require().json
    assert {fate["source"] for fate in report["pull_requests"]} == {HEAD_LOG}
