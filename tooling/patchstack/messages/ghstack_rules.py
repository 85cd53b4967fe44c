"""Text that ghstack, or PyTorch's merge bot after it, takes for an instruction.

ghstack searches whole messages with patterns, not trailers with a parser, so a quotation counts as much as the thing
itself. Each rule is confirmed by a test against ghstack's own code.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

from patchstack.messages.model import GhstackTrailers, Line, MessagePart
from patchstack.messages.paragraphs import is_trailer_block, paragraphs
from patchstack.messages.rule import Draft, Rule, lines_with, refuse, warn

_BODY = (MessagePart.BODY,)
_LINK_KEY = r"(?:Pull Request resolved|Pull-Request-resolved|Pull-Request)"
_GHSTACK_KEY = re.compile(rf"(?:ghstack-source-id|ghstack-comment-id|{_LINK_KEY}|co-authored-by):", re.IGNORECASE)
_BOT = r"@pytorch(?:merge)?bot\b"
_MENTION = re.compile(r"(?<!\w)@(?!pytorch(?:merge)?bot\b)[A-Za-z0-9]")
_CC = re.compile(r"cc:? @\w")
_STACK_HEAD = re.compile(r"Stack.*:\r?$")
_BULLET = re.compile(r"\s*[*+-]\s")


def _stack_list(draft: Draft) -> Iterable[Line]:
    body = draft.part(MessagePart.BODY)
    for line, following in pairwise(body):
        if _STACK_HEAD.search(line.text) and following.text.startswith("* "):
            yield line


def _mentions(draft: Draft, *, in_cc: bool) -> Iterable[Line]:
    for line in (*draft.part(MessagePart.TITLE), *draft.part(MessagePart.BODY)):
        if _MENTION.search(line.text) and bool(_CC.match(line.text)) is in_cc:
            yield line


def _leading_bullet(draft: Draft) -> Iterable[Line]:
    first = next((line for line in draft.part(MessagePart.BODY) if line.text.strip()), None)
    return [first] if first is not None and _BULLET.match(first.text) else []


def _trailers_in_body(draft: Draft) -> Iterable[Line]:
    for paragraph in paragraphs(draft.message.body):
        if is_trailer_block(paragraph.lines) and not any(map(_GHSTACK_KEY.match, paragraph.lines)):
            yield Line(MessagePart.BODY, paragraph.first, paragraph.lines[0])


def _repeated_trailers(draft: Draft) -> Iterable[Line]:
    seen: Counter[str] = Counter()
    for line in draft.part(MessagePart.TRAILERS):
        key, _, value = line.text.partition(": ")
        once_only = key.replace("-resolved", "") if GhstackTrailers.recognises(line.text) else value.lower()
        seen[once_only] += 1
        if line.text and seen[once_only] > 1:
            yield line


def _unknown_trailers(draft: Draft) -> Iterable[Line]:
    strangers = [line for line in draft.message.ghstack.lines if not GhstackTrailers.recognises(line)]
    return [line for line in draft.part(MessagePart.TRAILERS) if line.text in strangers]


def _missing(draft: Draft, *, source_id: bool) -> Iterable[Line]:
    ghstack = draft.message.ghstack
    lacks_source, lacks_link = ghstack.source_id is None, ghstack.pull_request is None
    alone = lacks_source and not lacks_link if source_id else lacks_link and not lacks_source
    return [draft.part(MessagePart.TRAILERS)[-1]] if alone else []


GHSTACK_RULES: tuple[Rule, ...] = (
    refuse(
        "pull-request-quoted",
        "ghstack takes the first such text anywhere in a message for this commit's pull request: quote only the "
        "address",
        lines_with(rf"{_LINK_KEY}: https?://\S+/pull/\d|gh-metadata: \S+ \S+ \d+ gh/"),
    ),
    refuse(
        "pull-request-short",
        "ghstack takes only the full address for a pull request, so this would open a second one: write it out in "
        "the final paragraph",
        lines_with(rf"^\s*{_LINK_KEY}:\s*#?\d"),
    ),
    refuse(
        "poisoned",
        "ghstack refuses the whole stack when a message has this mark: remove it",
        lines_with(r"\[ghstack-poisoned\]"),
    ),
    refuse(
        "stack-list",
        "ghstack and the merge bot overwrite a line with 'Stack' and ':' followed by '* ' bullets: use '-' bullets",
        _stack_list,
    ),
    refuse(
        "ghstack-key",
        "ghstack takes a line that starts like this for its own bookkeeping and replaces it: reword or indent it",
        lines_with(r"^ghstack-(?:source|comment)-id:", _BODY),
    ),
    refuse(
        "mention",
        "ghstack drops the @ from the commit at the first submit while GitHub notifies that account: write the name "
        "without @",
        lambda draft: _mentions(draft, in_cc=False),
    ),
    warn(
        "mention-cc",
        "the accounts are notified, and ghstack drops the @ from the local commit at the first submit",
        lambda draft: _mentions(draft, in_cc=True),
    ),
    refuse("bot-command", "PyTorch's bots obey this when it is quoted in a comment: remove it", lines_with(_BOT)),
    refuse(
        "differential-revision",
        "the merge bot takes the pull request for one that lands inside Meta: remove the line",
        lines_with(r"^Differential Revision:", _BODY),
    ),
    warn(
        "leading-bullet",
        "ghstack puts '----' before a body that starts with a bullet: start with a sentence",
        _leading_bullet,
    ),
    refuse(
        "co-author-in-body",
        "credit above the prose splits the trailers, and none of them counts: list the person under co_authors",
        lines_with(r"^co-authored-by:", _BODY, ignore_case=True),
    ),
    refuse(
        "trailers-in-body",
        "git or ghstack takes this paragraph for trailers and puts the pull request in the middle of the prose: let "
        "it start with two words",
        _trailers_in_body,
    ),
    refuse("trailer-twice", "ghstack reads one of the two and rewrites both: keep one", _repeated_trailers),
    refuse("unknown-trailer", "not a trailer that ghstack reads: remove it", _unknown_trailers),
    refuse(
        "source-id-alone",
        "a source id without its Pull-Request line opens a second pull request: restore the line",
        lambda draft: _missing(draft, source_id=False),
    ),
    warn(
        "pull-request-alone",
        "without ghstack-source-id ghstack does not notice that the pull request was amended elsewhere",
        lambda draft: _missing(draft, source_id=True),
    ),
)
