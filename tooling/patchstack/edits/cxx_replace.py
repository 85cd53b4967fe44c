"""Replace a named definition, if it is one that the series knows."""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from patchstack.edits.cxx_anchor import Hit, scope_of
from patchstack.edits.cxx_edit import CxxEdit, Located, identity, joined, named, piece_of
from patchstack.edits.model import Outcome, Status
from patchstack.tree.cxx import CxxFile, Definition, parse_cxx
from patchstack.tree.cxx_digest import code_digest, comments_of, is_known
from patchstack.tree.git import Tree
from patchstack.tree.text import (
    Splice,
    apply_splices,
    digest,
    find_lines,
    line_ending,
    line_number,
    lines_end,
    with_line_ending,
)

_MOST = 60
"""Letters of a comment that are told: of a longer one its beginning and its end, where somebody adds a line."""


@dataclass(frozen=True, kw_only=True)
class ReplaceDefinition(CxxEdit):
    """Put a fragment where a definition stands, its template head and the comment lines above it included.

    A definition that upstream changed in the meantime is a conflict: replacing it would lose that change unseen. A
    merge from a text that the series knows keeps both changes; :meth:`replace` keeps ours and names what goes.
    Upstream's comments and line breaks are not part of what is known: they go, and the note names the comments.

    Attributes:
        replaces: digests (:func:`patchstack.tree.cxx_digest.code_digest`) of the texts that may be replaced.
        written: the same of the texts that earlier changes of the series put there.
        own_comments: the words of the comments in these texts, which are no loss.
        optional: a tree that has no such definition, or another text of it, is as good: it is left, and a note says so.
            With digests, those texts alone are meant, and none that an earlier change wrote.
    """

    kind: ClassVar[str] = "replace-definition"
    merges: ClassVar[tuple[Status, ...]] = (Status.CONFLICT, Status.DIFFERENT)
    noun: ClassVar[str] = "definitions"
    replaces: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    own_comments: tuple[str, ...] = ()
    optional: bool = False

    def describe(self) -> str:
        return f"replace {self.place.kind} {self.place.name}{' where it is known' if self.optional else ''}"

    def _planned(self, tree: Tree, at: Located) -> Outcome:
        anchor, data = str(self.place), at.file.data
        if at.hit is None and self.optional and not at.hits:
            return Outcome(Status.SATISFIED, anchor, note="no such definition", neutral=True)
        if at.hit is None:
            return self._not_found(at)
        old = data[at.hit.start : at.hit.end]
        if self._is_ours(old) or self._is_whole(data, at.hit):
            return Outcome(Status.SATISFIED, anchor, at.lines)
        # Where upstream and an earlier change have one name for two things, the digests say which is meant.
        known = self.replaces if self.optional and self.replaces else (*self.replaces, *self.written)
        if not is_known(old, (*known, code_digest(self.fragment.text))):  # ours may have other comments
            problem = f"{self.place.name} is not a version the series knows (its digest is {code_digest(old)})"
            if self.optional:
                return Outcome(Status.SATISFIED, anchor, at.lines, note=f"left: {problem}", neutral=True)
            return self.failed(anchor, problem, matches=at.lines, status=Status.DIFFERENT)
        return self._put(tree, at, at.hit)

    def _is_ours(self, old: bytes) -> bool:
        """Whether a definition is the fragment's, line breaks aside."""
        new = self.fragment.text
        if digest(old) == digest(new):
            return True
        same_comments = [words for _, words in comments_of(old)] == [words for _, words in comments_of(new)]
        return same_comments and code_digest(old) == code_digest(new)

    def _is_whole(self, data: bytes, hit: Hit) -> bool:
        """Whether the definition is the fragment's, with all that the fragment has beside it."""
        at = find_lines(data, self.fragment.text)
        return at is not None and at <= hit.start and hit.end <= lines_end(data, at, self.fragment.text)

    def _put(self, tree: Tree, at: Located, hit: Hit) -> Outcome:
        data = at.file.data
        text = with_line_ending(self.fragment.text, line_ending(data))
        if not data[hit.start : hit.end].endswith(b"\n"):  # the file ends with the definition, without a line feed
            text = text.rstrip(b"\r\n")
        after = apply_splices(data, [Splice(hit.start, hit.end, text)])
        problem = self._verify(at.file, parse_cxx(after), hit)
        if problem:
            return self.failed(str(self.place), problem, matches=at.lines)
        note = self._lost_comments(data, hit)
        return Outcome(Status.APPLIES, str(self.place), at.lines, rung=self.rung(tree), after=after, note=note)

    def _lost_comments(self, data: bytes, hit: Hit) -> str:
        """What upstream's comments say that neither the fragment nor an earlier change has; empty for nothing."""
        kept = {*self.own_comments, *(words for _, words in comments_of(self.fragment.text))}
        above = line_number(data, hit.start) - 1
        lost = [(above + line, words) for line, words in comments_of(data[hit.start : hit.end]) if words not in kept]
        told = [f"line {line} ({_shortened(words)})" for line, words in lost[:3]]
        more = f" and {len(lost) - 3} more" if len(lost) > 3 else ""
        return f"comments that go with what it replaces: {', '.join(told)}{more}" if lost else ""

    def replace(self, tree: Tree) -> Outcome:
        planned = self.plan(tree)
        data = tree.read(self.path)
        if planned.status is not Status.DIFFERENT or data is None:
            return planned
        file = parse_cxx(data)
        if (placed := self._placed(file)) is not self:
            return placed.replace(tree)
        at = self._locate(file)
        if at.hit is None or not isinstance(at.hit.thing, Definition):
            return planned
        return dataclasses.replace(self._put(tree, at, at.hit), replaced=(piece_of(at.file, self.path, at.hit.thing),))

    def _verify(self, file: CxxFile, after: CxxFile, hit: Hit) -> str:
        """On the parsed result: the fragment's definitions for the old one, in its scope, each once."""
        if after.broken and not file.broken:
            return "the file could no longer be parsed with the replacement in it"
        kept = [identity(thing) for thing in named(file) if not hit.start <= thing.start < hit.end]
        scope = scope_of(file, self.place, hit)
        adds = [(d.kind, d.name, joined(scope, d.scope)) for d in parse_cxx(self.fragment.text).definitions]
        twice = {(name, inside) for _, name, inside in adds if name != self.place.name} & {i[1:] for i in kept}
        if twice:
            return f"the file already defines {', '.join(sorted(name for name, _ in twice))}"
        if Counter(map(identity, named(after))) != Counter([*kept, *adds]):
            return "the replacement would change what is around it"
        return ""


def _shortened(words: str) -> str:
    return words if len(words) <= _MOST else f"{words[: _MOST // 2]}...{words[-_MOST // 2 :]}"
