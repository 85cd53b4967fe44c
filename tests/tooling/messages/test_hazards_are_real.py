"""The rules are no superstition: what they refuse is seen to go wrong in git and in ghstack itself, and what they pass
goes through both unharmed."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import ghstack.diff
import ghstack.submit
import ghstack.trailers
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from patchstack.messages import CoAuthor, GhstackTrailers, Message, check_message, refused
from patchstack.messages.mailbox import format_patches
from patchstack.messages.title_rules import mailed_title
from patchstack.tree.git import Repository

from .conftest import Sandbox

URL = "https://github.com/pytorch/pytorch/pull/7"
GHSTACK = GhstackTrailers(("ghstack-source-id: " + "b" * 40, f"Pull-Request: {URL}"))
Mail = Callable[[str], str]


def _message(line: str, *, title: str = "[MPS] Add x", above: str = "Before.\n\n") -> Message:
    return Message(title, f"{above}{line}\n\nAfter.\n", (), GHSTACK)


@pytest.mark.parametrize("line", ["---", "--- a/file.txt", "Index: x", "diff --git a/x b/x"])
def test_git_am_loses_what_follows_a_line_that_looks_like_a_patch(sandbox: Sandbox, tmp_path: Path, line: str) -> None:
    message = _message(line)
    assert "mail-cut" in {f.rule for f in check_message(message)}
    base = sandbox.text_commit("one\n", "Base\n")
    tip = sandbox.text_commit("two\n", message.render(), base)
    mail = sandbox.git("format-patch", "--stdout", f"{base}..{tip}")
    body = tmp_path / "body"
    sandbox.git("mailinfo", "-b", str(body), str(tmp_path / "diff"), stdin=mail)
    assert body.read_text().strip() == "Before."


def test_git_am_succeeds_although_the_trailers_are_lost(mailed: Mail) -> None:
    assert mailed(_message("---").render()) == "[MPS] Add x\n\nBefore.\n"


@pytest.mark.parametrize(
    "line",
    [
        "Subject: matters",
        "From: Ada <ada@example.com>",
        "Date: Mon, 1 Jan 2024 00:00:00 +0000",
        "[PATCH] stays",
        f">From {'0' * 40} Mon Sep 17 00:00:00 2001",
    ],
)
def test_git_am_takes_a_first_line_for_a_mail_header(mailed: Mail, line: str) -> None:
    message = _message(f"{line}\nMore.", above="")
    assert "mail-header" in {f.rule for f in check_message(message)}
    assert mailed(message.render()) != message.render()
    below = _message(f"{line}\nMore.")
    assert "mail-header" not in {f.rule for f in check_message(below)}
    assert mailed(below.render()) == below.render()


@pytest.mark.parametrize(
    "title",
    [
        "[MPS] Add x",
        "[MPS][BE] Add x",
        "[MPS] Re: add x",
        "[MPS]: add x",
        "[MPS] [PATCH] x",
        "[DISPATCH] x",
        "re: Re: x",
        "[a[b] c",
        "Return x",
        "[MPS]x",
        "[no end",
    ],
)
def test_what_git_am_leaves_of_a_title_is_known(mailed: Mail, title: str) -> None:
    mailed_text = mailed(f"{title}\n\nProse.\n")
    assert mailed_text == f"{mailed_title(title)}\n\nProse.\n"
    refused_by_us = any(f.rule == "title-mail" for f in check_message(Message(title)))
    assert refused_by_us is (mailed_text != f"{title}\n\nProse.\n")


@pytest.mark.parametrize("bullet", ["*", "-"])
def test_ghstack_overwrites_a_list_of_stars_under_a_stack_heading_and_no_other(bullet: str) -> None:
    message = _message(f"Stack trace:\n{bullet} one\n{bullet} two")
    overwritten = ghstack.submit.RE_STACK.search(message.render()) is not None
    assert overwritten is (bullet == "*")
    assert ("stack-list" in {f.rule for f in check_message(message)}) is overwritten


def test_ghstack_strips_mentions_but_no_addresses() -> None:
    text = "ask @ada or <ada@example.com>"
    assert ghstack.submit.strip_mentions(text) == "ask ada or <ada@example.com>"
    assert "mention" in {f.rule for f in check_message(_message(text))}
    assert check_message(_message("ask <ada@example.com>")) == ()


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("Note: this is prose.", "trailers-in-body"),
        ("https://example.com/alone", "trailers-in-body"),
        ("Co-authored-by: Ada <ada@example.com>", "co-author-in-body"),
    ],
)
def test_ghstack_glues_its_trailers_to_the_prose_below_a_trailer(line: str, rule: str) -> None:
    message = Message("[MPS] T", f"Before.\n\n{line}\n\nAfter.\n")
    submitted = ghstack.trailers.interpret_trailers(message.render().rstrip(), list(GHSTACK.lines))
    assert "After.\nghstack-source-id: " in submitted
    assert _git_trailers(submitted) == []
    assert rule in {f.rule for f in check_message(message)}


def _git_trailers(text: str) -> list[str]:
    command = ["git", "interpret-trailers", "--parse"]
    return subprocess.run(command, input=text.encode(), capture_output=True, check=True).stdout.decode().splitlines()


# What the rules pass, mostly: odd enough to trip a parser, and what they refuse, to try the borders.
_PASSING = (
    "Plain words.",
    "größer, ±1 → fine",
    "- bullet",
    "* star",
    "Stack of things:",
    "    indented: code",
    "two words: value",
    "a  b  ",
    "----",
    "-- ",
    "From now on",
    "diff of two",
    "index.h is new",
    "see https://example.com/x",
    "a@b.example",
    "> quoted",
    ">From x",
    "=?UTF-8?q?x?=",
    "=3D",
    "Fixes #12",
    "tab\there",
    "'''",
    "\u00a0",
    "(cherry picked)",
    "x" * 1100,
)
_REFUSED = (
    "Key: value",
    "# heading",
    "---",
    "From: me",
    "diff --git a b",
    "Index: 1",
    "index.h: new",
    "https://example.com/x",
    f"Pull-Request: {URL}",
    "@name",
    "[PATCH] x",
    "Fixes: #12",
    "Signed-off-by: A <a@b.example>",
    "(cherry picked from commit 12)",
)
_LINES = st.sampled_from(_PASSING * 8 + _REFUSED)
_TITLES = st.sampled_from(
    ("[MPS] Add x", "x=?UTF-8?q?y?=", "[MPS] größer " + "ü" * 40, "x " * 40 + "x") * 3
    + ("[MPS]: x", "Re: x", "[PATCH] x")
)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    title=_TITLES,
    paragraphs=st.lists(st.lists(_LINES, min_size=1, max_size=3), max_size=3),
    people=st.booleans(),
    submitted=st.booleans(),
)
def test_what_the_rules_pass_goes_through_mail_git_and_ghstack_unharmed(
    sandbox: Sandbox,
    tmp_path: Path,
    title: str,
    paragraphs: list[list[str]],
    people: bool,
    submitted: bool,
) -> None:
    credit = (CoAuthor("Ada Núñez", "ada@example.com"),) if people else ()
    trailers = GHSTACK if submitted else GhstackTrailers()
    message = Message(title, "\n\n".join("\n".join(lines) for lines in paragraphs), credit, trailers)
    if refused(check_message(message)):
        return
    text = message.render()
    assert _git_trailers(text) == list(message.trailers)
    _assert_ghstack_reads(text, message)
    base = sandbox.text_commit("one\n", "Base\n")
    tip = sandbox.text_commit("two\n", text, base)
    with Repository.open(sandbox.path) as repository:  # raises where git am would change the message
        assert len(format_patches(repository, base, tip, tmp_path / "mail")) == 1


def _assert_ghstack_reads(text: str, message: Message) -> None:
    link = ghstack.diff.PullRequestResolved.search(text, "github.com")
    assert (link.url() if link else None) == (URL if message.ghstack else None)
    assert len(ghstack.submit.RE_GHSTACK_SOURCE_ID.findall(text)) == (1 if message.ghstack else 0)
    assert ghstack.submit.RE_STACK.search(text) is None
    if not message.ghstack:
        text = ghstack.trailers.interpret_trailers(text.rstrip(), list(GHSTACK.lines))
        assert _git_trailers(text) == [*message.trailers, *GHSTACK.lines]
    subject, body, _ = ghstack.trailers.parse_message(text)
    assert (subject, body) == (message.title, Message("T", message.body).render()[2:].strip())
