"""All hazards in one table: what is found, whether it is refused or repaired, and the tool that would have been misled.

Each row is confirmed by git's own parser, ``git am`` or ghstack's code; and each confirmation says "no" to a good
message, so that none of them is true of everything.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace

import ghstack.diff
import ghstack.submit
import ghstack.trailers
import pytest

from patchstack.messages import CoAuthor, GhstackTrailers, Message, check_message, check_text, extract

SOURCE = "ghstack-source-id: " + "b" * 40
URL = "https://github.com/pytorch/pytorch/pull/7"
LINK = f"Pull-Request: {URL}"
OTHER = "https://github.com/pytorch/pytorch/pull/1"
ADA = CoAuthor("Ada", "ada@example.com")
GOOD = Message("[MPS] Add x", "Before.\n\nIt is fine.\n\nAfter.\n", (ADA,), GhstackTrailers((SOURCE, LINK)))
Mail = Callable[[str], str]
Wrong = Callable[[str, Mail], bool]


def git_trailers(text: str) -> list[str]:
    command = ["git", "interpret-trailers", "--parse"]
    return subprocess.run(command, input=text.encode(), capture_output=True, check=True).stdout.decode().splitlines()


def linked_elsewhere(text: str, mail: Mail) -> bool:
    """ghstack takes the commit for another pull request."""
    link = ghstack.diff.PullRequestResolved.search(text, "github.com")
    return link is not None and link.url() != URL


def linked_nowhere(text: str, mail: Mail) -> bool:
    """ghstack opens a new pull request although the message names one."""
    return ghstack.diff.PullRequestResolved.search(text, "github.com") is None


def wrong_source(text: str, mail: Mail) -> bool:
    """ghstack reads another source id than the trailer's, or none."""
    found = ghstack.submit.RE_GHSTACK_SOURCE_ID.findall(text)
    return found != ["b" * 40]


def comment_taken(text: str, mail: Mail) -> bool:
    return ghstack.submit.RE_GHSTACK_COMMENT_ID.search(text) is not None


def poisoned(text: str, mail: Mail) -> bool:
    """ghstack refuses commits with its own mark (test_submit_check sees it do so)."""
    return "[ghstack-poisoned]" in text


def list_overwritten(text: str, mail: Mail) -> bool:
    return ghstack.submit.RE_STACK.search(text) is not None


def mention_stripped(text: str, mail: Mail) -> bool:
    return bool(ghstack.submit.strip_mentions(text) != text)


def rule_drawn(text: str, mail: Mail) -> bool:
    return bool(ghstack.submit.starts_with_bullet(text.partition("\n\n")[2]))


def inside_meta(text: str, mail: Mail) -> bool:
    return ghstack.submit.RE_DIFF_REV.search(text) is not None


def trailers_misplaced(text: str, mail: Mail) -> bool:
    """What ghstack adds on the first submit is not where git finds it."""
    bare = re.sub(r"\n(?:ghstack-source-id|Pull-Request): \S+", "", text.rstrip())
    submitted = ghstack.trailers.interpret_trailers(bare, [SOURCE, LINK])
    return git_trailers(submitted)[-2:] != [SOURCE, LINK]


def trailers_unread(text: str, mail: Mail) -> bool:
    """Git reads no trailers, or others than ghstack's two at the end, each once."""
    return git_trailers(text)[-2:] != [SOURCE, LINK] or len(set(git_trailers(text))) != len(git_trailers(text))


def body_rewritten(text: str, mail: Mail) -> bool:
    """ghstack's own parser gives back another body."""
    _, body, _ = ghstack.trailers.parse_message(text)
    return bool(body != text.partition("\n\n")[2].rpartition("\n\n")[0])


def mail_changes(text: str, mail: Mail) -> bool:
    """``git format-patch`` and ``git am --keep-non-patch`` give another message, or none."""
    try:
        return mail(text) != text
    except AssertionError:
        return True


def editor_drops(text: str, mail: Mail) -> bool:
    """An editor session of git's gives another message."""
    kept = subprocess.run(["git", "stripspace", "-s"], input=text.encode(), capture_output=True, check=True).stdout
    return kept.decode() != text


def scissors_cut(text: str, mail: Mail) -> bool:
    command = ["git", "mailinfo", "--scissors", "/dev/stdout", "/dev/null"]
    mailed = f"From: A <a@b.example>\nSubject: x\n\n{text.partition(chr(10) * 2)[2]}"
    return b"Before." not in subprocess.run(command, input=mailed.encode(), capture_output=True, check=True).stdout


def git_refuses(text: str, mail: Mail) -> bool:
    command = ["git", "commit-tree", "4b825dc642cb6eb9a060e54bf8d69288fbee4904"]
    return subprocess.run(command, input=text.encode(), capture_output=True, check=False).returncode != 0


@dataclass(frozen=True)
class Hazard:
    """One row.

    Attributes:
        rule: the rule that finds it.
        message: the message, or a text where the fault is in the layout.
        wrong: what would happen without the rule.
        outcome: ``refused``, ``warned``, or ``repaired`` by rendering.
    """

    rule: str
    message: Message | str
    wrong: Wrong
    outcome: str = "refused"


def _line(*lines: str) -> Message:
    return replace(GOOD, body="\n".join(("Before.", "", *lines, "", "After.")))


def _bare(*lines: str) -> Message:
    """The same without trailers: as it is before the first submit."""
    return replace(_line(*lines), co_authors=(), ghstack=GhstackTrailers())


def _first(line: str) -> Message:
    return replace(GOOD, body=f"{line}\nMore.\n")


def _title(title: str) -> Message:
    return replace(GOOD, title=title)


def _trailers(*lines: str) -> Message:
    return replace(GOOD, co_authors=(), ghstack=GhstackTrailers(lines))


HAZARDS = (
    Hazard("pull-request-quoted", _line(f"As Pull-Request: {OTHER} did."), linked_elsewhere),
    Hazard("pull-request-quoted", _line(f"Pull Request resolved: {OTHER}"), linked_elsewhere),
    Hazard(
        "pull-request-quoted",
        _bare("gh-metadata: pytorch pytorch 1 gh/me/3/head"),
        linked_elsewhere,
    ),
    Hazard("pull-request-short", _bare("Pull-Request: #7"), linked_nowhere),
    Hazard("unknown-trailer", _trailers(SOURCE, "Pull-Request: #7"), linked_nowhere),
    Hazard("source-id-alone", _trailers(SOURCE), linked_nowhere),
    Hazard("pull-request-alone", _trailers(LINK), wrong_source, "warned"),
    Hazard("ghstack-key", _line("ghstack-source-id: is a tree"), wrong_source),
    Hazard("ghstack-key", _line("ghstack-comment-id: 12"), comment_taken),
    Hazard("trailer-twice", _trailers(SOURCE, LINK, LINK), trailers_unread),
    Hazard("trailer-twice", replace(GOOD, co_authors=(ADA, ADA)), trailers_unread),
    Hazard("poisoned", _line("What [ghstack-poisoned] means."), poisoned),
    Hazard("stack-list", _line("Stack trace:", "* first", "* second"), list_overwritten),
    Hazard("mention", _line("The decorator @onlyMPS does it."), mention_stripped),
    Hazard("mention-cc", _line("cc @ada"), mention_stripped, "warned"),
    Hazard("leading-bullet", _first("- first"), rule_drawn, "warned"),
    Hazard("differential-revision", _line("Differential Revision: D123"), inside_meta),
    Hazard("co-author-in-body", _bare("Co-authored-by: Bob <bob@example.com>"), trailers_misplaced),
    Hazard("trailers-in-body", _bare("Note: this is prose."), trailers_misplaced),
    Hazard("trailers-in-body", _bare("https://example.com/alone"), trailers_misplaced),
    Hazard(
        "trailers-in-body",
        _bare("Signed-off-by: Ada <ada@example.com>", "and two lines", "of prose"),
        trailers_misplaced,
    ),
    Hazard("glued-trailers", f"[MPS] Add x\n\nProse that goes on:\n{SOURCE}\n{LINK}\n", trailers_unread),
    Hazard("key-with-space", f"[MPS] Add x\n\nProse.\n\nApproved by: me\n{SOURCE}\n{LINK}\n", trailers_unread),
    Hazard("control-character", _line("two\u2028lines"), body_rewritten),
    Hazard("carriage-return", _line("a\rline"), body_rewritten),
    Hazard("nul", _line("a\0b"), git_refuses),
    Hazard("comment-line", _line("# Heading"), editor_drops),
    Hazard("mail-cut", _line("---"), mail_changes),
    Hazard("mail-cut", _line("diff -u a b"), mail_changes),
    Hazard("mail-cut", _line("Index: x"), mail_changes),
    Hazard("mail-separator", _line("From 0123 Mon Sep 17 00:00:00 2001"), mail_changes),
    Hazard("mail-header", _first("Subject: matters"), mail_changes),
    Hazard("scissors", _line("-- >8 --"), scissors_cut),
    Hazard("title-mail", _title("[MPS]: add x"), mail_changes),
    Hazard("title-mail", _title("Re: add x"), mail_changes),
    Hazard("title-spaces", _title("[MPS] Add  x"), mail_changes),
    Hazard("blank-at-end", f"{GOOD.title}\n\nTwo blanks  \n\n{SOURCE}\n{LINK}\n", mail_changes, "repaired"),
    Hazard("doubled-empty-line", f"{GOOD.title}\n\nOne.\n\n\nTwo.\n\n{SOURCE}\n{LINK}\n", mail_changes, "repaired"),
)
_IDS = [f"{hazard.rule}-{number}" for number, hazard in enumerate(HAZARDS)]


@pytest.mark.parametrize("hazard", HAZARDS, ids=_IDS)
def test_a_hazard_is_found_and_the_tool_would_have_been_misled(hazard: Hazard, mailed: Mail) -> None:
    is_text = isinstance(hazard.message, str)
    findings = check_text(hazard.message) if isinstance(hazard.message, str) else check_message(hazard.message)
    severities = {finding.severity.value for finding in findings if finding.rule == hazard.rule}
    text = hazard.message if isinstance(hazard.message, str) else hazard.message.render()
    assert hazard.wrong(text, mailed)
    if hazard.outcome == "repaired":
        assert is_text
        repaired = Message(GOOD.title, text.partition("\n\n")[2].rpartition("\n\n")[0], (), extract(text))
        assert not hazard.wrong(repaired.render(), mailed)
    else:
        assert severities == {{"refused": "refuse", "warned": "warn"}[hazard.outcome]}


@pytest.mark.parametrize(
    "wrong", list(dict.fromkeys(hazard.wrong for hazard in HAZARDS)), ids=lambda wrong: wrong.__name__
)
def test_a_good_message_misleads_no_tool(wrong: Wrong, mailed: Mail) -> None:
    assert check_message(GOOD) == ()
    assert not wrong(GOOD.render(), mailed)


def test_the_table_has_at_least_25_different_hazards() -> None:
    assert len({str(hazard.message) for hazard in HAZARDS}) >= 25


def test_the_old_key_with_spaces_is_repaired_when_trailers_are_carried() -> None:
    old = f"[MPS] Add x\n\nProse.\n\n{SOURCE}\nPull Request resolved: {URL}\n"
    assert git_trailers(old) != [SOURCE, LINK]
    repaired = Message("[MPS] Add x", "Prose.", (), extract(old)).render()
    assert git_trailers(repaired) == [SOURCE, LINK]


def test_credit_that_stands_below_the_trailers_is_put_above_them() -> None:
    text = f"[MPS] Add x\n\nProse.\n\n{SOURCE}\n{LINK}\n{ADA.trailer()}\n"
    message = Message("[MPS] Add x", "Prose.", (ADA,), extract(text))
    assert git_trailers(message.render()) == [ADA.trailer(), SOURCE, LINK]
