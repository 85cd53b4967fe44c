"""Remove a definition that nothing uses any more, once the edits before it have replaced its users."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from patchstack.edits.cxx_anchor import CxxPlace, find_hits, nearest_to
from patchstack.edits.cxx_edit import lost_beside, without
from patchstack.edits.model import Edit, Outcome, Status
from patchstack.git import Tree
from patchstack.source.cxx import CxxFile, Definition, parse_cxx
from patchstack.source.text import line_number

PRIVATE_SUFFIXES = (".metal", ".mm", ".cpp")
"""Files whose definitions no other file sees; a header's may be used anywhere."""


@dataclass(frozen=True, kw_only=True)
class RemoveUnusedDefinition(Edit):
    """Take a definition out of a file, the comment lines above it included, if the rest of the file does not name it.

    It tidies up, so it stops nothing: a tree that has no such definition, or whose own code still uses it, is as good,
    and the note says which it is.

    Attributes:
        place: the definition.
    """

    kind: ClassVar[str] = "remove-unused-definition"
    place: CxxPlace

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
        found = hits[0].thing
        assert isinstance(found, Definition)  # an anchor of this edit names nothing else
        after = without(file, [found])
        user = _first_use(after, found.name)
        if user:
            return Outcome(Status.SATISFIED, anchor, lines, note=f"left: line {user} uses it", neutral=True)
        lost = lost_beside(file, after, [found])
        if lost or (after.broken and not file.broken):
            return self.failed(anchor, f"removing it would change {', '.join(lost) or 'the file'}", matches=lines)
        return Outcome(Status.APPLIES, anchor, lines, self.rung(tree), after.data, neutral=True)


def _first_use(file: CxxFile, name: str) -> int:
    """The line of the first use of a name outside comments, 0 where there is none."""
    found = re.search(rb"\b%s\b" % re.escape(name.encode()), file.uncommented)
    return line_number(file.data, found.start()) if found else 0
