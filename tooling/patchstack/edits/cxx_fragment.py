"""Place a fragment of C++, Metal or Objective-C++ at a structural anchor."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from patchstack.edits.cxx_anchor import CxxPlace, Hit, find_hits, nearest_to, scope_of
from patchstack.edits.model import Edit, Outcome, Status
from patchstack.git import Tree
from patchstack.manifest.overlay import Fragment
from patchstack.source.cxx import CxxFile, Definition, Namespace
from patchstack.source.text import (
    Splice,
    apply_splices,
    find_lines,
    line_end,
    line_ending,
    line_start,
    text_start,
    with_line_ending,
)

_REACH = 400  # how far back the line before an insertion is looked at
_BLANK_OR_OPENED = re.compile(rb"(?:\n|^)[ \t]*\r?\n\Z|\{[^\n{}]*\n\Z")
_BLANK_OR_CLOSED = re.compile(rb"[ \t]*(?:\r?\n|\}[^\n]*(?:\n|\Z))")
CXX_SUFFIXES = (".metal", ".mm", ".h", ".cpp")


@lru_cache(maxsize=32)
def parse_cxx(data: bytes) -> CxxFile:
    """Parse a file; the next edit of the same file starts from the content this one left."""
    return CxxFile(data)


def digest(text: bytes) -> str:
    """What identifies a piece of code, blanks aside: ``sha256:`` and 16 hexadecimal digits."""
    return "sha256:" + hashlib.sha256(b" ".join(text.split())).hexdigest()[:16]


@dataclass(frozen=True, kw_only=True)
class PlaceCxxFragment(Edit):
    """Insert a fragment; the bytes before and behind it stay.

    Attributes:
        fragment: what is inserted.
        place: where.
    """

    kind: ClassVar[str] = "place-fragment"
    fragment: Fragment
    place: CxxPlace

    def describe(self) -> str:
        return f"add '{self.fragment.name}' {self.place}"

    def plan(self, tree: Tree) -> Outcome:
        data = tree.read(self.path)
        if data is None:
            return self.missing_file(tree)
        file = parse_cxx(data)
        anchor = str(self.place)
        hits = find_hits(file, self.place)
        lines = tuple(hit.line for hit in hits)
        found = len(hits) == self.place.matches
        hit = hits[0 if self.place.pick == "first" else -1] if found else None
        present = self._already(file, scope_of(file, self.place, hit) if hit else None)
        if present is not None:
            return present
        if hit is None:
            problem = f"{len(hits)} places match '{anchor}', expected {self.place.matches}"
            return self.failed(
                anchor, problem, expected=self.place.matches, matches=lines, nearest=nearest_to(file, self.place)
            )
        splice = self._splice(file, hit)
        after = apply_splices(data, [splice])
        problem = self._verify(file, parse_cxx(after), splice, scope_of(file, self.place, hit))
        if problem:
            return self.failed(anchor, problem, matches=lines)
        return Outcome(Status.APPLIES, anchor, lines, rung=self.rung(tree), after=after)

    def _already(self, file: CxxFile, scope: str | None) -> Outcome | None:
        """The outcome where the fragment, or something of the same names, is there already.

        Args:
            scope: where the fragment would land, ``None`` where the anchor was not found: then a name clashes anywhere.
        """
        anchor = str(self.place)
        adds = parse_cxx(self.fragment.text)
        if adds.has_only_includes:
            return self._included_already(file, adds)
        at = self._find_text(file, adds)
        if at is not None:
            return Outcome(Status.SATISFIED, anchor, (file.line(at),))
        new = {(d.kind, d.name, _joined(scope, d.scope)) for d in adds.definitions if d.kind != "registration"}
        clashes = [d for d in file.definitions if (d.kind, d.name, d.scope if scope is not None else None) in new]
        if clashes:
            names = ", ".join(sorted({d.name for d in clashes}))
            return self.failed(
                anchor,
                f"the file already defines {names}, and not as the fragment does",
                matches=(file.line(d.start) for d in clashes),
                status=Status.DIFFERENT,
            )
        return None

    def _included_already(self, file: CxxFile, adds: CxxFile) -> Outcome | None:
        wanted = {include.path for include in adds.includes}
        found = [include for include in file.includes if include.path in wanted]
        lines = tuple(file.line(include.start) for include in found)
        missing = sorted(wanted - {include.path for include in found})
        if not missing:
            return Outcome(Status.SATISFIED, str(self.place), lines, neutral=True)
        if found:
            problem = f"only some of the include lines are there, not {', '.join(missing)}: give each its own fragment"
            return self.failed(str(self.place), problem, matches=lines)
        return None

    def _find_text(self, file: CxxFile, adds: CxxFile) -> int | None:
        """Offset of the fragment's own text in the file, as code: in a comment or behind ``#if 0`` it is not there."""
        names = [(d.kind, d.name) for d in adds.definitions]
        at = find_lines(file.data, self.fragment.text)
        while at is not None:
            end = at + len(self.fragment.text) + file.data.count(b"\r\n", at, at + len(self.fragment.text))
            here = [(d.kind, d.name) for d in file.definitions if at <= d.start < end]
            if here == names and file.is_code(at, end):
                return at
            at = find_lines(file.data, self.fragment.text, at + 1)
        return None

    def _splice(self, file: CxxFile, hit: Hit) -> Splice:
        data = file.data
        ending = line_ending(data)
        text = with_line_ending(self.fragment.text, ending)
        at = self._offset(file, hit)
        if at > text_start(data) and not data[:at].endswith(b"\n"):
            text = ending + text
        has_members = isinstance(hit.thing, Definition) and self.place.relation in ("start_of", "end_of")
        if has_members or parse_cxx(self.fragment.text).has_only_includes:
            return Splice(at, at, text)
        if data[text_start(data) : at].strip() and not _BLANK_OR_OPENED.search(data, max(at - _REACH, 0), at):
            text = ending + text
        if data[at:].strip() and not _BLANK_OR_CLOSED.match(data, at):
            text += ending
        return Splice(at, at, text)

    def _offset(self, file: CxxFile, hit: Hit) -> int:
        place, thing = self.place, hit.thing
        if place.relation == "into":
            return self._sorted_offset(file, hit)
        if place.relation == "before":
            return hit.start
        if place.relation == "after":
            return hit.end
        if not isinstance(thing, (Namespace, Definition)):
            return len(file.data) if place.relation == "end_of" else text_start(file.data)
        if place.relation == "end_of":
            closing = line_start(file.data, thing.body_end)
            return thing.body_end if file.data[closing : thing.body_end].strip() else closing
        opening = line_end(file.data, thing.body_start)
        return thing.body_start if file.uncommented[thing.body_start : opening].strip() else opening

    def _sorted_offset(self, file: CxxFile, hit: Hit) -> int:
        """Behind the last include of the block that sorts before the new one; the block's start without any."""
        new = parse_cxx(self.fragment.text).includes[0].path
        block = [i for i in file.includes if hit.start <= i.start < hit.end]
        smaller = [i for i in block if i.path < new]
        return smaller[-1].end if smaller else block[0].start

    def _verify(self, before: CxxFile, after: CxxFile, splice: Splice, scope: str) -> str:
        """On the parsed result: all that was there is there, and the fragment is in one scope with its anchor."""
        if after.broken and not before.broken:
            return "the file could no longer be parsed with the fragment in it"
        end = splice.start + len(splice.replacement)
        around = [thing for thing in _named(after) if not splice.start <= thing.start < end]
        lost = Counter(map(_identity, _named(before))) - Counter(map(_identity, around))
        gained = Counter(map(_identity, around)) - Counter(map(_identity, _named(before)))
        if lost or gained:
            names = ", ".join(sorted({name for _, name, _ in [*lost, *gained]}))
            return f"the fragment would change what is around it: {names}"
        alone = parse_cxx(self.fragment.text)
        wanted = sorted((d.kind, d.name, _joined(scope, d.scope)) for d in alone.definitions)
        added = sorted((d.kind, d.name, d.scope) for d in after.definitions if splice.start <= d.start < end)
        if [item[:2] for item in added] != [item[:2] for item in wanted]:
            return "the fragment would not define the same names in its new place"
        if added != wanted:
            return f"the fragment would land in {added[0][2] or 'the global namespace'}, not in {wanted[0][2] or 'it'}"
        if alone.includes and len(after.includes) != len(before.includes) + len(alone.includes):
            return "the include line would not be compiled in its new place"
        return ""


def _joined(scope: str | None, inner: str) -> str | None:
    return None if scope is None else "::".join(filter(None, (scope, inner)))


def _named(file: CxxFile) -> tuple[Namespace | Definition, ...]:
    return (*file.namespaces, *file.definitions)


def _identity(thing: Namespace | Definition) -> tuple[str, str, str]:
    return ("namespace" if isinstance(thing, Namespace) else thing.kind, thing.name, thing.scope)
