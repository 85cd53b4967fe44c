"""What the edits of C++, Metal and Objective-C++ files have in common: find the anchor, take definitions out, judge."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from patchstack.edits.cxx_anchor import CxxPlace, Hit, find_hits, nearest_to
from patchstack.edits.model import Edit, Merge, Outcome
from patchstack.edits.structure import cxx_facts, structural_problem
from patchstack.manifest.overlay import Fragment
from patchstack.tree.cxx import CxxFile, Definition, Namespace, parse_cxx
from patchstack.tree.git import Tree
from patchstack.tree.pieces import Piece, gathered
from patchstack.tree.text import Splice, apply_splices, find_lines, line_end, line_start, lines_end, text_start

CXX_SUFFIXES = (".metal", ".mm", ".h", ".cpp")


@dataclass(frozen=True)
class Located:
    """A file and the places in it that an edit's anchor names.

    Attributes:
        file: the file.
        hits: what the anchor names, in order.
        count: how many of them there must be.
        pick: which of them is meant, ``first`` or ``last``.
    """

    file: CxxFile
    hits: Sequence[Hit]
    count: int
    pick: str

    @property
    def hit(self) -> Hit | None:
        """The place that is meant; ``None`` unless there are as many as there must be."""
        return self.hits[0 if self.pick == "first" else -1] if len(self.hits) == self.count else None

    @property
    def lines(self) -> tuple[int, ...]:
        return tuple(hit.line for hit in self.hits)


_Edit = TypeVar("_Edit", bound="CxxEdit")


@dataclass(frozen=True, kw_only=True)
class CxxEdit(Edit):
    """A fragment and a place.

    Attributes:
        fragment: the text that lands.
        place: where, or instead of what.
        others: further places, tried in this order on trees that do not have the ones before.
    """

    noun: ClassVar[str]
    """What an anchor names, for messages: places, definitions."""

    fragment: Fragment
    place: CxxPlace
    others: tuple[CxxPlace, ...] = ()

    def plan(self, tree: Tree) -> Outcome:
        data = tree.read(self.path)
        if data is None:
            return self.missing_file(tree)
        file = parse_cxx(data)
        edit = self._placed(file)
        return edit._planned(tree, edit._locate(file))

    def _placed(self: _Edit, file: CxxFile) -> _Edit:
        """The edit at the first of its places that a file has; itself where there is but one, or none is there."""
        if self.others and self._locate(file).hit is None:
            for place in self.others:
                edit = dataclasses.replace(self, place=place, others=())
                if edit._locate(file).hit is not None:
                    return edit
        return self

    def at_place(self: _Edit, anchor: str) -> _Edit:
        taken = [place for place in self.others if str(place) == anchor]
        return dataclasses.replace(self, place=taken[0], others=()) if taken else self

    @abstractmethod
    def _planned(self, tree: Tree, at: Located) -> Outcome:
        """The outcome on a file that is there."""

    def _locate(self, file: CxxFile) -> Located:
        return Located(file, find_hits(file, self.place), self.place.matches, self.place.pick)

    def _not_found(self, at: Located) -> Outcome:
        """The outcome where the anchor names another number of things than it should."""
        anchor, count = str(self.place), len(at.hits)
        problem = f"{count} {self.noun} match '{anchor}', expected {self.place.matches}"
        if self.others:
            problem += f"; nor is there what else may do: {', '.join(map(str, self.others))}"
        nearest = nearest_to(at.file, self.place)
        return self.failed(anchor, problem, expected=self.place.matches, matches=at.lines, nearest=nearest)

    @property
    def result(self) -> tuple[str, ...]:
        return (self.path, "text", self.fragment.text.decode(errors="replace"))

    def introduces(self) -> tuple[Piece, ...]:
        return cxx_pieces(parse_cxx(self.fragment.text), self.path, in_a_tree=False)

    def counterparts(self, tree: Tree) -> tuple[Piece, ...]:
        data = tree.read(self.path)
        return () if data is None else cxx_pieces(parse_cxx(data), self.path)

    def merge_problem(self, merge: Merge) -> str:
        before, after = parse_cxx(merge.current), parse_cxx(merge.merged)
        if after.broken and not before.broken:
            return "the file could no longer be parsed"
        delta = (cxx_facts(parse_cxx(merge.base)), cxx_facts(parse_cxx(merge.edited)))
        return structural_problem(*delta, cxx_facts(before), cxx_facts(after))


def outermost(definitions: Iterable[Definition]) -> list[Definition]:
    """Definitions that are inside none of the others, members of a type left out with it."""
    kept: list[Definition] = []
    for found in sorted(definitions, key=lambda d: (d.start, -d.end)):
        if not kept or found.start >= kept[-1].end:
            kept.append(found)
    return kept


def cxx_pieces(file: CxxFile, path: str, *, in_a_tree: bool = True) -> tuple[Piece, ...]:
    """The definitions of a file as pieces, the comments above them included.

    Args:
        in_a_tree: whether the file has line numbers that mean something.
    """
    return gathered(piece_of(file, path, d, in_a_tree=in_a_tree) for d in outermost(file.definitions))


def piece_of(file: CxxFile, path: str, found: Definition, *, in_a_tree: bool = True) -> Piece:
    """One definition as a piece."""
    text = file.data[file.comment_start(found) : found.end]
    return Piece(path, found.kind, found.name, text, file.line(found.start) if in_a_tree else 0)


def without(file: CxxFile, gone: Iterable[Definition]) -> CxxFile:
    """The file without some definitions, the comments directly above them and one run of blank lines each."""
    return parse_cxx(apply_splices(file.data, [_removal(file.data, *run) for run in _runs(file, outermost(gone))]))


def _runs(file: CxxFile, gone: Iterable[Definition]) -> list[tuple[int, int]]:
    """Where the definitions stand; those with nothing but blank lines between them are one run."""
    runs: list[tuple[int, int]] = []
    for found in gone:
        start, end = file.comment_start(found), found.end
        if runs and not file.data[runs[-1][1] : start].strip():
            start = runs.pop()[0]
        runs.append((start, end))
    return runs


def _removal(data: bytes, start: int, end: int) -> Splice:
    stop = _behind_blanks(data, start, end)
    while stop == len(data) and start > text_start(data) and not data[line_start(data, start - 1) : start].strip():
        start = line_start(data, start - 1)  # the file does not end with blank lines
    return Splice(start, stop, b"")


def _behind_blanks(data: bytes, start: int, end: int) -> int:
    """Where what is taken out ends: with the blank lines behind it, if what is before it needs none."""
    before = data[line_start(data, start - 1) : start] if start else b""
    opens = not start or not before.strip() or before.rstrip().endswith(b"{")
    while opens and end < len(data) and not data[end : line_end(data, end)].strip():
        end = line_end(data, end)
    return end


def without_loose_lines(file: CxxFile, fragment: CxxFile) -> CxxFile:
    """The file without what a fragment has between its definitions, such as comments, where it stands verbatim."""
    at, splices = 0, list[Splice]()
    taken = [(fragment.comment_start(d), d.end) for d in outermost(fragment.definitions)]
    for start, end in [*taken, (len(fragment.data), len(fragment.data))]:
        lines = fragment.data[at:start].strip(b"\r\n")
        found = find_lines(file.data, lines) if lines.strip() else None
        if found is not None:
            stop = lines_end(file.data, found, lines)
            splices.append(Splice(found, _behind_blanks(file.data, found, stop), b""))
        at = end
    return parse_cxx(apply_splices(file.data, splices))


def lost_beside(before: CxxFile, after: CxxFile, gone: Iterable[Definition]) -> list[str]:
    """Names of things that taking ``gone`` out took away, or brought, beside ``gone`` and what is inside it."""
    ranges = [(d.start, d.end) for d in gone]
    stays = [t for t in named(before) if not any(start <= t.start < end for start, end in ranges)]
    old, new = Counter(map(identity, stays)), Counter(map(identity, named(after)))
    return sorted({name for _, name, _ in [*(old - new), *(new - old)]})


def named(file: CxxFile) -> tuple[Namespace | Definition, ...]:
    """Everything with a name: namespaces and definitions."""
    return (*file.namespaces, *file.definitions)


def identity(thing: Namespace | Definition) -> tuple[str, str, str]:
    """Kind, name and scope."""
    return ("namespace" if isinstance(thing, Namespace) else thing.kind, thing.name, thing.scope)


def joined(scope: str, inner: str) -> str:
    """A scope inside another, either of which may be empty."""
    return "::".join(filter(None, (scope, inner)))
