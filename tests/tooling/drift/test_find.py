"""What happened to each change of a series, and with which commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from checkouts.sources import HOST, LISTS, METAL, NATIVE_FUNCTIONS, TESTS, TREE
from patchstack.drift import ChangeDrift, Drift, Turn, Verdict
from patchstack.drift.model import When
from patchstack.errors import ExitCode
from patchstack.series import Requirement
from upstream_history import Step, synthetic_upstream

from .conftest import Upstream

RENAMED = {METAL: TREE[METAL].replace(b"void brighten(", b"void brighten_up(")}
MENDED = {METAL: TREE[METAL]}
HOST_RENAMED = {HOST: TREE[HOST].replace(b"brighten_mps", b"brighter_mps")}
DISPATCHED = {
    NATIVE_FUNCTIONS: TREE[NATIVE_FUNCTIONS].replace(b"CPU: fade_cpu\n", b"CPU: fade_cpu\n    MPS: fade_own\n")
}


def fade(drift: Drift) -> ChangeDrift:
    """The first change."""
    return drift.changes[0]


def only_finding(drift: Drift) -> Turn:
    (finding,) = drift.findings
    return finding[1]


def culprit(drift: Drift) -> str:
    """Title of the one commit that is named."""
    commit = only_finding(drift).commit
    return commit.title if commit else ""


def test_a_history_that_leaves_the_files_alone_is_no_drift(upstream: Upstream) -> None:
    upstream.grow(Step("a"), Step("b"))
    drift = upstream.drift()
    assert [change.verdict for change in drift.changes] == [Verdict.UNCHANGED] * 3
    assert (drift.exit_code, drift.visited) == (ExitCode.OK, 1)
    assert "none to name" in " ".join(drift.notes)


def test_the_commit_that_renamed_an_anchor_is_named_with_what_is_nearest_now(upstream: Upstream) -> None:
    upstream.grow(Step("Before", {METAL: TREE[METAL] + b"// a\n"}), Step("Rename (#7)", RENAMED), Step("After"))
    drift = upstream.drift()
    turn = only_finding(drift)
    assert turn.commit is not None
    assert (turn.commit.title, turn.commit.pull_request, turn.when) == ("Rename (#7)", 7, When.COMMIT)
    (part,) = turn.parts
    assert part.after.conflict is not None
    assert tuple(map(str, part.after.conflict.nearest)) == ("kernel brighten_up at line 4",)
    assert fade(drift).verdict is Verdict.DRIFTED
    assert [change.verdict for change in drift.changes[1:]] == [Verdict.UNCHANGED] * 2
    assert drift.exit_code is ExitCode.CONFLICT


def planted(upstream: Upstream, nth: int, plants: Mapping[int, Mapping[str, tuple[bytes, bytes]]]) -> Drift:
    files = {path: TREE[path] for path in (METAL, HOST, LISTS, TESTS)}
    upstream.grow(*synthetic_upstream(files, commits=2000, touching=40, plants=plants))
    drift = upstream.drift()
    assert (drift.line.commits, len(drift.line.touching)) == (2000, 40)
    assert culprit(drift).startswith(f"Touch {nth} ")
    assert drift.visited <= 45
    return drift


@pytest.mark.parametrize("nth", [0, 1, 19, 38, 39])
def test_among_2000_commits_the_planted_one_is_found_in_45_visits(upstream: Upstream, nth: int) -> None:
    drift = planted(upstream, nth, {nth: {METAL: (b"void brighten(", b"void brighten_up(")}})
    assert only_finding(drift).exact


def test_among_2000_commits_the_last_of_three_breaks_is_found_in_45_visits(upstream: Upstream) -> None:
    there, back = (b"void brighten(", b"void brighten_up("), (b"void brighten_up(", b"void brighten(")
    drift = planted(upstream, 31, {n: {METAL: there if i % 2 == 0 else back} for i, n in enumerate((3, 9, 15, 28, 31))})
    assert only_finding(drift).exact


def test_trees_with_the_same_files_are_planned_on_once(upstream: Upstream) -> None:
    steps = [Step(f"{n}", RENAMED if n % 2 else MENDED) for n in range(20)]
    upstream.grow(*steps, Step("last", HOST_RENAMED))
    drift = upstream.drift()
    assert len(drift.line.touching) == 20  # the first puts back what is there
    assert drift.visited == 3


def test_what_was_broken_mended_and_broken_again_counts_from_the_last_time(upstream: Upstream) -> None:
    upstream.grow(
        Step("First break", RENAMED),
        *(Step(f"Touch {n}", {HOST: TREE[HOST] + b"// %d\n" % n}) for n in range(6)),
        Step("Mend", MENDED),
        Step("Second break", RENAMED),
        Step("Touch again", {TESTS: TREE[TESTS] + b"# a\n"}),
    )
    assert culprit(upstream.drift()) == "Second break"


def test_with_too_few_visits_the_answer_says_that_it_may_be_a_later_commit(upstream: Upstream) -> None:
    upstream.grow(
        Step("First break", RENAMED),
        *(Step(f"Touch {n}", {HOST: TREE[HOST] + b"// %d\n" % n}) for n in range(30)),
    )
    drift = upstream.drift(visits=2)
    assert culprit(drift) == "First break"
    assert not only_finding(drift).exact
    assert only_finding(upstream.drift()).exact


def test_two_anchors_that_broke_at_different_times_are_two_findings(upstream: Upstream) -> None:
    upstream.grow(Step("Kernel", RENAMED), Step("Between"), Step("Host", HOST_RENAMED))
    drift = upstream.drift()
    titles = [turn.commit.title for _, turn in drift.findings if turn.commit]
    assert titles == ["Kernel", "Host"]
    assert {part.after.path for _, turn in drift.findings for part in turn.parts} == {METAL, HOST}


def test_two_anchors_that_one_commit_broke_are_one_finding(upstream: Upstream) -> None:
    upstream.grow(Step("Both", {**RENAMED, **HOST_RENAMED}))
    assert len(only_finding(upstream.drift()).parts) == 2


def test_changes_drift_each_with_a_commit_of_its_own(upstream: Upstream) -> None:
    upstream.grow(Step("Kernel", RENAMED), Step("Test class", {TESTS: TREE[TESTS].replace(b"TestMPS", b"TestMetal")}))
    found = {change.change.id: turn.commit.title for change, turn in upstream.drift().findings if turn.commit}
    assert found == {"fade": "Kernel", "fade_tests": "Test class"}


def test_a_file_that_goes_away_is_a_finding(upstream: Upstream) -> None:
    upstream.grow(Step("Drop the file", {METAL: None}))
    drift = upstream.drift()
    assert culprit(drift) == "Drop the file"
    assert "no such file" in only_finding(drift).parts[0].words


def test_another_function_behind_the_dispatch_key_changes_the_state(upstream: Upstream) -> None:
    upstream.grow(Step("Own kernel", DISPATCHED))
    drift = upstream.drift()
    assert culprit(drift) == "Own kernel"
    assert (fade(drift).since.state.value, fade(drift).onto.state.value) == ("absent", "present but different")
    assert any(part.words.startswith("state absent -> present but different") for part in only_finding(drift).parts)


def test_a_change_that_landed_upstream_is_news_though_nothing_is_blocked(upstream: Upstream) -> None:
    upstream.grow(Step("Land the notes", {"docs/fade.md": b"Fading halves what is there.\n"}))
    drift = upstream.drift()
    notes = drift.changes[2]
    assert (notes.onto.state.value, notes.onto.blocks) == ("identical", False)
    assert culprit(drift) == "Land the notes"
    assert drift.exit_code is ExitCode.CONFLICT


def test_a_landed_change_that_was_reverted_is_news_too(upstream: Upstream) -> None:
    upstream.grow(
        Step("Land", {"docs/fade.md": b"Fading halves what is there.\n"}), Step("Revert", {"docs/fade.md": None})
    )
    assert upstream.drift().exit_code is ExitCode.OK, "at both ends it is absent"
    drift = upstream.drift(since=upstream.git("rev-parse", "main~1"))
    assert culprit(drift) == "Revert"


def test_what_was_blocked_and_applies_again_needs_nobody(upstream: Upstream) -> None:
    upstream.grow(Step("Break", RENAMED), Step("Mend", MENDED))
    drift = upstream.drift(since=upstream.git("rev-parse", "main~1"))
    assert fade(drift).verdict is Verdict.MENDED
    assert (drift.exit_code, drift.findings) == (ExitCode.OK, ())
    assert fade(drift).turns[0].commit is not None


def test_what_was_blocked_at_since_already_is_never_called_fine(upstream: Upstream) -> None:
    upstream.grow(Step("Break", RENAMED), Step("Touch", {HOST: TREE[HOST] + b"// a\n"}))
    drift = upstream.drift(since=upstream.git("rev-parse", "main~1"))
    assert fade(drift).verdict is Verdict.STANDING
    assert (only_finding(drift).when, only_finding(drift).commit) == (When.BEFORE, None)
    assert drift.exit_code is ExitCode.CONFLICT


def test_what_was_blocked_at_since_mended_and_blocked_again_counts_from_the_last_time(upstream: Upstream) -> None:
    upstream.grow(Step("Break", RENAMED), Step("Mend", MENDED), Step("Break again", RENAMED))
    assert culprit(upstream.drift(since=upstream.git("rev-parse", "main~2"))) == "Break again"


def test_a_file_that_is_no_longer_the_base_is_named_and_needs_nobody(upstream: Upstream) -> None:
    upstream.grow(Step("Touch", {METAL: TREE[METAL] + b"// a\n"}))
    base = upstream.git("rev-parse", f"main~1:{METAL}")
    changes = list(upstream.series.changes)
    edits = tuple(replace(edit, base=(base,)) if edit.path == METAL else edit for edit in changes[0].edits)
    changes[0] = replace(changes[0], edits=edits)
    upstream.series = replace(upstream.series, changes=tuple(changes))
    drift = upstream.drift()
    (turn,) = fade(drift).turns
    assert turn.commit is not None
    assert turn.commit.title == "Touch"
    assert (turn.parts[0].before, turn.parts[0].after.value) == (
        "applies, exact base blob",
        "applies, structural anchor",
    )
    assert fade(drift).verdict is Verdict.CHANGED
    assert drift.exit_code is ExitCode.OK


def test_a_tree_that_stops_being_pytorch_is_a_refusal_with_its_commit(upstream: Upstream) -> None:
    upstream.grow(Step("Move the file", {NATIVE_FUNCTIONS: None}))
    drift = upstream.drift()
    assert {change.onto.state.value for change in drift.changes} == {"refused"}
    assert all(turn.commit is not None and turn.commit.title == "Move the file" for _, turn in drift.findings)
    assert "not a PyTorch tree" in drift.findings[0][1].parts[0].words
    assert drift.exit_code is ExitCode.CONFLICT


def test_a_requirement_that_goes_away_is_named_with_what_it_may_be_called_now(upstream: Upstream) -> None:
    first, *others = upstream.series.changes
    needs = (Requirement(METAL, "brighten", "fade is built like it"),)
    upstream.series = replace(upstream.series, changes=(replace(first, requires=needs), *others))
    upstream.grow(Step("Before"), Step("Rename", RENAMED), Step("Drop", {METAL: None}), Step("Back", RENAMED))
    drift = upstream.drift()
    turn = fade(drift).findings[0]
    assert turn.commit is not None
    assert turn.commit.title == "Rename"
    assert turn.parts[-1].words.endswith("(fade is built like it); nearest: brighten_up")
    assert drift.exit_code is ExitCode.CONFLICT
    assert {change.onto.state.value for change in drift.changes} == {"refused"}


def test_a_tree_that_was_never_right_is_an_unusable_tree(upstream: Upstream) -> None:
    upstream.grow(Step("Move the file", {NATIVE_FUNCTIONS: None}), Step("Touch", {METAL: TREE[METAL] + b"// a\n"}))
    drift = upstream.drift(since=upstream.git("rev-parse", "main~1"))
    assert drift.is_refused
    assert drift.exit_code is ExitCode.TREE


class TestFingerprint:
    def test_is_the_same_tomorrow_from_another_beginning_and_in_another_clone(self, upstream: Upstream) -> None:
        upstream.grow(Step("a"), Step("Break", RENAMED), Step("b"), Step("c", {HOST: TREE[HOST] + b"// a\n"}))
        tips = ["main", "main~1", "main~2"]
        found = {only_finding(upstream.drift(onto=tip)).fingerprint for tip in tips}
        found |= {only_finding(upstream.drift(since=upstream.git("rev-parse", "main~3"))).fingerprint}
        assert len(found) == 1

    def test_stays_when_another_anchor_breaks_later(self, upstream: Upstream) -> None:
        upstream.grow(Step("Kernel", RENAMED), Step("Own kernel", DISPATCHED), Step("Host", HOST_RENAMED))
        first = only_finding(upstream.drift(onto="main~2")).fingerprint
        kernel = next(t for _, t in upstream.drift().findings if t.commit and t.commit.title == "Kernel")
        assert kernel.fingerprint == first

    def test_differs_between_commits_changes_and_conditions(self, upstream: Upstream) -> None:
        upstream.grow(
            Step("Kernel", RENAMED),
            Step("Mend", MENDED),
            Step("Kernel again", RENAMED),
            Step("Host", HOST_RENAMED),
            Step("Test class", {TESTS: TREE[TESTS].replace(b"TestMPS", b"TestMetal")}),
        )
        names = {turn.fingerprint for _, turn in upstream.drift().findings}
        names |= {turn.fingerprint for _, turn in upstream.drift(onto="main~4").findings}
        assert len(names) == 4
        assert all(len(name) == 16 for name in names)
