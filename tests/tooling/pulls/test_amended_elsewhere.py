"""Somebody else changed a pull request: the run stops until that was looked at, and then the same one is updated."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkouts.sources import TITLES
from ghstack_hub import pull, url_of

from .conftest import Contributor

THREE = [pull(500 + index, title) for index, title in enumerate(TITLES)]


def amend_elsewhere(contributor: Contributor) -> Path:
    """A colleague checks the whole stack out with ghstack, amends its top and submits; their clone."""
    other = contributor.another_clone()
    contributor.hub.checkout(other, 502)
    (other / "docs" / "fade.md").write_text("Fading, as a colleague sees it.\n")
    contributor.hub.git(other, "commit", "-q", "-a", "--amend", "--no-edit")
    contributor.hub.submit(other)
    return other


def push_to_the_head(contributor: Contributor, number: int) -> None:
    """What accepting a suggestion on the web does."""
    other = contributor.another_clone()
    place = f"gh/me/{number - 499}/head"
    contributor.hub.git(other, "switch", "-q", "--detach", f"origin/{place}")
    (other / "README.md").write_text("suggested\n")
    contributor.hub.git(other, "commit", "-q", "-a", "-m", "Apply suggestions")
    contributor.hub.git(other, "push", "-q", "origin", f"HEAD:{place}")


def test_a_remote_amend_stops_the_run_until_it_was_checked_out(submitted: Contributor) -> None:
    amend_elsewhere(submitted)
    submitted.checkout.git("fetch", "-q", "origin")
    submitted.upstream_goes_on("newer\n")
    with submitted.checkout.branch_kept():
        submitted.checkout.run().refused(
            3, "amended elsewhere", url_of(502), "nothing was written", f"ghstack checkout {url_of(502)}"
        )
    submitted.hub.checkout(submitted.path, 502)
    submitted.checkout.git("switch", "-q", "main")
    report = submitted.apply()
    assert "git show" in report["pull_requests"][2]["note"]
    assert submitted.submit_as_predicted() == dict.fromkeys(TITLES, "Updated")
    assert submitted.hub.pulls() == THREE


def test_a_dry_run_sees_a_remote_amend_too(submitted: Contributor) -> None:
    amend_elsewhere(submitted)
    submitted.checkout.git("fetch", "-q", "origin")
    submitted.checkout.run("--dry-run").refused(3, "amended elsewhere")


def test_a_damaged_ref_beside_it_does_not_hide_a_remote_amend(submitted: Contributor) -> None:
    amend_elsewhere(submitted)
    submitted.checkout.git("fetch", "-q", "origin")
    damaged = submitted.checkout.git_dir / "refs/remotes/origin/gh/me/99/orig"
    damaged.parent.mkdir(parents=True)
    damaged.write_text(f"{'1' * 40}\n")
    submitted.checkout.run("--dry-run").refused(3, "amended elsewhere", url_of(502))
    assert not submitted.check().require(3).json["ready"]


def test_a_remote_amend_that_was_not_fetched_is_left_to_ghstack_which_fetches(submitted: Contributor) -> None:
    """The seeded fault: what the remote's refs do not say yet, nobody here can know."""
    amend_elsewhere(submitted)
    submitted.apply()
    with pytest.raises(RuntimeError, match="Cowardly refusing"):
        submitted.submit()


def test_refs_that_were_never_fetched_are_said_to_tell_nothing(submitted: Contributor) -> None:
    for ref in submitted.checkout.git("for-each-ref", "--format=%(refname)", "refs/remotes/origin/gh").split():
        submitted.checkout.git("update-ref", "-d", ref)
    report = submitted.apply()
    assert all("cannot tell" in fate["note"] for fate in report["pull_requests"])
    assert report["warnings"] == []


def test_submit_check_says_what_ghstack_will_refuse(submitted: Contributor) -> None:
    amend_elsewhere(submitted)
    submitted.checkout.git("fetch", "-q", "origin")
    told = submitted.check().require(3).json
    stopping = [concern for concern in told["concerns"] if concern["stops"]]
    assert [concern["rule"] for concern in stopping] == ["stale-source-id"]
    assert stopping[0]["next_command"] == f"ghstack checkout {url_of(502)}"
    with pytest.raises(RuntimeError, match="Cowardly refusing"):
        submitted.submit()


def test_an_edit_of_the_head_stops_the_run_until_it_was_looked_at(submitted: Contributor) -> None:
    push_to_the_head(submitted, 501)
    submitted.checkout.git("fetch", "-q", "origin")
    submitted.upstream_goes_on("newer\n")
    with submitted.checkout.branch_kept():
        submitted.checkout.run().refused(
            3, "pushed to the head", url_of(501), "git switch --detach origin/gh/me/2/head"
        )
    submitted.checkout.git("switch", "-q", "--detach", "origin/gh/me/2/head")
    submitted.checkout.git("switch", "-q", "main")
    submitted.apply()
    assert submitted.submit() == dict.fromkeys(TITLES, "Updated")
    assert submitted.hub.pulls() == THREE


def test_ghstack_itself_would_undo_an_edit_of_the_head_without_a_word(submitted: Contributor) -> None:
    push_to_the_head(submitted, 501)
    submitted.checkout.git("fetch", "-q", "origin")
    told = submitted.check().require(3).json
    assert [concern["rule"] for concern in told["concerns"] if concern["stops"]] == ["edited-head"]
    assert submitted.submit()[TITLES[1]] == "Updated"
    shown = submitted.hub.git(submitted.hub.path, "show", "gh/me/2/head:README.md")
    assert "suggested" not in shown


def test_an_amended_pull_request_that_landed_stops_nothing(submitted: Contributor) -> None:
    other = amend_elsewhere(submitted)
    for number in (500, 501, 502):
        submitted.hub.land(other, number)
    submitted.checkout.git("fetch", "-q", "origin")
    submitted.pull_main()
    report = submitted.checkout.run("--json")
    assert "amended elsewhere" not in report.err
    assert report.status in (0, 3)


def test_another_clone_of_ones_own_goes_on_after_ghstack_checkout(submitted: Contributor) -> None:
    """A new clone has neither the branch nor a record; what HEAD was on is known by its titles."""
    other = submitted.another_clone()
    lab = submitted.checkout.lab
    submitted.hub.checkout(other, 502)
    lab.git(other, "switch", "-q", "main")
    lab.start(["--onto", "main", "--repo", str(other), "--series", str(lab.series), "--checkout", "--json"])
    report = lab.finish().require().json
    assert [fate["number"] for fate in report["pull_requests"]] == [500, 501, 502]
    assert {fate["source"] for fate in report["pull_requests"]} == {"the reflog of HEAD"}
    assert {fate["evidence"] for fate in report["pull_requests"]} == {"the same title"}
    assert submitted.hub.submit(other) == dict.fromkeys(TITLES, "Skipped")
    assert submitted.hub.pulls() == THREE


def test_a_pull_request_that_another_user_submitted_is_compared_too(submitted: Contributor) -> None:
    """Its refs stand under somebody else's name; they are found by the address of the pull request."""
    settings = submitted.checkout.lab.home / ".ghstackrc"
    settings.write_text(settings.read_text().replace("github_username = me", "github_username = somebody"))
    amend_elsewhere(submitted)
    submitted.checkout.git("fetch", "-q", "origin")
    submitted.checkout.run("--dry-run").refused(3, "amended elsewhere", url_of(502))
