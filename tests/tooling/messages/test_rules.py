"""Every rule catches its seeded fault, and a good message has none."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from patchstack.messages import (
    CoAuthor,
    GhstackTrailers,
    Message,
    MessageFinding,
    MessagePart,
    Severity,
    check_message,
    check_series,
    check_text,
    refused,
)
from patchstack.messages.rules import MESSAGE_RULES, SERIES_RULE_NAMES

SOURCE = "ghstack-source-id: " + "b" * 40
PULL = "Pull-Request: https://github.com/pytorch/pytorch/pull/7"
ADA = CoAuthor("Ada", "ada@example.com")
GOOD = Message(
    "[MPS] Add grid_sampler_2d_backward",
    """The backward of grid_sample had no kernel for Apple GPUs, so training fell back to the CPU.

Test plan:

    python test/test_mps.py -k grid_sample

- float, half and bfloat16
- https://example.com/design explains the layout

Stack of buffers, oldest first:
- input
- grid

Fixes #12345. The diff of index.h is small; 3 < 5, a -- b, --- not at the start: fine.
""",
    (ADA,),
    GhstackTrailers((SOURCE, PULL)),
)


@dataclass(frozen=True)
class Seed:
    """A message with one fault.

    Attributes:
        rule: the rule that must find it.
        message: the message, or a whole text where the fault is in the layout.
        part: where the finding must point to.
        line: line within that part.
    """

    rule: str
    message: Message | str
    part: MessagePart = MessagePart.BODY
    line: int = 3


def _title(rule: str, title: str) -> Seed:
    return Seed(rule, replace(GOOD, title=title), MessagePart.TITLE, 1)


def _body(rule: str, line: str, *following: str) -> Seed:
    """The fault is on the third line, a paragraph with prose on both sides."""
    lines = ["It starts well.", "", line, *following, "", "It ends well."]
    return Seed(rule, replace(GOOD, body="\n".join(lines)))


def _trailers(rule: str, line: int, *trailers: str) -> Seed:
    return Seed(rule, replace(GOOD, co_authors=(), ghstack=GhstackTrailers(trailers)), MessagePart.TRAILERS, line)


SEEDS = (
    _title("title-empty", "  "),
    _title("title-lines", "[MPS] Add x\nand y"),
    _title("title-edges", " [MPS] Add x"),
    _title("title-spaces", "[MPS] Add  x"),
    _title("title-spaces", "[MPS] Add\tx"),
    _title("title-length", "[MPS] " + "x" * 67),
    _title("title-too-long", "[MPS] " + "x" * 251),
    _title("title-period", "[MPS] Add x."),
    _title("title-prefix", "Add x"),
    _title("title-autosquash", "fixup! [MPS] Add x"),
    _title("title-autosquash", "amend! [MPS] Add x"),
    _title("title-mail", "[MPS] Re: add x"),
    _title("title-mail", "[MPS]: add x"),
    _title("title-mail", "[DISPATCH] Add x"),
    _title("comment-line", "#12 is fixed"),
    _title("mention", "[MPS] Ask @ada"),
    _title("encoding", "[MPS] caf\udce9"),
    _title("skip-ci", "[MPS] Add x [skip ci]"),
    _body("pull-request-quoted", f"It was seen in {PULL} before."),
    _body("pull-request-quoted", "gh-metadata: pytorch pytorch 12 gh/me/3/head"),
    _body("pull-request-short", "Pull-Request: #12"),
    _body("poisoned", "What [ghstack-poisoned] means."),
    _body("stack-list", "Stack trace:", "* first", "* second"),
    _body("ghstack-key", "ghstack-source-id: is a tree"),
    _body("ghstack-key", "ghstack-comment-id: 12"),
    _body("mention", "The decorator `@onlyMPS` does it."),
    _body("mention-cc", "cc @ada"),
    _body("bot-command", "Then say @pytorchbot merge there."),
    _body("differential-revision", "Differential Revision: D123"),
    Seed("leading-bullet", replace(GOOD, body="- first\n- second\n"), line=1),
    _body("co-author-in-body", "Co-authored-by: Ada <ada@example.com>"),
    _body("trailers-in-body", "Note: this is prose."),
    _body("trailers-in-body", "https://example.com/alone"),
    _body("trailers-in-body", "Signed-off-by: Ada <ada@example.com>", "and two lines", "of prose"),
    _trailers("trailer-twice", 3, SOURCE, PULL, PULL.replace("7", "8")),
    Seed("trailer-twice", replace(GOOD, co_authors=(ADA, ADA)), MessagePart.TRAILERS, 2),
    _trailers("unknown-trailer", 3, SOURCE, PULL, "Pull-Request: #7"),
    _trailers("source-id-alone", 1, SOURCE),
    _trailers("pull-request-alone", 1, PULL),
    _body("encoding", "caf\ufffd"),
    _body("nul", "a\0b"),
    _body("carriage-return", "a line\r"),
    _body("control-character", "two\u2028lines"),
    _body("control-character", "an escape \x1b[1m"),
    _body("tab", "a\tb"),
    _body("blank-at-end", "two blanks  "),
    Seed("doubled-empty-line", replace(GOOD, body="one\n\n\ntwo")),
    _body("comment-line", "# Heading"),
    _body("mail-cut", "---"),
    _body("mail-cut", "---   "),
    _body("mail-cut", "--- a/file.txt"),
    _body("mail-cut", "Index: x"),
    _body("mail-cut", "diff --git a/x b/x"),
    _body("mail-separator", "From 0123 Mon Sep 17 00:00:00 2001"),
    _body("mail-from", "From here on it is prose."),
    Seed("mail-header", replace(GOOD, body="Subject: matters\n\nMore."), line=1),
    Seed("mail-header", replace(GOOD, body="\nFrom: the start\n\nMore."), line=2),
    _body("scissors", "-- >8 --"),
    _body("skip-ci", "Use [ci skip] for it."),
    _body("skip-ci", "skip-checks: true"),
    Seed("body-too-long", replace(GOOD, body="word " * 12_001), line=1),
    Seed("key-with-space", f"[MPS] T\n\nProse.\n\n{SOURCE}\nApproved by: ada\n{PULL}\n", MessagePart.TRAILERS, 2),
    Seed("glued-trailers", f"[MPS] T\n\nProse before.\n{SOURCE}\n{PULL}\n", MessagePart.TRAILERS, 1),
)


def _check(message: Message | str) -> tuple[MessageFinding, ...]:
    return check_text(message) if isinstance(message, str) else check_message(message)


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.rule)
def test_a_seeded_fault_is_found_where_it_is(seed: Seed) -> None:
    found = [(finding.part, finding.line) for finding in _check(seed.message) if finding.rule == seed.rule]
    assert found == [(seed.part, seed.line)]


def test_every_rule_has_a_seeded_fault() -> None:
    names = [rule.name for rule in MESSAGE_RULES]
    assert len(names) == len(set(names))
    assert set(names) == {seed.rule for seed in SEEDS}


@pytest.mark.parametrize("check", [lambda m: check_message(m), lambda m: check_text(m.render())])
def test_a_good_message_has_no_finding(check: Callable[[Message], tuple[MessageFinding, ...]]) -> None:
    assert check(GOOD) == ()
    assert check(replace(GOOD, body="", co_authors=(), ghstack=GhstackTrailers())) == ()


def test_a_finding_names_the_message_the_place_and_the_way_out() -> None:
    (finding,) = check_message(replace(GOOD, body="Prose.\n# Heading\n"))
    assert str(finding) == (
        "'[MPS] Add grid_sampler_2d_backward', body line 2: git takes a line that starts with # for a comment and "
        "drops it when the message is next edited: write the heading without #, or indent the line; found "
        "'# Heading' (comment-line)"
    )


def test_warnings_do_not_end_the_run() -> None:
    findings = check_message(replace(GOOD, body="a\tb\n# c\n"))
    assert [finding.rule for finding in findings] == ["tab", "comment-line"]
    assert [finding.rule for finding in refused(findings)] == ["comment-line"]


def test_a_file_with_dos_line_ends_is_one_finding() -> None:
    (finding,) = check_message(replace(GOOD, body="one\r\ntwo\r\nthree\r\n"))
    assert (finding.rule, finding.line) == ("carriage-return", 1)


OTHER = replace(GOOD, title="[MPS] Add x", ghstack=GhstackTrailers())
SERIES_SEEDS = (
    ("equal-titles", replace(OTHER, title="[MPS]  add Grid_sampler_2d_backward".replace("  ", " "))),
    ("shared-pull-request", replace(OTHER, ghstack=GOOD.ghstack)),
    (
        "two-repositories",
        replace(OTHER, ghstack=GhstackTrailers((SOURCE, "Pull-Request: https://github.com/me/pytorch/pull/8"))),
    ),
)


@pytest.mark.parametrize(("rule", "second"), SERIES_SEEDS, ids=lambda value: value if isinstance(value, str) else "")
def test_a_series_is_checked_as_a_whole(rule: str, second: Message) -> None:
    assert check_message(second) == ()
    (finding,) = check_series((GOOD, second))
    assert (finding.rule, finding.severity, finding.title) == (rule, Severity.REFUSE, second.title)


def test_every_series_rule_has_a_seeded_fault_and_a_good_series_has_none() -> None:
    assert tuple(rule for rule, _ in SERIES_SEEDS) == SERIES_RULE_NAMES
    assert check_series((GOOD, OTHER)) == ()
    assert [f.rule for f in check_series((GOOD, replace(OTHER, title="")))] == ["title-empty"]


@pytest.mark.parametrize("line", [" " * 200_000 + "x", "-" * 200_000 + "x"], ids=["blanks", "dashes"])
def test_a_line_that_goes_on_for_ever_is_read_once(line: str) -> None:
    before = time.process_time()
    check_text(f"[MPS] Title\n\n{line}\n")
    assert time.process_time() - before < 5
