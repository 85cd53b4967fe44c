"""What a message rule is: a name, a severity, plain words, and a check that finds places."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from patchstack.messages.model import Line, Message, MessageFinding, MessagePart, Severity

_SHOWN = 60
_WRITTEN = (MessagePart.TITLE, MessagePart.BODY)


@dataclass(frozen=True)
class Draft:
    """A message as the rules see it.

    Attributes:
        message: its parts.
        text: the whole text: as rendered, or as found in a commit.
    """

    message: Message
    text: str

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """Every line as written."""
        return tuple(self.message.lines())

    @property
    def title(self) -> str:
        return self.message.title

    def part(self, part: MessagePart) -> tuple[Line, ...]:
        return tuple(line for line in self.lines if line.part is part)


Check = Callable[[Draft], Iterable[Line]]


@dataclass(frozen=True)
class Rule:
    """One hazard.

    Attributes:
        name: stable name, shown with every finding.
        severity: whether a finding ends the run.
        problem: what would happen and what to write instead, in plain words.
        check: the lines that have the hazard.
    """

    name: str
    severity: Severity
    problem: str
    check: Check

    def findings(self, draft: Draft) -> Iterator[MessageFinding]:
        for line in self.check(draft):
            yield MessageFinding(
                self.name, self.severity, draft.title, line.part, line.number, shortened(line.text), self.problem
            )


def shortened(text: str) -> str:
    """The text, or its beginning where it is long."""
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def refuse(name: str, problem: str, check: Check) -> Rule:
    return Rule(name, Severity.REFUSE, problem, check)


def warn(name: str, problem: str, check: Check) -> Rule:
    return Rule(name, Severity.WARN, problem, check)


def lines_with(pattern: str, parts: tuple[MessagePart, ...] = _WRITTEN, *, ignore_case: bool = False) -> Check:
    """A check for every line of ``parts`` in which ``pattern`` is found."""
    compiled = re.compile(pattern, re.IGNORECASE if ignore_case else 0)
    return lambda draft: (line for line in draft.lines if line.part in parts and compiled.search(line.text))


def first_of(check: Check) -> Check:
    """The same check, but one place is enough: the fault is in the whole file."""
    return lambda draft: itertools.islice(check(draft), 1)


def title_where(condition: Callable[[str], bool]) -> Check:
    """A check of the title as a whole."""
    return lambda draft: [Line(MessagePart.TITLE, 1, draft.title)] if condition(draft.title) else []
