"""The vocabulary of commit messages: a title, prose, people, and what ghstack wrote last time.

A message is kept in parts and turned into text in one place, so that there is one answer to where trailers go: prose,
an empty line, then one final paragraph with ``Co-authored-by`` first and ghstack's trailers after it. That is where
``git interpret-trailers`` looks, and what ghstack itself makes of a message that ends in ``Co-authored-by``.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from patchstack.errors import ManifestError
from patchstack.messages.paragraphs import strip_space
from patchstack.tree.git.model import GitTreeHash

_PERSON = re.compile(r"(?P<name>[^<>@\s][^<>\n\r]*?) <(?P<email>[^<>@\s]+@[^<>@\s]+)>")
_SOURCE_ID = re.compile(r"ghstack-source-id: (?P<value>\S+)")
_COMMENT_ID = re.compile(r"ghstack-comment-id: (?P<value>\d{1,18})")
_PULL_REQUEST = re.compile(
    r"Pull-Request(?:-resolved)?: (?P<value>https://[^/\s]+/(?P<repository>[^/\s]+/[^/\s]+)/pull/(?P<number>\d{1,18}))"
)


class MessagePart(enum.Enum):
    """Where in a message a line stands."""

    TITLE = "title"
    BODY = "body"
    TRAILERS = "trailers"


@dataclass(frozen=True)
class Line:
    """One line of a message, with the place an author finds it at.

    Attributes:
        part: title, body or trailers.
        number: line within that part, counted from 1; for the body, the line of the file it was written in.
        text: the line without its line feed.
    """

    part: MessagePart
    number: int
    text: str


@dataclass(frozen=True)
class CoAuthor:
    """Somebody who gets credit in a ``Co-authored-by`` trailer."""

    name: str
    email: str

    @classmethod
    def parse(cls, text: str, *, where: str = "") -> CoAuthor:
        """Read ``Name <address>``.

        Raises:
            ManifestError: ``text`` is something else.
        """
        found = _PERSON.fullmatch(text.strip())
        if found is None:
            raise ManifestError("not a co-author", where=where, expected="Name <address@host>", found=repr(text))
        return cls(found["name"], found["email"])

    def trailer(self) -> str:
        return f"Co-authored-by: {self.name} <{self.email}>"


@dataclass(frozen=True)
class PullRequest:
    """The pull request that a commit is tied to.

    Attributes:
        url: its full address.
        repository: ``owner/name``.
        number: its number in that repository.
    """

    url: str
    repository: str
    number: int


@dataclass(frozen=True)
class GhstackTrailers:
    """What ghstack added to a commit when it was submitted, kept letter for letter.

    Attributes:
        lines: the trailer lines in their order; empty for a commit that was never submitted.
    """

    lines: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.lines)

    @staticmethod
    def recognises(line: str) -> bool:
        """Whether the line is a trailer of ghstack's in full (``Pull-Request: #7`` is not)."""
        return any(form.fullmatch(line) for form in (_SOURCE_ID, _COMMENT_ID, _PULL_REQUEST))

    @property
    def source_id(self) -> GitTreeHash | None:
        """The tree that was submitted last, or ``None``."""
        found = self._first(_SOURCE_ID)
        return GitTreeHash(found["value"]) if found else None

    @property
    def pull_request(self) -> PullRequest | None:
        """The pull request of the commit, or ``None``."""
        found = self._first(_PULL_REQUEST)
        return PullRequest(found["value"], found["repository"], int(found["number"])) if found else None

    def _first(self, form: re.Pattern[str]) -> re.Match[str] | None:
        return next((found for line in self.lines if (found := form.fullmatch(line))), None)


@dataclass(frozen=True)
class Message:
    """One commit message in parts.

    Attributes:
        title: the first line.
        body: the prose, as its file has it: no trailers.
        co_authors: who shares the credit, in order.
        ghstack: what ghstack wrote into the commit that this one replaces.
    """

    title: str
    body: str = ""
    co_authors: tuple[CoAuthor, ...] = ()
    ghstack: GhstackTrailers = GhstackTrailers()

    @property
    def trailers(self) -> tuple[str, ...]:
        """The lines of the final paragraph."""
        return (*(person.trailer() for person in self.co_authors), *self.ghstack.lines)

    def with_ghstack(self, ghstack: GhstackTrailers) -> Message:
        """The same message, tied to the pull request that ``ghstack`` names."""
        return replace(self, ghstack=ghstack)

    def render(self) -> str:
        """The text of the commit, ending in one line feed.

        Blanks at line ends and doubled empty lines are taken out here, because ``git am`` would do it later and
        the two ways to the commit would part.
        """
        parts = (self.title, strip_space(self.body).removesuffix("\n"), "\n".join(self.trailers))
        return "\n\n".join(part for part in parts if part) + "\n"

    def lines(self) -> Iterator[Line]:
        """Every line as written, before :meth:`render` tidies it."""
        texts = (
            (MessagePart.TITLE, self.title),
            (MessagePart.BODY, self.body),
            (MessagePart.TRAILERS, "\n".join(self.trailers)),
        )
        for part, text in texts:
            for number, line in enumerate(text.split("\n"), start=1):
                yield Line(part, number, line)


class Severity(enum.Enum):
    """What a finding does to the run: ``REFUSE`` ends it, ``WARN`` is printed."""

    REFUSE = "refuse"
    WARN = "warn"


@dataclass(frozen=True)
class MessageFinding:
    """One thing in a message that would mislead git, ghstack, GitHub or a reader.

    Attributes:
        rule: name of the rule, stable.
        severity: whether the run goes on.
        title: title of the message it is in.
        part: the part of the message.
        line: line within the part, counted from 1.
        found: the text in question, shortened.
        problem: what would happen and what to write instead, in plain words.
    """

    rule: str
    severity: Severity
    title: str
    part: MessagePart
    line: int
    found: str
    problem: str

    def __str__(self) -> str:
        place = self.part.value if self.part is MessagePart.TITLE else f"{self.part.value} line {self.line}"
        return f"{self.title!r}, {place}: {self.problem}; found {self.found!r} ({self.rule})"
