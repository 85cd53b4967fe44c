"""Rendering: trailers where git and ghstack look for them, and the way back."""

from __future__ import annotations

import subprocess

import ghstack.diff
import ghstack.submit
import ghstack.trailers
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchstack.errors import ManifestError
from patchstack.messages import CoAuthor, GhstackTrailers, Message, Severity, check_message, parse_message

URL = "https://github.com/pytorch/pytorch/pull/1234"
GHSTACK = GhstackTrailers(("ghstack-source-id: " + "a" * 40, "ghstack-comment-id: 77", f"Pull-Request: {URL}"))
PERSON = CoAuthor("Ada Núñez", "12+ada@users.noreply.example.com")
FULL = Message("[MPS] Add x", "Why it is needed.\n\nHow it is done.\n", (PERSON,), GHSTACK)


def _git_trailers(text: str) -> list[str]:
    done = subprocess.run(
        ["git", "interpret-trailers", "--parse"], input=text.encode(), capture_output=True, check=True
    )
    return done.stdout.decode().splitlines()


def test_a_message_is_title_prose_and_one_paragraph_of_trailers_with_credit_first() -> None:
    assert FULL.render() == (
        "[MPS] Add x\n\nWhy it is needed.\n\nHow it is done.\n\n"
        "Co-authored-by: Ada Núñez <12+ada@users.noreply.example.com>\n"
        f"ghstack-source-id: {'a' * 40}\nghstack-comment-id: 77\nPull-Request: {URL}\n"
    )


def test_git_and_ghstack_read_the_rendered_trailers_alike() -> None:
    text = FULL.render()
    assert _git_trailers(text) == list(FULL.trailers)
    assert ghstack.trailers.parse_message(text)[2].split("\n") == list(FULL.trailers)
    link = ghstack.diff.PullRequestResolved.search(text, "github.com")
    assert link is not None
    assert link.url() == URL
    source = ghstack.submit.RE_GHSTACK_SOURCE_ID.search(text)
    assert source is not None
    assert source[1] == FULL.ghstack.source_id


def test_ghstack_puts_its_trailers_where_we_put_them() -> None:
    fresh = Message(FULL.title, FULL.body, FULL.co_authors)
    submitted = ghstack.trailers.interpret_trailers(fresh.render().rstrip(), list(GHSTACK.lines))
    assert submitted + "\n" == FULL.render()


def test_the_parts_of_ghstacks_trailers_are_readable() -> None:
    assert GHSTACK.source_id == "a" * 40
    assert GHSTACK.pull_request is not None
    assert (GHSTACK.pull_request.repository, GHSTACK.pull_request.number) == ("pytorch/pytorch", 1234)
    assert not GhstackTrailers()
    assert GhstackTrailers().pull_request is None


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (Message("T"), "T\n"),
        (Message("T", "\n\nb  \n\n\n\nc\n"), "T\n\nb\n\nc\n"),
        (Message("T", "", (PERSON,)), f"T\n\n{PERSON.trailer()}\n"),
    ],
)
def test_rendering_leaves_out_empty_parts_and_tidies_white_space(message: Message, text: str) -> None:
    assert message.render() == text


@pytest.mark.parametrize("text", ["", "Ada", "Ada <ada>", "Ada <ada@x> extra", "@ada <a@b>", "Ada <a@b>\nX: y"])
def test_a_malformed_co_author_is_an_error(text: str) -> None:
    with pytest.raises(ManifestError, match="not a co-author"):
        CoAuthor.parse(text, where="series.yaml:3")


_WORDS = st.sampled_from(["Alpha beta.", "- a point", "    code: x", "`name` does it.", "It ends: here now", "größer"])
_BODY = st.lists(st.lists(_WORDS, min_size=1, max_size=3).map("\n".join), max_size=4).map("\n\n".join)
_CLEAN = st.builds(
    Message,
    title=st.sampled_from(["[MPS] Add x", "[MPS][BE] Fix ü"]),
    body=_BODY,
    co_authors=st.lists(st.just(PERSON), max_size=1).map(tuple),
    ghstack=st.sampled_from([GhstackTrailers(), GHSTACK]),
)


@settings(max_examples=60, deadline=None)
@given(_CLEAN)
def test_parsing_a_rendered_message_gives_it_back(message: Message) -> None:
    assert [f for f in check_message(message) if f.severity is Severity.REFUSE] == []
    text = message.render()
    again = parse_message(text)
    assert again.render() == text
    assert (again.title, again.co_authors, again.ghstack) == (message.title, message.co_authors, message.ghstack)
