"""Remove a definition that nothing uses any more, once the edits before it have replaced its users."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from patchstack.edits.cxx_anchor import CxxPlace, Hit, find_hits, nearest_to
from patchstack.edits.cxx_edit import lost_beside, without
from patchstack.edits.model import Edit, Outcome, Status
from patchstack.git import Tree
from patchstack.source.cxx import CxxFile, Definition, parse_cxx
from patchstack.source.text import digest, line_number

PRIVATE_SUFFIXES = (".metal", ".mm", ".cpp")
"""Files whose definitions no other file sees; a header's may be used anywhere."""


FOUND_BY_NAME = ("kernel", "macro")
"""What the host may use without the file showing it: a kernel, and a macro whose calls register kernels."""


@dataclass(frozen=True, kw_only=True)
class RemoveUnusedDefinition(Edit):
    """Take a definition out of a file, the comment lines above it included, if the rest of the file does not name it.

    A kernel and a registering macro only go when their text is one that the series knows, since the host finds kernels
    by name; the macro's calls at namespace scope, which register them, go with it.

    It tidies up, so it stops nothing: a tree that has no such definition, or whose own code still uses it, is as good,
    and the note says which it is.

    Attributes:
        place: the definition.
        replaces: digests of the texts that may go; without any, every text of a definition that only its file sees.
        written: the same of the texts that earlier changes of the series put there.
    """

    kind: ClassVar[str] = "remove-unused-definition"
    place: CxxPlace
    replaces: tuple[str, ...] = ()
    written: tuple[str, ...] = ()

    def describe(self) -> str:
        return f"remove {self.place.kind} {self.place.name} if nothing uses it"

    def plan(self, tree: Tree) -> Outcome:
        data = tree.read(self.path)
        if data is None:
            return self.missing_file(tree)
        file, anchor = parse_cxx(data), str(self.place)
        hits = find_hits(file, self.place)
        lines = tuple(hit.line for hit in hits)
        if not hits:
            return Outcome(Status.SATISFIED, anchor, note="no such definition", neutral=True)
        if len(hits) > 1:
            problem = f"{len(hits)} definitions match '{anchor}', expected 1"
            return self.failed(anchor, problem, matches=lines, nearest=nearest_to(file, self.place))
        found = digest(data[hits[0].start : hits[0].end])
        if found not in (*self.replaces, *self.written) and (self.replaces or self.place.kind in FOUND_BY_NAME):
            note = f"left: not a version the series knows (its digest is {found})"
            return Outcome(Status.SATISFIED, anchor, lines, note=note, neutral=True)
        return self._removed(tree, file, hits[0])

    def _removed(self, tree: Tree, file: CxxFile, hit: Hit) -> Outcome:
        anchor, thing, lines = str(self.place), hit.thing, (hit.line,)
        assert isinstance(thing, Definition)  # an anchor of this edit names nothing else
        calls = [d for d in file.definitions if (d.kind, d.name) == ("registration", thing.name)]
        gone = [thing, *(calls if thing.kind == "macro" else ())]
        after = without(file, gone)
        user = _first_use(file, thing.name, gone)
        if user:
            return Outcome(Status.SATISFIED, anchor, lines, note=f"left: line {user} uses it", neutral=True)
        lost = lost_beside(file, after, gone)
        if lost or (after.broken and not file.broken):
            return self.failed(anchor, f"removing it would change {', '.join(lost) or 'the file'}", matches=lines)
        return Outcome(Status.APPLIES, anchor, lines, self.rung(tree), after.data, neutral=True)


def _first_use(file: CxxFile, name: str, gone: Iterable[Definition]) -> int:
    """The line of the first use of a name outside comments and what goes, 0 where there is none."""
    word = re.compile(rb"\b%s\b" % re.escape(name.encode()))
    for found in word.finditer(file.uncommented):
        if not any(thing.start <= found.start() < thing.end for thing in gone):
            return line_number(file.data, found.start())
    return 0
