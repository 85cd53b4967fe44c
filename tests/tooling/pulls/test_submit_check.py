"""Everything that submit-check warns of is seen to go wrong in the real ghstack, and looking changes nothing."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from checkouts.sources import TITLES
from ghstack_hub import url_of

from .conftest import Contributor

POISON = "[ghstack-poisoned]"


def commit(contributor: Contributor, title: str, body: str = "Prose.") -> str:
    """One more commit on what is checked out."""
    return contributor.checkout.commit(f"{title}\n\n{body}", {f"{len(title)}{len(body)}.txt": title})


def stopping(contributor: Contributor, *more: str) -> list[str]:
    """Rules that say a submit would go wrong."""
    told = contributor.check(*more).require(3).json
    return [concern["rule"] for concern in told["concerns"] if concern["stops"]]


def notes(contributor: Contributor, *more: str) -> list[str]:
    """Rules of what should be known, on a stack that is ready."""
    told = contributor.check(*more).require(0).json
    assert not any(concern["stops"] for concern in told["concerns"])
    return [concern["rule"] for concern in told["concerns"]]


def test_a_stack_that_is_ready_says_what_each_commit_becomes(stacked: Contributor) -> None:
    with stacked.checkout.nothing_written():
        told = stacked.check().require(0).json
    assert told["ready"] is True
    assert told["target"] == "pytorch/pytorch"
    assert told["last_fetched"] is None
    assert [(c["position"], c["title"], c["action"], c["place"]) for c in told["commits"]] == [
        (position, title, "Created", f"gh/me/{position}") for position, title in enumerate(TITLES, 1)
    ]


def test_a_person_is_told_the_same(submitted: Contributor) -> None:
    lab = submitted.checkout.lab
    lab.start(["submit-check", "--repo", str(submitted.path)])
    said = lab.finish().require(0).out
    assert "unchanged #500" in said
    assert "last fetched: " in said
    assert said.endswith("\nready\n")


# What ghstack stops at. Each: what to do to a submitted stack, the rule, ghstack's own words.


def merges(contributor: Contributor) -> None:
    contributor.checkout.git("switch", "-q", "-c", "side", "main")
    commit(contributor, "[MPS] Side")
    contributor.checkout.git("switch", "-q", "stack/fade")
    contributor.checkout.git("merge", "-q", "--no-ff", "-m", "[MPS] Merge", "side")


def is_poisoned(contributor: Contributor) -> None:
    commit(contributor, "[MPS] Poison", POISON)


def has_nothing(contributor: Contributor) -> None:
    contributor.checkout.git("switch", "-q", "main")


def claims_one_pull_request_twice(contributor: Contributor) -> None:
    source = contributor.checkout.git("rev-parse", "HEAD^{tree}")
    commit(contributor, "[MPS] Again", f"Prose.\n\nghstack-source-id: {source}\nPull-Request: {url_of(502)}")


def is_tied_to_another_repository(contributor: Contributor) -> None:
    commit(contributor, "[MPS] Elsewhere", "Prose.\n\nPull-Request: https://github.com/other/place/pull/7")


def has_changed_what_landed(contributor: Contributor) -> None:
    contributor.hub.land(contributor.path, 502)
    contributor.checkout.git("switch", "-q", "stack/fade")
    (contributor.path / "docs" / "fade.md").write_text("changed after it landed\n")
    contributor.checkout.git("commit", "-q", "-a", "--amend", "--no-edit")
    contributor.checkout.git("fetch", "-q", "origin")


STOPS: list[tuple[Callable[[Contributor], None], str, str]] = [
    (merges, "merge", "head explode"),
    (is_poisoned, "message:poisoned", "poisoned"),
    (has_nothing, "no-commits", "no commits to process"),
    (claims_one_pull_request_twice, "one-pull-request", "occurs twice|strange|Cowardly"),
    (is_tied_to_another_repository, "other-repository", "unrecognized pull request"),
    (has_changed_what_landed, "landed", "closed PR #502"),
]


@pytest.mark.parametrize(
    ("spoil", "rule", "words"), STOPS, ids=[spoil.__name__.replace("_", " ") for spoil, *_ in STOPS]
)
def test_ghstack_stops_at_a_stack_that(
    submitted: Contributor, spoil: Callable[[Contributor], None], rule: str, words: str
) -> None:
    spoil(submitted)
    before = submitted.hub.pulls()
    assert rule in stopping(submitted)
    with pytest.raises((RuntimeError, AssertionError), match=words):
        submitted.submit()
    assert submitted.hub.pulls() == before


def test_a_landed_pull_request_is_left_out(submitted: Contributor) -> None:
    submitted.hub.land(submitted.path, 500)
    submitted.checkout.git("switch", "-q", "stack/fade")
    submitted.checkout.git("fetch", "-q", "origin")
    assert notes(submitted) == ["landed"]
    assert submitted.submit_as_predicted() == dict.fromkeys(TITLES[1:], "Skipped")


# What ghstack does without a word.


def test_commits_that_only_the_local_main_has_would_be_submitted_too(contributor: Contributor) -> None:
    commit(contributor, "[MPS] Mine on main")
    contributor.apply()
    assert stopping(contributor) == ["local-main"]
    told = contributor.check().require(3).json
    assert [item["intended"] for item in told["commits"]] == [False, True, True, True]
    assert contributor.submit()["[MPS] Mine on main"] == "Created"


def test_somebody_who_works_on_main_itself_is_not_told_that_main_is_an_accident(contributor: Contributor) -> None:
    commit(contributor, "[MPS] Straight on main")
    assert notes(contributor) == []
    assert contributor.submit_as_predicted() == {"[MPS] Straight on main": "Created"}


def test_a_quoted_pull_request_would_be_overwritten(submitted: Contributor) -> None:
    quote = f"As in Pull-Request: {url_of(500)} before, but not the same."
    commit(submitted, "[MPS] Another thing", quote)
    assert "message:pull-request-quoted" in stopping(submitted)
    told = submitted.check().require(3).json["commits"][-1]
    assert (told["action"], told["number"]) == ("Updated", 500)


def test_equal_titles_are_two_pull_requests_that_nobody_can_tell_apart(stacked: Contributor) -> None:
    commit(stacked, TITLES[0])
    assert stopping(stacked) == ["message:equal-titles"]


def test_an_empty_commit_is_left_out(stacked: Contributor) -> None:
    stacked.checkout.git("commit", "-q", "--allow-empty", "-m", "[MPS] Nothing\n\nProse.")
    assert notes(stacked) == ["empty"]
    assert "[MPS] Nothing" not in stacked.submit_as_predicted()


def test_a_commit_on_top_is_predicted_with_its_number(submitted: Contributor) -> None:
    commit(submitted, "[MPS] One more")
    assert submitted.submit_as_predicted()["[MPS] One more"] == "Created"


def test_a_title_of_an_open_pull_request_in_a_commit_without_trailers_is_a_duplicate(submitted: Contributor) -> None:
    submitted.checkout.git("commit", "-q", "--amend", "-m", f"{TITLES[2]}\n\nProse without trailers.")
    assert stopping(submitted) == ["duplicate"]
    assert submitted.submit()[TITLES[2]] == "Created"


def test_signed_off_by_is_no_hazard(stacked: Contributor) -> None:
    commit(stacked, "[MPS] Signed off", "Prose.\n\nSigned-off-by: Ada <ada@example.com>")
    assert notes(stacked) == []
    assert stacked.submit_as_predicted()["[MPS] Signed off"] == "Created"


# Where and how ghstack would run.


def test_another_branch_than_the_one_checked_out_is_not_what_ghstack_submits(submitted: Contributor) -> None:
    submitted.checkout.git("switch", "-q", "main")
    told = submitted.check("--branch", "stack/fade").require(3).json
    assert [(c["rule"], c["next_command"]) for c in told["concerns"]] == [("not-checked-out", "git switch stack/fade")]
    assert len(told["commits"]) == 3


def test_on_main_the_stack_to_switch_to_is_named(submitted: Contributor) -> None:
    submitted.checkout.git("switch", "-q", "main")
    assert submitted.check().require(3).json["concerns"][0]["next_command"] == "git switch stack/fade"


def test_a_detached_head_is_said_to_leave_the_commits_on_no_branch(submitted: Contributor) -> None:
    submitted.checkout.git("switch", "-q", "--detach")
    assert notes(submitted) == ["detached"]


def test_uncommitted_changes_are_said_to_stay_and_do(submitted: Contributor) -> None:
    (submitted.path / "README.md").write_text("not committed\n")
    assert notes(submitted) == ["uncommitted"]
    submitted.submit()
    assert (submitted.path / "README.md").read_text() == "not committed\n"


def test_in_the_middle_of_a_rebase_it_says_to_finish_first(submitted: Contributor) -> None:
    submitted.checkout.try_git("-c", "sequence.editor=sed -i 1s/^pick/edit/", "rebase", "-q", "-i", "HEAD~2")
    assert "unfinished" in stopping(submitted)


def test_without_settings_the_user_cannot_be_known(stacked: Contributor) -> None:
    (stacked.checkout.lab.home / ".ghstackrc").unlink()
    assert notes(stacked) == ["no-user"]
    assert {item["place"] for item in stacked.check().json["commits"]} == {None}


def test_settings_that_are_no_settings_are_refused_without_showing_them(stacked: Contributor) -> None:
    (stacked.checkout.lab.home / ".ghstackrc").write_text("github_oauth = secret\n")
    said = stacked.check().refused(2, "ghstack's settings cannot be read", ".ghstackrc")
    assert "secret" not in said


def test_refs_that_were_never_fetched_are_said_to_tell_nothing(submitted: Contributor) -> None:
    for ref in submitted.checkout.git("for-each-ref", "--format=%(refname)", "refs/remotes/origin/gh").split():
        submitted.checkout.git("update-ref", "-d", ref)
    (submitted.checkout.git_dir / "FETCH_HEAD").unlink()
    told = submitted.check().require(0).json
    assert told["last_fetched"] is None
    assert {concern["rule"] for concern in told["concerns"]} == {"not-fetched"}


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--remote", "nobody"], 3, "no such remote"),
        (["--branch", "nothing"], 2, "no such branch"),
        (["--branch", "-x"], 2, "not a branch name"),
    ],
)
def test_what_is_not_there_is_named(stacked: Contributor, arguments: list[str], status: int, words: str) -> None:
    stacked.check(*arguments).refused(status, words)


def test_a_remote_of_another_name_is_taken_from_the_settings(stacked: Contributor) -> None:
    stacked.checkout.git("remote", "rename", "origin", "upstream")
    stacked.check().refused(3, "no such remote")
    settings = stacked.checkout.lab.home / ".ghstackrc"
    settings.write_text(settings.read_text().replace("origin", "upstream"))
    assert stacked.check().require(0).json["remote"] == "upstream"


def test_a_main_that_was_never_fetched_is_named(stacked: Contributor) -> None:
    stacked.checkout.git("update-ref", "-d", "refs/remotes/origin/main")
    stacked.check().refused(3, "git fetch origin main")


def test_an_address_that_is_not_githubs_is_named(stacked: Contributor) -> None:
    stacked.checkout.git("config", "remote.origin.pushurl", "https://example.com/x.git")
    assert stopping(stacked) == ["no-repository"]


def test_a_tag_with_the_name_of_the_branch_does_not_hide_it(submitted: Contributor) -> None:
    submitted.checkout.git("tag", submitted.checkout.branch, "main")
    assert submitted.check().require(0).json["branch"] == submitted.checkout.branch


def test_a_file_called_head_is_no_revision(submitted: Contributor) -> None:
    submitted.checkout.git("switch", "-q", "--detach")
    (submitted.path / "HEAD").touch()
    assert notes(submitted) == ["detached"]


HOSTILE = [
    pytest.param('{"default_branch": "a\\u0000b"}', 3, id="NUL"),
    pytest.param('{"default_branch": "a\\ud800b"}', 3, id="surrogate"),
    pytest.param("[" * 200_000, 0, id="deep"),
]


@pytest.mark.parametrize(("info", "status"), HOSTILE)
def test_what_ghstack_remembers_of_github_may_be_anything(stacked: Contributor, info: str, status: int) -> None:
    (stacked.checkout.git_dir / "ghstack-repo-info.json").write_text(info)
    stacked.check().require(status)


def test_a_nul_in_the_settings_names_no_remote(stacked: Contributor) -> None:
    (stacked.path / ".ghstackrc").write_text("[ghstack]\nremote_name = a\0b\n")
    assert "no such remote" in stacked.check().require(3).json["error"]["problem"]


NUMBERS = ["Pull-Request: https://github.com/pytorch/pytorch/pull/{}", "gh-metadata: pytorch pytorch {} gh/me/1/head"]


@pytest.mark.parametrize("line", NUMBERS)
def test_a_number_that_no_pull_request_can_have_ties_a_commit_to_none(stacked: Contributor, line: str) -> None:
    commit(stacked, "[MPS] Numbered", "Prose.\n\n" + line.format("9" * 5000))
    assert stacked.check().require(3).json["commits"][-1]["number"] is None


def test_a_ref_of_the_remote_that_is_no_commit_is_nobodys_pull_request(stacked: Contributor) -> None:
    tree = stacked.checkout.git("rev-parse", "HEAD^{tree}").strip()
    stacked.checkout.git("update-ref", "refs/remotes/origin/gh/me/1/orig", tree)
    stacked.check().require(0)


def test_a_pipe_in_the_place_of_fetch_head_is_not_waited_for(submitted: Contributor) -> None:
    file = submitted.checkout.git_dir / "FETCH_HEAD"
    file.unlink(missing_ok=True)
    os.mkfifo(file)
    assert submitted.check().require(0).json["last_fetched"] is None


# Whose commits a stack stands on.


ALICE = "alice"


def alices_pull_request(contributor: Contributor) -> str:
    """A pull request of somebody else's, fetched; the ref of its commit."""
    other = contributor.another_clone("alice")
    (other / "alice.txt").write_text("hers\n")
    contributor.hub.git(other, "add", "-A")
    contributor.hub.git(other, "commit", "-q", "-m", "[MPS] Hers\n\nProse.")
    contributor.hub.submit(other, username=ALICE)
    contributor.checkout.git("fetch", "-q", "origin")
    return f"origin/gh/{ALICE}/1/orig"


def test_a_stack_on_somebodys_pull_request_names_them_and_ghstack_leaves_it_alone(contributor: Contributor) -> None:
    onto = alices_pull_request(contributor)
    contributor.checkout.run("--checkout", onto=onto).require()
    (concern,) = contributor.check().require(0).json["concerns"]
    assert concern["rule"] == "other-user"
    assert f"the pull request of {ALICE}, {url_of(500)} (gh/{ALICE}/1)" in concern["problem"]
    assert "local main" not in concern["problem"]
    done = contributor.submit_as_predicted(check_invariants=False)  # ghstack's own check knows one user only
    assert done == {"[MPS] Hers": "Skipped", **dict.fromkeys(TITLES, "Created")}


def test_a_stack_on_an_older_version_of_it_would_undo_what_they_did_since(contributor: Contributor) -> None:
    contributor.checkout.run("--checkout", onto=alices_pull_request(contributor)).require()
    other = contributor.checkout.lab.root / "alice"
    (other / "alice.txt").write_text("hers, amended\n")
    contributor.hub.git(other, "commit", "-q", "-a", "--amend", "--no-edit")
    contributor.hub.submit(other, username=ALICE)
    contributor.checkout.git("fetch", "-q", "origin")
    told = contributor.check().require(3).json["concerns"]
    (concern,) = [concern for concern in told if concern["rule"] == "other-user"]
    assert concern["next_command"] == f"apply-stack --onto origin/gh/{ALICE}/1/orig --checkout --series FOLDER"
    contributor.checkout.run("--checkout", onto=f"origin/gh/{ALICE}/1/orig").require()
    assert notes(contributor) == ["other-user"]


def test_a_stack_on_a_branch_of_somebodys_that_is_no_pull_request_names_the_author(contributor: Contributor) -> None:
    git = contributor.checkout.git
    git("switch", "-q", "-c", "feature")
    contributor.checkout.commit("[MPS] Bob's\n\nProse.", {"bob.txt": "his\n"}, "--author=Bob <bob@example.com>")
    contributor.checkout.run("--checkout", onto="feature").require()
    told = contributor.check().require(3).json["concerns"]
    assert [concern["rule"] for concern in told] == ["below-the-stack"]
    assert "built on this commit of Bob, which origin/main lacks" in told[0]["problem"]
