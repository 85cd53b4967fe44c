"""Place a fragment of C++, Metal or Objective-C++ at a structural anchor."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from patchstack.edits.cxx_anchor import CxxPlace, Hit, find_hits, innermost_scope, outside_conditionals, scope_of
from patchstack.edits.cxx_edit import (
    CxxEdit,
    Located,
    identity,
    joined,
    lost_beside,
    named,
    outermost,
    piece_of,
    without,
    without_loose_lines,
)
from patchstack.edits.model import Merge, Outcome, Status
from patchstack.edits.spacing import USUAL, Spacing
from patchstack.tree.cxx import CxxFile, Definition, Namespace, parse_cxx
from patchstack.tree.git import Tree
from patchstack.tree.pieces import gathered
from patchstack.tree.text import Splice, apply_splices, find_lines, line_end, line_start, lines_end, text_start

_REACH = 400  # how far back the line before an insertion is looked at
_OPENED = re.compile(rb"\{[^\n{}]*\n\Z")
_CLOSED = re.compile(rb"[ \t]*\}[^\n]*(?:\n|\Z)")


@dataclass(frozen=True, kw_only=True)
class PlaceCxxFragment(CxxEdit):
    """Insert a fragment; the bytes before and behind it stay.

    Attributes:
        spacing: the blank lines around it.
        replaces: definitions of upstream's own that go when the change is to replace upstream's (:meth:`replace`),
            beside those of the fragment's names; ones that a tree does not have are none to miss.
    """

    kind: ClassVar[str] = "place-fragment"
    merges: ClassVar[tuple[Status, ...]] = (Status.CONFLICT,)
    noun: ClassVar[str] = "places"
    spacing: Spacing = USUAL
    replaces: tuple[CxxPlace, ...] = ()

    def describe(self) -> str:
        at = "at the " if self.place.relation in ("start_of", "end_of") else ""
        return f"add '{self.fragment.name}' {at}{self.place}"

    def _planned(self, tree: Tree, at: Located) -> Outcome:
        present = self._already(at.file, scope_of(at.file, self.place, at.hit) if at.hit else None)
        return present or self._inserted(tree, at)

    def _inserted(self, tree: Tree, at: Located) -> Outcome:
        file, hit = at.file, at.hit
        if hit is None:
            return self._not_found(at)
        splice = self._splice(file, hit)
        after = apply_splices(file.data, [splice])
        problem = self._verify(file, parse_cxx(after), splice, scope_of(file, self.place, hit))
        if problem:
            return self.failed(str(self.place), problem, matches=at.lines)
        return Outcome(Status.APPLIES, str(self.place), at.lines, rung=self.rung(tree), after=after)

    def replace(self, tree: Tree) -> Outcome:
        planned = super().replace(tree)
        data = tree.read(self.path)
        if data is None:
            return planned
        file = parse_cxx(data)
        if (placed := self._placed(file)) is not self:
            return placed.replace(tree)
        gone = self._rivals(file, is_there=planned.status is Status.SATISFIED)
        if not gone:
            return planned
        cleared = self._taken_out(file, gone, with_loose_lines=planned.status is not Status.SATISFIED)
        if isinstance(cleared, str):
            return self.failed(str(self.place), cleared, matches=(file.line(d.start) for d in gone))
        replaced = gathered(piece_of(file, self.path, found) for found in gone)
        if planned.status is Status.SATISFIED:
            return dataclasses.replace(
                planned, status=Status.APPLIES, rung=self.rung(tree), after=cleared.data, replaced=replaced
            )
        return dataclasses.replace(self._inserted(tree, self._locate(cleared)), replaced=replaced)

    def _taken_out(self, file: CxxFile, gone: list[Definition], *, with_loose_lines: bool) -> CxxFile | str:
        """The file without what gives way, or why it cannot be taken out."""
        if not file.braces_pair:
            return "what would be replaced cannot be told apart: the braces of the file cannot be paired"
        cleared = without(file, gone)
        if with_loose_lines:
            cleared = without_loose_lines(cleared, parse_cxx(self.fragment.text))
        beside = lost_beside(file, cleared, gone)
        if beside or (cleared.broken and not file.broken):
            names = ", ".join(d.name for d in gone)
            return f"replacing {names} would take more away: {', '.join(beside) or 'a brace'}"
        return cleared

    def _rivals(self, file: CxxFile, *, is_there: bool) -> list[Definition]:
        """What gives way: things of the fragment's names in its scope, registrations by its macros, ``replaces``.

        Args:
            is_there: whether the file has the fragment's own text, which stays.
        """
        adds = parse_cxx(self.fragment.text)
        own = self._find_text(file, adds) if is_there else None
        end = lines_end(file.data, own, self.fragment.text) if own is not None else 0
        rivals = [hit.thing for place in self.replaces for hit in find_hits(file, place)]
        if not is_there:
            hit = self._locate(file).hit if file.braces_pair else None  # without pairs, scopes mean nothing
            rivals += self._clashing(file, scope_of(file, self.place, hit) if hit else None, any_kind=True)
        found = [thing for thing in rivals if isinstance(thing, Definition)]
        macros = {d.name for d in [*adds.definitions, *found] if d.kind == "macro"}
        found += [d for d in file.definitions if d.kind == "registration" and d.name in macros]
        return [d for d in outermost(found) if own is None or not own <= d.start < end]

    def _clashing(self, file: CxxFile, scope: str | None, *, any_kind: bool = False) -> list[Definition]:
        """What the file defines under the names that the fragment brings.

        Args:
            scope: where the fragment would land, ``None`` where the anchor was not found: then a name clashes anywhere.
            any_kind: whether a struct of that name clashes with a function.
        """

        def key(kind: str, name: str, inside: str) -> tuple[str, str, str]:
            return ("" if any_kind else kind, name, "" if scope is None else inside)

        brought = [d for d in parse_cxx(self.fragment.text).definitions if d.kind != "registration"]
        new = {key(d.kind, d.name, joined(scope or "", d.scope)) for d in brought}
        return [d for d in file.definitions if key(d.kind, d.name, d.scope) in new]

    def merge_problem(self, merge: Merge) -> str:
        problem = super().merge_problem(merge)
        adds = parse_cxx(self.fragment.text)
        if problem or adds.has_only_includes or self._find_text(parse_cxx(merge.merged), adds) is not None:
            return problem
        return "the text would merge, and the fragment would not be whole in it"

    def _already(self, file: CxxFile, scope: str | None) -> Outcome | None:
        """The outcome where the fragment, or something of the same names, is there already.

        Args:
            scope: where the fragment would land, ``None`` where the anchor was not found: then a name clashes anywhere.
        """
        anchor = str(self.place)
        adds = parse_cxx(self.fragment.text)
        if adds.has_only_includes:
            return self._included_already(file, adds)
        at = self._find_text(file, adds, scope)
        if at is not None:
            return Outcome(Status.SATISFIED, anchor, (file.line(at),))
        clashes = self._clashing(file, scope)
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

    def _find_text(self, file: CxxFile, adds: CxxFile, scope: str | None = None) -> int | None:
        """Offset of the fragment's own text in the file, as code: in a comment or behind ``#if 0`` it is not there.

        Args:
            scope: where a text counts that brings no names, such as that of fields; ``None`` for anywhere.
        """
        names = [(d.kind, d.name) for d in adds.definitions]
        fields = [one for one in names if one[0] != "variable"]  # what is a variable elsewhere is a field in a type
        at = find_lines(file.data, self.fragment.text)
        while at is not None:
            end = lines_end(file.data, at, self.fragment.text)
            here = [(d.kind, d.name) for d in file.definitions if at <= d.start < end]
            is_here = bool(fields) or scope is None or innermost_scope(file, at) == scope
            if here in (names, fields) and is_here and file.is_code(at, end):
                return at
            at = find_lines(file.data, self.fragment.text, at + 1)
        return None

    def _splice(self, file: CxxFile, hit: Hit) -> Splice:
        at = self._offset(file, hit)
        return self.spacing.splice(file.data, at, self.fragment.text, self._usual_blanks(file.data, at, hit))

    def _usual_blanks(self, data: bytes, at: int, hit: Hit) -> tuple[int, int]:
        """One blank line on each side of a definition, none beside a brace; none around members and include lines."""
        has_members = isinstance(hit.thing, Definition) and self.place.relation in ("start_of", "end_of")
        if has_members or self.place.kind == "declaration" or parse_cxx(self.fragment.text).has_only_includes:
            return 0, 0
        opened = bool(_OPENED.search(data, max(at - _REACH, 0), at))
        return int(not opened), int(not _CLOSED.match(data, at))

    def _offset(self, file: CxxFile, hit: Hit) -> int:
        place, thing = self.place, hit.thing
        if place.relation == "into":
            return self._sorted_offset(file, hit)
        if place.relation in ("before", "after"):
            start, end = (hit.start, hit.end) if place.inside_if else outside_conditionals(file, hit)
            return start if place.relation == "before" else end
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
        around = [thing for thing in named(after) if not splice.start <= thing.start < end]
        lost = Counter(map(identity, named(before))) - Counter(map(identity, around))
        gained = Counter(map(identity, around)) - Counter(map(identity, named(before)))
        if lost or gained:
            names = ", ".join(sorted({name for _, name, _ in [*lost, *gained]}))
            return f"the fragment would change what is around it: {names}"
        alone = parse_cxx(self.fragment.text)
        in_type = any(d.body_start >= 0 and d.qualified == scope for d in before.definitions)
        brought = [d for d in alone.definitions if not (in_type and d.kind == "variable")]  # a field is no definition
        wanted = sorted((d.kind, d.name, joined(scope, d.scope)) for d in brought)
        added = sorted((d.kind, d.name, d.scope) for d in after.definitions if splice.start <= d.start < end)
        if [item[:2] for item in added] != [item[:2] for item in wanted]:
            return "the fragment would not define the same names in its new place"
        if added != wanted:
            return f"the fragment would land in {added[0][2] or 'the global namespace'}, not in {wanted[0][2] or 'it'}"
        if alone.includes and len(after.includes) != len(before.includes) + len(alone.includes):
            return "the include line would not be compiled in its new place"
        return ""
