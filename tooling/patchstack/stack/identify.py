"""Which change of the series a commit belongs to, by the strongest evidence there is.

A commit that the tool made is known by its id. ghstack rewrites it, and then its tree and its words are the same. A
person who amends or rebases it changes both, and then the pull request it names still says which change it was, as
long as an earlier commit that is known by better evidence named the same one. A title comes last.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from patchstack.messages.trailers import extract, same_prose
from patchstack.stack.record import Made
from patchstack.tree.git.model import Commit


class MatchReason(enum.Enum):
    """Why a commit is taken for a version of a change; the strongest first."""

    RECORDED = "its id is in the record of earlier runs"
    REWRITTEN = "same tree and same words as a commit of the record"
    PULL_REQUEST = "an earlier commit of the change named the same pull request"
    TITLE = "the same title"


@dataclass(frozen=True)
class ChangeMatch:
    """A change, and why.

    Attributes:
        change: id of the change.
        evidence: why a commit is taken for a version of it.
        made: the entry of the record, where there is one.
    """

    change: str
    evidence: MatchReason
    made: Made | None = None


class Identifier:
    """Knows the commits that the tool made and what has been learned from others since.

    Args:
        made: the record.
        titles: change id to title of the series as it is now.
    """

    def __init__(self, made: Iterable[Made], titles: Mapping[str, str] | None = None) -> None:
        self._by_commit: dict[str, Made] = {}
        self._by_tree: dict[str, list[Made]] = defaultdict(list)
        self._by_url: dict[str, str] = {}
        self._by_title: dict[str, str] = {}
        for entry in made:
            self._by_commit[entry.commit] = entry
            self._by_tree[entry.tree].append(entry)
            self._by_title[entry.message.split("\n", 1)[0]] = entry.change
            self.learn(entry.message, entry.change)
        self._by_title.update({title: change for change, title in (titles or {}).items()})

    def learn(self, message: str, change: str) -> None:
        """Remember that the pull request a message names is the change's."""
        named = extract(message).pull_request
        if named is not None:
            self._by_url[named.url] = change

    def made_as(self, commit: Commit) -> ChangeMatch | None:
        """The recorded commit that this one is, or that it was rewritten from."""
        entry = self._by_commit.get(commit.hash)
        if entry is not None:
            return ChangeMatch(entry.change, MatchReason.RECORDED, entry)
        for entry in self._by_tree.get(commit.tree, ()):
            if same_prose(entry.message, commit.message):
                return ChangeMatch(entry.change, MatchReason.REWRITTEN, entry)
        return None

    def identify(self, commit: Commit) -> ChangeMatch | None:
        """The change of a commit by the strongest evidence, ``None`` where there is none."""
        known = self.made_as(commit)
        if known is not None:
            return known
        named = extract(commit.message).pull_request
        if named is not None and named.url in self._by_url:
            return ChangeMatch(self._by_url[named.url], MatchReason.PULL_REQUEST)
        change = self._by_title.get(commit.title)
        return ChangeMatch(change, MatchReason.TITLE) if change is not None else None

    def trees_of(self, change: str) -> frozenset[str]:
        """Every tree that the tool made for a change."""
        return frozenset(tree for tree, entries in self._by_tree.items() if any(e.change == change for e in entries))
