"""Check commit messages before they exist: every hazard that was seen to mislead git, ghstack or GitHub.

A message is refused where the tool chain would change it, act on it or lose it without saying so; it is warned about
where a reader would stumble, or where rendering tidies it. Nothing is repaired in silence.
"""

from __future__ import annotations

from collections.abc import Sequence

from patchstack.messages.ghstack_rules import GHSTACK_RULES
from patchstack.messages.git_rules import GIT_RULES
from patchstack.messages.model import Message, MessageFinding, MessagePart, Severity
from patchstack.messages.paragraphs import is_trailer_block, split_final_paragraph
from patchstack.messages.rule import Draft, Rule, shortened
from patchstack.messages.title_rules import TITLE_RULES
from patchstack.messages.trailers import parse_message

MESSAGE_RULES: tuple[Rule, ...] = (*TITLE_RULES, *GHSTACK_RULES, *GIT_RULES)
SERIES_RULE_NAMES = ("equal-titles", "shared-pull-request", "two-repositories")


def check_message(message: Message) -> tuple[MessageFinding, ...]:
    """What is wrong with a message that is about to be rendered; empty when nothing is."""
    return _check(Draft(message, message.render()))


def check_text(text: str) -> tuple[MessageFinding, ...]:
    """What is wrong with the message of an existing commit; also sees how its paragraphs are laid out.

    Trailers of others (``Signed-off-by``) do no harm where they belong, in the final paragraph: ghstack adds its own
    below them.
    """
    final = split_final_paragraph(text.partition("\n")[2])[1]
    belongs = shortened(final[0]) if is_trailer_block(final) else None
    findings = _check(Draft(parse_message(text), text))
    return tuple(f for f in findings if f.rule != "trailers-in-body" or f.found != belongs)


def check_series(messages: Sequence[Message]) -> tuple[MessageFinding, ...]:
    """What is wrong with the messages of a whole stack, each alone and all together."""
    alone = tuple(finding for message in messages for finding in check_message(message))
    return (*alone, *check_together(messages))


def check_together(messages: Sequence[Message]) -> tuple[MessageFinding, ...]:
    """What is wrong with the messages of a stack together, whatever each of them says."""
    return (*_equal_titles(messages), *_pull_requests(messages))


def refused(findings: Sequence[MessageFinding]) -> tuple[MessageFinding, ...]:
    """Those findings that end the run."""
    return tuple(finding for finding in findings if finding.severity is Severity.REFUSE)


def _check(draft: Draft) -> tuple[MessageFinding, ...]:
    return tuple(finding for rule in MESSAGE_RULES for finding in rule.findings(draft))


def _in_series(rule: str, message: Message, part: MessagePart, found: str, problem: str) -> MessageFinding:
    line = 1 if part is MessagePart.TITLE else len(message.trailers)
    return MessageFinding(rule, Severity.REFUSE, message.title, part, line, shortened(found), problem)


def _equal_titles(messages: Sequence[Message]) -> tuple[MessageFinding, ...]:
    """Titles are how a person, and a regenerated stack without a record, tells the commits apart."""
    seen: set[str] = set()
    findings: list[MessageFinding] = []
    for message in messages:
        folded = " ".join(message.title.casefold().split())
        if folded in seen:
            problem = "another change of the series has this title, and its pull request could be taken for this one"
            findings.append(_in_series("equal-titles", message, MessagePart.TITLE, message.title, problem))
        seen.add(folded)
    return tuple(findings)


def _pull_requests(messages: Sequence[Message]) -> tuple[MessageFinding, ...]:
    seen: set[str] = set()
    repositories: set[str] = set()
    findings: list[MessageFinding] = []
    for message in messages:
        linked = message.ghstack.pull_request
        if linked is None:
            continue
        if linked.url in seen:
            problem = "two commits are tied to one pull request, and ghstack stops: unlink one of them"
            findings.append(_in_series("shared-pull-request", message, MessagePart.TRAILERS, linked.url, problem))
        if repositories and linked.repository not in repositories:
            problem = "the stack's pull requests are in two repositories, and ghstack stops: unlink one of them"
            findings.append(_in_series("two-repositories", message, MessagePart.TRAILERS, linked.url, problem))
        seen.add(linked.url)
        repositories.add(linked.repository)
    return tuple(findings)
