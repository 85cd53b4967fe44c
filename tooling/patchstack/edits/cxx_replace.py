"""Replace a named definition, if it is one that the series knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from patchstack.edits.cxx_anchor import CxxPlace, find_hits, nearest_to
from patchstack.edits.cxx_fragment import digest, parse_cxx
from patchstack.edits.model import Edit, Outcome, Status
from patchstack.git import Tree
from patchstack.manifest.overlay import Fragment
from patchstack.source.cxx import Definition
from patchstack.source.text import Splice, apply_splices, line_ending, with_line_ending


@dataclass(frozen=True, kw_only=True)
class ReplaceDefinition(Edit):
    """Put a fragment where a definition stands, its template head and the comment lines above it included.

    A definition that upstream changed in the meantime is a conflict: replacing it would lose that change unseen.

    Attributes:
        fragment: the new definition.
        place: the old one.
        replaces: digests (:func:`patchstack.edits.cxx_fragment.digest`) of the texts that may be replaced.
    """

    kind: ClassVar[str] = "replace-definition"
    fragment: Fragment
    place: CxxPlace
    replaces: tuple[str, ...]

    def describe(self) -> str:
        return f"replace {self.place.kind} {self.place.name}"

    def plan(self, tree: Tree) -> Outcome:
        data = tree.read(self.path)
        if data is None:
            return self.missing_file(tree)
        file = parse_cxx(data)
        anchor = str(self.place)
        hits = find_hits(file, self.place)
        lines = tuple(hit.line for hit in hits)
        if len(hits) != 1:
            problem = f"{len(hits)} definitions match '{anchor}', expected 1"
            return self.failed(anchor, problem, matches=lines, nearest=nearest_to(file, self.place))
        hit = hits[0]
        old = data[hit.start : hit.end]
        if digest(old) == digest(self.fragment.text):
            return Outcome(Status.SATISFIED, anchor, lines)
        if digest(old) not in self.replaces:
            problem = f"{self.place.name} is not a version the series knows (its digest is {digest(old)})"
            return self.failed(anchor, problem, matches=lines, status=Status.DIFFERENT)
        text = with_line_ending(self.fragment.text, line_ending(data))
        if not old.endswith(b"\n"):  # the file ends with the definition and without a line feed
            text = text.rstrip(b"\r\n")
        after = apply_splices(data, [Splice(hit.start, hit.end, text)])
        problem = self._verify(data, after)
        if problem:
            return self.failed(anchor, problem, matches=lines)
        return Outcome(Status.APPLIES, anchor, lines, rung=self.rung(tree), after=after)

    def _verify(self, before: bytes, after: bytes) -> str:
        old, new = parse_cxx(before), parse_cxx(after)
        if new.broken and not old.broken:
            return "the file could no longer be parsed with the replacement in it"
        names = {d.name for d in parse_cxx(self.fragment.text).definitions} | {self.place.name}

        def others(definitions: tuple[Definition, ...]) -> list[tuple[str, str, str]]:
            return sorted((d.kind, d.name, d.scope) for d in definitions if d.name not in names)

        if others(old.definitions) != others(new.definitions):
            return "the replacement would change what is around it"
        return ""
