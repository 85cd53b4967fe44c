"""Trailers are taken letter for letter from the last stack, or the run stops: never a second pull request."""

from __future__ import annotations

from dataclasses import replace

import pytest

from patchstack.errors import ExitCode, RefError
from patchstack.messages import (
    Message,
    OldMessage,
    carry,
    changed_since_submit,
    check_text,
    extract,
    parse_message,
    same_prose,
    without_ghstack,
)
from patchstack.tree.git import Repository

from .conftest import Sandbox

SOURCE = "ghstack-source-id: " + "c" * 40


def _pull(number: int) -> str:
    return f"Pull-Request: https://github.com/pytorch/pytorch/pull/{number}"


def _submitted(title: str, number: int, prose: str = "Prose.") -> str:
    return f"{title}\n\n{prose}\n\n{SOURCE}\n{_pull(number)}"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (_submitted("[MPS] T", 7), (SOURCE, _pull(7))),
        (f"T\n\nProse.\n\n\n{SOURCE}\nghstack-comment-id: 5\n{_pull(7)}", (SOURCE, "ghstack-comment-id: 5", _pull(7))),
        (f"T\n\nCo-authored-by: A B <a@b.c>\n{SOURCE}\n{_pull(7)}\n", (SOURCE, _pull(7))),
        (f"T\n\nProse.\n{SOURCE}\n{_pull(7)}\n", (SOURCE, _pull(7))),
        (
            f"T\n\nProse.\n\n{SOURCE}\n{_pull(7).replace('-', ' ', 1).replace(':', ' resolved:', 1)}\n",
            (SOURCE, _pull(7)),
        ),
        (f"T\n\nProse.\n\n    {SOURCE}\n", ()),
        (f"T\n\nProse.\n\n{SOURCE}\n{_pull(7)}\n\nProse again.\n", ()),
        ("T\n\nProse.\n\nPull-Request: #7\n", ()),
        ("T\n", ()),
        ("", ()),
    ],
)
def test_trailers_come_from_the_final_paragraph_letter_for_letter(text: str, lines: tuple[str, ...]) -> None:
    assert extract(text).lines == lines


def test_prose_is_compared_without_what_ghstack_adds_and_strips() -> None:
    ours = Message("[MPS] T", "Prose.\n\ncc @ada\n").render()
    theirs = f"[MPS] T\n\nProse.\n\ncc ada\n\n\n{SOURCE}\n{_pull(7)}"
    assert without_ghstack(theirs) == "[MPS] T\n\nProse.\n\ncc ada\n"
    assert same_prose(ours, theirs)
    assert not same_prose(ours, theirs.replace("Prose", "Other prose"))


def test_credit_and_unknown_trailers_survive_parsing() -> None:
    text = f"T\n\nProse.\n\nCo-authored-by: A B <a@b.c>\nReviewed-by: X\n{SOURCE}\n{_pull(7)}\n"
    message = parse_message(text)
    assert [person.name for person in message.co_authors] == ["A B"]
    assert message.body == "Prose.\n\nReviewed-by: X\n"
    assert {finding.rule for finding in check_text(text)} >= {"trailers-in-body"}


def test_a_tree_that_ghstack_did_not_record_is_noticed(sandbox: Sandbox) -> None:
    tree = sandbox.tree({"a": ("100644", b"a\n")})
    same = sandbox.commit(tree, f"T\n\nghstack-source-id: {tree}\n{_pull(7)}\n")
    other = sandbox.commit(tree, f"T\n\n{SOURCE}\n{_pull(7)}\n")
    fresh = sandbox.commit(tree, "T\n")
    with Repository.open(sandbox.path) as repository:
        states = [changed_since_submit(repository.commit(hash_)) for hash_ in (same, other, fresh)]
    assert states == [False, True, False]


TITLES = {"backward": "[MPS] Add backward", "tests": "[MPS] Add tests", "docs": "[MPS] Add docs"}


def test_trailers_follow_titles_where_there_is_no_record() -> None:
    old = [OldMessage(_submitted("[MPS] Add tests", 2)), OldMessage(_submitted("[MPS] Add backward", 1))]
    carried = carry(old, TITLES)
    assert {change: t.lines for change, t in carried.by_change.items()} == {
        "tests": (SOURCE, _pull(2)),
        "backward": (SOURCE, _pull(1)),
    }
    assert carried.unclaimed == ()


def test_a_record_of_change_ids_survives_a_new_title_and_beats_an_old_one() -> None:
    renamed = OldMessage(_submitted("[MPS] Old name", 1), change_id="backward")
    misleading = OldMessage(_submitted("[MPS] Add backward", 2), change_id="tests")
    carried = carry([renamed, misleading], TITLES)
    assert {change: t.lines[1] for change, t in carried.by_change.items()} == {"backward": _pull(1), "tests": _pull(2)}


def test_a_submitted_commit_that_no_change_answers_to_is_reported() -> None:
    dropped = OldMessage(_submitted("[MPS] Dropped", 3))
    gone = OldMessage(_submitted("[MPS] Add docs", 4), change_id="removed")
    carried = carry([dropped, gone, OldMessage("[MPS] Never submitted\n")], TITLES)
    assert carried.by_change == {}
    assert carried.unclaimed == (dropped, gone)


STRAY = OldMessage(f"[MPS] Add tests\n\n{SOURCE}\n{_pull(7)}\n\nAdded by hand.\n", commit="0123456789abcdef")


@pytest.mark.parametrize(
    ("old", "words"),
    [
        ([STRAY], r"^0123456789ab \[MPS\] Add tests: .* outside its final paragraph"),
        ([OldMessage(_submitted("[MPS] Add tests", 7, prose=f"See {_pull(6)}."))], "outside its final paragraph"),
        ([OldMessage(_submitted("[MPS] Add tests", 7)), OldMessage(_submitted("[MPS] Add docs", 7))], "claim https"),
        ([OldMessage(_submitted("[MPS] Add tests", 7)), OldMessage(_submitted("[MPS] Add tests", 8))], "claim tests"),
    ],
)
def test_what_would_tie_a_commit_to_the_wrong_pull_request_stops_the_run(old: list[OldMessage], words: str) -> None:
    with pytest.raises(RefError, match=words) as caught:
        carry(old, TITLES)
    assert caught.value.exit_code is ExitCode.CONFLICT
    assert caught.value.next_command


def test_a_stray_link_is_forgiven_once_it_is_moved_to_the_end() -> None:
    moved = replace(STRAY, text=_submitted("[MPS] Add tests", 7, prose="Added by hand."))
    assert set(carry([moved], TITLES).by_change) == {"tests"}
