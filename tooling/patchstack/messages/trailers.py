"""Keep a regenerated stack tied to the pull requests of the stack it replaces.

ghstack remembers nothing outside the commits: a commit without its trailers becomes a second pull request, one with a
wrong source id is refused. So the trailers are taken letter for letter from the last stack submitted from here, and
only from the final paragraph: anything above it is prose, even where it looks the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from patchstack.errors import ManifestError, RefError
from patchstack.messages.model import CoAuthor, GhstackTrailers, Message, PullRequest
from patchstack.messages.paragraphs import split_final_paragraph, strip_space
from patchstack.tree.git.model import Commit

_CO_AUTHOR = re.compile(r"co-authored-by: (?P<person>.*)", re.IGNORECASE)
# Older ghstack wrote the key with spaces, where git sees no trailer at all; today's reads both alike.
_OLD_PULL_REQUEST = re.compile(r"Pull Request resolved: (?=https://)")
# What ghstack takes for the pull request of a commit: the first of these anywhere in the message.
_LINK = re.compile(
    r"(?:Pull Request resolved|Pull-Request-resolved|Pull-Request): "
    r"(?P<url>https://(?P<host>[^/]+)/(?P<owner>[^/]+)/(?P<name>[^/]+)/pull/(?P<number>\d{1,18}))(?!\d)"
)
# The other thing it takes for one, from its early days.
_METADATA = re.compile(r"gh-metadata: (?P<owner>[^/]+) (?P<name>[^/]+) (?P<number>\d{1,18}) gh/[a-zA-Z0-9-]+/\d+/head")
_MENTION = re.compile(r"(?<!\w)@(?=[A-Za-z0-9])")


@dataclass(frozen=True)
class OldMessage:
    """A commit of the stack that is about to be replaced.

    Attributes:
        text: its full message.
        change_id: the change it was made from where a record says so, else ``None``: then its title decides.
        commit: its id, for error messages.
    """

    text: str
    change_id: str | None = None
    commit: str = ""

    @property
    def title(self) -> str:
        return self.text.split("\n", 1)[0]


@dataclass(frozen=True)
class Carried:
    """What the new stack takes over from the old one.

    Attributes:
        by_change: change id to trailers, for every change that has a pull request.
        unclaimed: submitted commits that no change of the series answers to: their pull requests stay behind.
    """

    by_change: Mapping[str, GhstackTrailers]
    unclaimed: tuple[OldMessage, ...] = ()


def parse_message(text: str) -> Message:
    """The parts of an existing commit message; what is not a known trailer stays in the body.

    Raises nothing: a damaged message comes back as prose, and the rules say what is wrong with it.
    """
    title, _, rest = strip_space(text).partition("\n")
    body, final = split_final_paragraph(rest)
    people: list[CoAuthor] = []
    ghstack: list[str] = []
    others: list[str] = []
    for line in final:
        current = _OLD_PULL_REQUEST.sub("Pull-Request: ", line)
        person = _co_author(line)
        if person is not None:
            people.append(person)
        elif GhstackTrailers.recognises(current):
            ghstack.append(current)
        else:
            others.append(line)
    if others:
        body = strip_space(body + "\n" + "\n".join(others))
    return Message(title, body, tuple(people), GhstackTrailers(tuple(ghstack)))


def _co_author(line: str) -> CoAuthor | None:
    found = _CO_AUTHOR.fullmatch(line)
    if found is None:
        return None
    try:
        return CoAuthor.parse(found["person"])
    except ManifestError:
        return None


def extract(text: str) -> GhstackTrailers:
    """ghstack's trailers from the final paragraph of a message, letter for letter; empty when there are none.

    The one change made: the old key ``Pull Request resolved`` becomes ``Pull-Request``.
    """
    return parse_message(text).ghstack


def linked_by_ghstack(text: str, github: str = "github.com") -> PullRequest | None:
    """The pull request that ghstack takes a commit for, wherever in the message it is named.

    Args:
        text: the whole message.
        github: host of GitHub; links to others do not count.
    """
    found = next((link for link in _LINK.finditer(text) if link["host"] == github), None) or _METADATA.search(text)
    if found is None:
        return None
    repository, number = f"{found['owner']}/{found['name']}", int(found["number"])
    return PullRequest(f"https://{github}/{repository}/pull/{number}", repository, number)


def without_ghstack(text: str) -> str:
    """The message as its author wrote it: tidied, without ghstack's trailers."""
    return parse_message(text).with_ghstack(GhstackTrailers()).render()


def same_prose(one: str, other: str) -> bool:
    """Whether two messages differ only in what ghstack does to them: its trailers, and ``@`` before a name."""
    return _MENTION.sub("", without_ghstack(one)) == _MENTION.sub("", without_ghstack(other))


def changed_since_submit(commit: Commit) -> bool:
    """Whether a submitted commit's tree is another one than ghstack recorded: amended or regenerated since."""
    source = extract(commit.message).source_id
    return source is not None and source != commit.tree


def carry(old: Sequence[OldMessage], titles: Mapping[str, str]) -> Carried:
    """Find, for every change of a series, the trailers of the commit it replaces.

    Args:
        old: the last stack submitted from here, in any order; commits that were never submitted do no harm.
        titles: change id to title, for the whole series.

    Raises:
        RefError: an old commit is tied to a pull request by something that is no trailer, or two old commits claim
            the same change or the same pull request.
    """
    submitted = [(message, extract(message.text)) for message in old]
    for message, trailers in submitted:
        _refuse_stray_link(message, trailers)
    submitted = [(message, trailers) for message, trailers in submitted if trailers.pull_request]
    _refuse_shared(((trailers.pull_request.url if trailers.pull_request else "", m) for m, trailers in submitted))

    by_title = {title: change for change, title in titles.items()}
    claims: list[tuple[str, OldMessage]] = []
    unclaimed: list[OldMessage] = []
    by_change: dict[str, GhstackTrailers] = {}
    for message, trailers in submitted:
        change = message.change_id if message.change_id is not None else by_title.get(message.title)
        if change is None or change not in titles:
            unclaimed.append(message)
        else:
            claims.append((change, message))
            by_change[change] = trailers
    _refuse_shared(claims)
    return Carried(by_change, tuple(unclaimed))


def _refuse_stray_link(message: OldMessage, trailers: GhstackTrailers) -> None:
    """ghstack links by the first match anywhere; where that is not our trailer, carrying on would open a new one."""
    link = _LINK.search(message.text)
    known = trailers.pull_request
    if link is not None and (known is None or known.url != link["url"]):
        raise RefError(
            "the commit names a pull request outside its final paragraph, which ghstack would follow",
            where=f"{message.commit[:12]} {message.title}".strip(),
            expected=known.url if known else "ghstack's trailers in the last paragraph",
            found=link["url"],
            next_command="git rebase -i, reword the commit, and move ghstack's trailers to the end",
        )


def _refuse_shared(claims: Iterable[tuple[str, OldMessage]]) -> None:
    """Two old commits with one claim: nobody can say which of them the new commit replaces."""
    seen: dict[str, OldMessage] = {}
    for claim, message in claims:
        if claim in seen:
            raise RefError(
                f"two commits of the old stack claim {claim}",
                where=f"{message.commit[:12]} {message.title}".strip(),
                expected="one commit for each pull request and each change",
                found=f"{seen[claim].commit[:12]} {seen[claim].title}".strip(),
                next_command="ghstack unlink the one that is no longer needed",
            )
        seen[claim] = message
