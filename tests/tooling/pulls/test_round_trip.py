"""The loop a contributor lives in: apply-stack, ghstack, a newer main or a reviewer's wish, apply-stack, ghstack.

After every round the state of all pull requests is compared, and what submit-check said before is what ghstack did.
"""

from __future__ import annotations

import pytest

from checkouts.lab import write_series
from checkouts.sources import HOST, MANIFEST, OVERLAY, TITLES
from ghstack_hub import Pull, pull, url_of
from patchstack.messages import parse_message

from .conftest import Contributor

THREE = [pull(500 + index, title) for index, title in enumerate(TITLES)]
CREATED, UPDATED, SKIPPED = (dict.fromkeys(TITLES, what) for what in ("Created", "Updated", "Skipped"))


def _split_manifest() -> tuple[str, list[str]]:
    head, *changes = MANIFEST.split("  - id: ")
    return head, changes


def reorder(contributor: Contributor, order: list[int]) -> None:
    """Write the series with its changes in another order; a number left out is a change dropped, with its texts."""
    head, changes = _split_manifest()
    whole = head + "".join(f"  - id: {changes[index]}" for index in order)
    series = contributor.checkout.lab.series
    (series / "series.yaml").write_text(whole)
    for path in OVERLAY:
        if f"path: {path}\n" not in whole:
            (series / "overlay" / path).unlink()


def insert(contributor: Contributor, at: int) -> None:
    """Put one more change into the series."""
    extra = """extra
    title: "[MPS] Say more"
    message: extra.md
    ops: [fade]
    upstream:
      - path: docs/extra.md
        declares: extra
    edits:
      - kind: create-file
        path: docs/extra.md
"""
    head, changes = _split_manifest()
    changes.insert(at, extra)
    series = contributor.checkout.lab.series
    (series / "series.yaml").write_text(head + "".join(f"  - id: {change}" for change in changes))
    (series / "extra.md").write_text("More is said.\n")
    (series / "overlay" / "docs" / "extra.md").write_text("More.\n")


def fates(report: dict[str, list[dict[str, object]]]) -> list[tuple[object, object, object]]:
    """Number, what becomes of it, and its new place, for every pull request in a report."""
    return [(fate["number"], fate["becomes"], fate["position"]) for fate in report["pull_requests"]]


def test_a_first_submit_opens_one_pull_request_for_each_change(stacked: Contributor) -> None:
    assert stacked.submit_as_predicted() == CREATED
    assert stacked.hub.pulls() == THREE
    for made, text in zip(stacked.hub.pulls(), ("Fade a tensor", "The expected failure", "What fading"), strict=True):
        assert text in made.body
        assert "ghstack-source-id" not in made.body


def test_on_a_newer_main_the_same_pull_requests_are_updated(submitted: Contributor) -> None:
    for text in ("newer\n", "newest\n"):
        submitted.upstream_goes_on(text)
        report = submitted.apply()
        assert report["warnings"] == []
        assert fates(report) == [(500, "updated", 1), (501, "updated", 2), (502, "updated", 3)]
        assert submitted.submit_as_predicted() == UPDATED
        assert submitted.hub.pulls() == THREE


def test_without_carried_trailers_a_newer_main_opens_three_more(submitted: Contributor) -> None:
    """The seeded fault: the trailers are all that ties a stack to its pull requests."""
    submitted.upstream_goes_on("newer\n")
    submitted.apply()
    submitted.hub.unlink(submitted.path)
    assert submitted.submit() == CREATED
    assert [made.title for made in submitted.hub.pulls()] == [*TITLES, *TITLES]


def test_submit_check_sees_that_the_pull_requests_would_be_opened_again(submitted: Contributor) -> None:
    submitted.hub.unlink(submitted.path)
    told = submitted.check().require(3).json
    assert [item["action"] for item in told["commits"]] == ["Created"] * 3
    assert {concern["rule"] for concern in told["concerns"]} == {"duplicate"}


def test_running_again_after_a_submit_leaves_ghstack_nothing_to_do(submitted: Contributor) -> None:
    submitted.apply()
    assert submitted.submit_as_predicted() == SKIPPED
    assert submitted.hub.pulls() == THREE
    assert submitted.checkout.complete()


def test_changes_in_another_order_keep_their_pull_requests_and_are_said_to_move(submitted: Contributor) -> None:
    reorder(submitted, [2, 0, 1])
    report = submitted.apply()
    assert fates(report) == [(502, "updated", 1), (500, "updated", 2), (501, "updated", 3)]
    assert [fate["earlier_position"] for fate in report["pull_requests"]] == [3, 1, 2]
    assert all(fate["moved"] for fate in report["pull_requests"])
    assert submitted.submit_as_predicted() == UPDATED
    assert submitted.hub.pulls() == THREE


@pytest.mark.parametrize("at", [0, 1, 3])
def test_an_inserted_change_gets_a_pull_request_and_the_others_keep_theirs(submitted: Contributor, at: int) -> None:
    insert(submitted, at)
    report = submitted.apply()
    expected: list[tuple[object, object]] = [(500, "updated"), (501, "updated"), (502, "updated")]
    expected.insert(at, (None, "new"))
    assert [fate[:2] for fate in fates(report)] == expected
    assert not any(fate["moved"] for fate in report["pull_requests"])
    done = submitted.submit_as_predicted()
    assert done.pop("[MPS] Say more") == "Created"
    assert "Created" not in done.values()
    assert submitted.hub.pulls() == [*THREE, pull(503, "[MPS] Say more")]


def test_a_dropped_change_leaves_its_pull_request_open_and_says_how_to_close_it(submitted: Contributor) -> None:
    reorder(submitted, [0, 2])
    report = submitted.apply()
    assert fates(report) == [(500, "updated", 1), (502, "updated", 2), (501, "left open", 0)]
    assert report["pull_requests"][2]["next_command"] == f"ghstack action --close {url_of(501)}"
    assert any("stays behind" in warning for warning in report["warnings"])
    assert submitted.submit_as_predicted() == {TITLES[0]: "Skipped", TITLES[2]: "Updated"}
    assert submitted.hub.pulls() == THREE


def test_a_split_change_keeps_its_pull_request_for_the_part_with_its_id(submitted: Contributor) -> None:
    head, changes = _split_manifest()
    first, separator, rest = changes[1].partition("      - kind: place-fragment\n")
    tail = """list_entry
    title: "[MPS] Test fade in a test of its own"
    message: fade_tests.md
    ops: [fade]
    upstream:
      - path: test/test_mps.py
        defines: TestFade
    edits:
"""
    whole = head + "".join(f"  - id: {part}" for part in (changes[0], first, tail + separator + rest, changes[2]))
    (submitted.checkout.lab.series / "series.yaml").write_text(whole)
    report = submitted.apply()
    assert fates(report) == [(500, "updated", 1), (501, "updated", 2), (None, "new", 3), (502, "updated", 4)]
    submitted.submit_as_predicted()
    assert submitted.hub.pulls() == [*THREE, pull(503, "[MPS] Test fade in a test of its own")]


def test_a_new_body_reaches_github_with_u_only(submitted: Contributor) -> None:
    write_series(submitted.checkout.lab.series, {"fade.md": ("Fade a tensor", "Fade any tensor")})
    submitted.apply()
    told = submitted.check().require().json
    assert [c["rule"] for c in told["concerns"]] == ["fields"]
    assert submitted.submit(update_fields=False) == SKIPPED
    assert "Fade a tensor" in submitted.hub.pulls()[0].body
    assert submitted.submit_as_predicted() == SKIPPED
    assert "Fade any tensor" in submitted.hub.pulls()[0].body
    assert submitted.hub.pulls() == THREE


def test_a_new_title_keeps_its_pull_request(submitted: Contributor) -> None:
    write_series(submitted.checkout.lab.series, {"series.yaml": ('"[MPS] Add fade"', '"[MPS] Let tensors fade"')})
    assert fates(submitted.apply())[0] == (500, "updated", 1)
    submitted.submit_as_predicted()
    assert [made.title for made in submitted.hub.pulls()] == ["[MPS] Let tensors fade", *TITLES[1:]]


def test_a_new_id_keeps_its_pull_request_by_its_title(submitted: Contributor) -> None:
    write_series(submitted.checkout.lab.series, {"series.yaml": ("  - id: fade_notes", "  - id: fade_docs")})
    report = submitted.apply()
    assert fates(report)[2] == (502, "updated", 3)
    assert report["pull_requests"][2]["evidence"] == "the same title"
    submitted.submit_as_predicted()
    assert submitted.hub.pulls() == THREE


def test_a_landed_change_drops_out_and_the_rest_is_updated(submitted: Contributor) -> None:
    landed = submitted.hub.land(submitted.path, 500)
    submitted.upstream_goes_on("newer\n")
    report = submitted.apply()
    assert fates(report) == [(501, "updated", 1), (502, "updated", 2), (500, "landed", 0)]
    assert report["pull_requests"][2]["note"] == f"landed as {landed[:12]}"
    assert report["warnings"] == []
    assert submitted.submit_as_predicted() == {TITLES[1]: "Updated", TITLES[2]: "Updated"}
    assert submitted.hub.pulls() == [pull(500, TITLES[0], is_open=False), *THREE[1:]]


def test_a_stack_that_landed_whole_is_reported_as_landed(submitted: Contributor) -> None:
    landed = [submitted.hub.land(submitted.path, number) for number in (500, 501, 502)]
    submitted.pull_main()
    report = submitted.checkout.run("--json").require().json
    assert [fate["note"] for fate in report["pull_requests"]] == [f"landed as {commit[:12]}" for commit in landed]


def test_a_landed_and_reverted_change_comes_back_with_its_pull_request(submitted: Contributor) -> None:
    landed = submitted.hub.land(submitted.path, 500)
    submitted.pull_main()
    submitted.checkout.git("revert", "--no-edit", landed)
    submitted.checkout.git("push", "-q", "origin", "main")
    submitted.hub.reopen(500)
    report = submitted.apply()
    assert fates(report) == [(500, "updated", 1), (501, "updated", 2), (502, "updated", 3)]
    assert "reverted by" in report["pull_requests"][0]["note"]
    assert submitted.submit_as_predicted() == SKIPPED  # main has the tree it had before
    assert submitted.hub.pulls() == THREE


def test_upstream_that_has_a_change_without_naming_its_pull_request_leaves_it_open(submitted: Contributor) -> None:
    submitted.checkout.git("switch", "-q", "main")
    submitted.checkout.git("cherry-pick", "stack/fade~2")
    submitted.checkout.git("commit", "-q", "--amend", "-m", "Fade, in other hands")
    submitted.checkout.git("push", "-q", "origin", "main")
    report = submitted.apply()
    assert fates(report)[-1] == (500, "left open", 0)
    assert any("no commit names the pull request" in warning for warning in report["warnings"])


def only_where(contributor: Contributor, name: str) -> None:
    """The second change is for trees whose host file defines a name, from now on."""
    key = f"    only_where: [{{defines: {name}, path: {HOST}, reason: trees with {name}}}]\n"
    old = "    message: fade_tests.md\n"
    write_series(contributor.checkout.lab.series, {"series.yaml": (old, old + key)})


def test_a_change_that_is_not_applicable_any_more_keeps_its_pull_request_open(submitted: Contributor) -> None:
    before = submitted.checkout.tip()
    only_where(submitted, "darken_mps")
    report = submitted.apply()
    assert fates(report) == [(500, "updated", 1), (502, "updated", 2), (501, "not applicable", 0)]
    note = report["pull_requests"][2]["note"]
    assert note.startswith("its change is for trees in which Fade.mm defines darken_mps (trees with darken_mps); it ")
    assert note.endswith(f"stays open until the change is applicable again, or ghstack action --close {url_of(501)}")
    assert submitted.checkout.tip(report["backup"]) == before
    (warning,) = report["warnings"]
    assert "#501 '[MPS] Test fade': not applicable" in warning
    assert f"kept as {report['backup']}" in warning
    assert submitted.submit_as_predicted() == {TITLES[0]: "Skipped", TITLES[2]: "Updated"}
    assert submitted.hub.pulls() == THREE


@pytest.mark.parametrize("lost", [(), ("reflogs",)], ids=["", "and the reflogs are gone"])
def test_a_change_that_is_applicable_again_updates_the_pull_request_it_had(
    submitted: Contributor, lost: tuple[str, ...]
) -> None:
    only_where(submitted, "darken_mps")
    submitted.apply()
    submitted.submit()
    submitted.forget(*lost)
    write_series(submitted.checkout.lab.series)
    report = submitted.apply()
    assert fates(report) == [(500, "updated", 1), (501, "updated", 2), (502, "updated", 3)]
    assert "Created" not in submitted.submit_as_predicted().values()
    assert submitted.hub.pulls() == THREE


def test_a_change_that_landed_and_is_not_applicable_any_more_is_told_to_have_landed(submitted: Contributor) -> None:
    submitted.hub.land(submitted.path, 500)
    submitted.hub.land(submitted.path, 501)
    submitted.pull_main()
    only_where(submitted, "darken_mps")
    report = submitted.apply()
    assert fates(report) == [(502, "updated", 1), (500, "landed", 0), (501, "landed", 0)]
    assert report["warnings"] == []


def test_pull_requests_of_a_stack_applied_before_are_not_opened_twice_by_a_dry_run(submitted: Contributor) -> None:
    submitted.upstream_goes_on("newer\n")
    before = submitted.checkout.tip()
    report = submitted.checkout.run("--dry-run", "--json").require().json
    assert fates(report) == [(500, "updated", 1), (501, "updated", 2), (502, "updated", 3)]
    assert submitted.checkout.tip() == before


def test_what_becomes_of_each_pull_request_is_told_to_a_person_too(submitted: Contributor) -> None:
    reorder(submitted, [2, 0])
    submitted.checkout.git("switch", "-q", "main")
    said = submitted.checkout.run().require().out
    assert "1  #502 '[MPS] Describe fade': updated, moves from position 3 to 1" in said
    assert f"(next: ghstack action --close {url_of(501)})" in said


def test_ghstack_leaves_every_message_as_it_would_be_rendered(stacked: Contributor) -> None:
    """Prose, then one paragraph: who shares the credit, the source id, the pull request."""
    credit = ("    ops: [fade]\n", "    ops: [fade]\n    co_authors: [Ada <ada@example.com>]\n")
    write_series(stacked.checkout.lab.series, {"series.yaml": credit})
    stacked.apply()
    stacked.submit()
    texts = stacked.checkout.git("log", "-z", "--reverse", "--format=%B", "main..stack/fade").split("\0")
    for number, text in enumerate(filter(None, texts), 500):
        message = parse_message(text)
        assert message.render() == text.rstrip("\n") + "\n"
        assert message.trailers[0] == "Co-authored-by: Ada <ada@example.com>"
        assert message.trailers[2] == f"Pull-Request: {url_of(number)}"
    assert all("Co-authored-by: Ada" in made.body for made in stacked.hub.pulls())


def test_a_mailed_stack_has_the_trees_and_the_words_of_the_one_applied(submitted: Contributor) -> None:
    """With trailers and generated parts; and a fresh run in a clone that knows nothing gives the same trees."""
    submitted.upstream_goes_on("newer\n")
    folder = submitted.checkout.lab.root / "mails"
    submitted.apply("--format-patch", str(folder))
    submitted.checkout.git("switch", "-q", "--detach", "main")
    submitted.checkout.git("am", "-q", "--keep-non-patch", *map(str, sorted(folder.iterdir())))
    told = ["log", "-z", "--format=%T%n%B"]
    mailed = submitted.checkout.git(*told, "main..HEAD")
    assert mailed == submitted.checkout.git(*told, "main..stack/fade")
    for words in ("What changed:", "Test plan:", "ghstack-source-id: ", f"Pull-Request: {url_of(502)}"):
        assert words in mailed
    other, lab = submitted.another_clone(), submitted.checkout.lab
    lab.start(["--onto", "main", "--repo", str(other), "--series", str(lab.series)])
    lab.finish().require()
    trees = ["log", "--format=%T", "main..stack/fade"]
    assert lab.git(other, *trees) == submitted.checkout.git(*trees)


def test_the_state_that_is_compared_tells_one_base_from_another() -> None:
    """The seeded fault of the comparison itself."""
    assert THREE[0] != Pull(500, TITLES[0], "main", "gh/me/1/head")
