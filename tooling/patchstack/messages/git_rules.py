"""Bodies: lines that git, a mailbox, an editor or GitHub's runner would act on instead of keeping."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

from patchstack.messages.model import Line, MessagePart
from patchstack.messages.paragraphs import has_key_with_space, is_continuation, is_trailer, split_final_paragraph
from patchstack.messages.rule import Draft, Rule, first_of, lines_with, refuse, warn

_BODY = (MessagePart.BODY,)
_ALL = (MessagePart.TITLE, MessagePart.BODY, MessagePart.TRAILERS)
_GITHUB_BODY_LIMIT = 60_000  # 65,536 at GitHub, less what ghstack puts before it
_IN_BODY_HEADER = re.compile(r"(?:From|Date|Subject):\s|>From [0-9a-f]{40}\s|\[PATCH\]\s", re.IGNORECASE)
# A mailbox separator for git: something that ends in a time of day and a year.
_SEPARATOR = r"^From .*\d.\d\d:\d\d\s*\d{2,}"
_PERFORATION = r"^\s*-[\s-]*(?:8<|>8|%<|>%)|^\s*(?:8<|>8|%<|>%)[\s-]*-"
_KNOWN_KEY = re.compile(r"(?:ghstack-source-id|ghstack-comment-id|Pull-Request|co-authored-by): ", re.IGNORECASE)


def _mail_header(draft: Draft) -> Iterable[Line]:
    first = next((line for line in draft.part(MessagePart.BODY) if line.text.strip()), None)
    return [first] if first is not None and _IN_BODY_HEADER.match(first.text) else []


def _long_body(draft: Draft) -> Iterable[Line]:
    size = len(draft.message.body)
    return [Line(MessagePart.BODY, 1, f"{size} characters")] if size > _GITHUB_BODY_LIMIT else []


def _doubled_empty_lines(draft: Draft) -> Iterable[Line]:
    lines = draft.part(MessagePart.BODY)
    last = max((line.number for line in lines if line.text.strip()), default=0)
    for before, line in pairwise(lines):
        if not before.text.strip() and not line.text.strip() and line.number < last:
            yield line


def _final_paragraph(draft: Draft) -> tuple[str, ...]:
    _, _, rest = draft.text.partition("\n")
    return split_final_paragraph(rest)[1]


def _key_with_space(draft: Draft) -> Iterable[Line]:
    lines = _final_paragraph(draft)
    if any(is_trailer(line) for line in lines):
        yield from (Line(MessagePart.TRAILERS, n, line) for n, line in enumerate(lines, 1) if has_key_with_space(line))


def _glued_prose(draft: Draft) -> Iterable[Line]:
    lines = _final_paragraph(draft)
    if any(_KNOWN_KEY.match(line) for line in lines):
        for number, line in enumerate(lines, 1):
            if not (is_trailer(line) or is_continuation(line) or has_key_with_space(line)):
                yield Line(MessagePart.TRAILERS, number, line)


GIT_RULES: tuple[Rule, ...] = (
    refuse(
        "encoding",
        "not UTF-8: git and GitHub would show something else; save the file as UTF-8",
        lines_with("[\ud800-\udfff\ufffd]", _ALL),
    ),
    refuse("nul", "git cannot store a NUL in a message: remove it", lines_with(r"\x00", _ALL)),
    refuse(
        "carriage-return",
        "git keeps the carriage return in the commit: use line feeds",
        first_of(lines_with(r"\r", _ALL)),
    ),
    refuse(
        "control-character",
        "ghstack breaks the line at this character when it adds its trailers: remove it",
        lines_with(r"[\x01-\x08\x0b\x0c\x0e-\x1f\x7f\x85\u2028\u2029]", _ALL),
    ),
    warn("tab", "a tab is as wide as the reader's settings: use spaces", lines_with(r"\t", _BODY)),
    warn(
        "blank-at-end",
        "blanks at the end of a line are left out, as git am does",
        lines_with(r"(?<![ \t])[ \t]+$", _BODY),
    ),
    warn("doubled-empty-line", "two empty lines become one, as git am does", _doubled_empty_lines),
    refuse(
        "comment-line",
        "git takes a line that starts with # for a comment and drops it when the message is next edited: write the "
        "heading without #, or indent the line",
        lines_with(r"^#"),
    ),
    refuse(
        "mail-cut",
        "git am takes this line for the beginning of the patch and drops the rest of the message with success: "
        "reword or indent it",
        lines_with(r"^(?:---\s*$|--- \S|diff -|Index: )", _BODY),
    ),
    refuse(
        "mail-separator",
        "git am takes this line for the beginning of the next mail: reword or indent it",
        lines_with(_SEPARATOR, _BODY),
    ),
    warn(
        "mail-from",
        "mail programs write '>From' for 'From' at the start of a line: let it start with another word",
        lambda draft: (line for line in lines_with(r"^From ", _BODY)(draft) if not re.search(_SEPARATOR, line.text)),
    ),
    refuse(
        "mail-header",
        "git am takes a body that starts like this for mail headers and drops the line: start with another word",
        _mail_header,
    ),
    refuse(
        "scissors",
        "git am --scissors drops everything above this line: remove it",
        lines_with(_PERFORATION, _BODY),
    ),
    refuse(
        "key-with-space",
        "git reads no trailer at all from a paragraph with such a line: join the key with '-', or move it to the prose",
        _key_with_space,
    ),
    refuse(
        "glued-trailers",
        "trailers need an empty line before them: git sees none in a paragraph that also holds prose",
        _glued_prose,
    ),
    refuse("body-too-long", "GitHub refuses so long a description: move results into a comment", _long_body),
    refuse(
        "skip-ci",
        "GitHub runs no checks for a commit that says this: reword it",
        lines_with(
            r"\[(?:skip ci|ci skip|no ci|skip actions|actions skip)\]|^skip-checks:\s*true", _ALL, ignore_case=True
        ),
    ),
)
