"""Remove a definition that nothing uses any more, once the edits before it have replaced its users."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from patchstack.edits.cxx_anchor import CxxPlace, find_hits, nearest_to
from patchstack.edits.cxx_edit import lost_beside, without
from patchstack.edits.model import Edit, Outcome, Spot, Status
from patchstack.tree.cxx import CxxFile, Definition, parse_cxx
from patchstack.tree.cxx_digest import code_digest, is_known, is_known_comment
from patchstack.tree.git import Tree
from patchstack.tree.text import line_number, line_start

PRIVATE_SUFFIXES = (".metal", ".mm", ".cpp")
"""Files whose definitions no other file sees; a header's may be used anywhere."""


_INCLUDE_ROOTS = ("aten/src/", "")

FOUND_BY_NAME = ("kernel", "macro")
"""What the host may use without the file showing it: a kernel, and a macro whose calls register kernels."""


@dataclass(frozen=True)
class _Found:
    """What a file has under one of the names.

    Attributes:
        place: the name.
        things: its definition, or the overloads and specializations of a function; an include line.
        beside: what is nothing without them: the calls of a macro, the prototypes of functions.
        brings: the names that others use them by.
    """

    place: CxxPlace
    things: tuple[Definition, ...]
    beside: tuple[Definition, ...]
    brings: tuple[str, ...]

    @property
    def all(self) -> tuple[Definition, ...]:
        return (*self.things, *self.beside)


@dataclass(frozen=True, kw_only=True)
class RemoveUnusedDefinition(Edit):
    """Take definitions out of a file, the comment lines above them included, if what stays does not name them.

    Of several definitions as many go as can: those that only others of them use go with these, in whatever order they
    are listed. Functions of one name, overloads and specializations, go together and with their prototypes. An include
    line goes if the header, which the tree has, defines nothing that is used here, and includes nothing itself.

    A kernel and a registering macro only go when their text is one that the series knows, since the host finds kernels
    by name; the macro's calls at namespace scope, which register them, go with it.

    It tidies up: a tree that has no such definition, or whose own code still uses it, is as good, and the note says
    which it is. A text that the series does not know and that nothing uses any more is a conflict: what somebody
    changed there would do nothing, unseen. :meth:`replace` leaves it.

    Attributes:
        places: the definitions.
        replaces: digests of the texts that may go.
        written: the same of the texts that earlier changes of the series put there. Without either, every text of a
            definition that only its file sees may go.
        comments: digests of comments between definitions, which say something of them and go along.
    """

    kind: ClassVar[str] = "remove-unused-definition"
    places: tuple[CxxPlace, ...]
    comments: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()
    written: tuple[str, ...] = ()

    def describe(self) -> str:
        first, *others = (f"{place.kind} {place.name}" for place in self.places)
        return (
            f"remove {first}{f' and {len(others)} more' if others else ''} if nothing uses {'them' if others else 'it'}"
        )

    @property
    def _anchor(self) -> str:
        return str(self.places[0]) if len(self.places) == 1 else f"{len(self.places)} definitions"

    def plan(self, tree: Tree) -> Outcome:
        return self._planned(tree, leaves_idle=False)

    def replace(self, tree: Tree) -> Outcome:
        return self._planned(tree, leaves_idle=True)

    def _planned(self, tree: Tree, *, leaves_idle: bool) -> Outcome:
        data = tree.read(self.path)
        if data is None:
            return self.missing_file(tree)
        file = parse_cxx(data)
        found = list[_Found]()
        for place in self.places:
            if place.kind == "include":
                found += _included(tree, file, place)
                continue
            things = tuple(hit.thing for hit in find_hits(file, place) if isinstance(hit.thing, Definition))
            if len(things) > 1 and place.kind != "function":
                problem = f"{len(things)} definitions match '{place}', expected 1"
                lines = [file.line(thing.start) for thing in things]
                return self.failed(self._anchor, problem, matches=lines, nearest=nearest_to(file, place))
            if things:
                found.append(_Found(place, things, _beside(file, things), (place.name,)))
        idle = [] if leaves_idle else self._idle(file, found)
        return self._refused(file, idle) if idle else self._removed(tree, file, found)

    def _idle(self, file: CxxFile, found: Sequence[_Found]) -> list[_Found]:
        """Texts that somebody changed and that nothing uses which stays; the host may use a kernel all the same."""
        if not (self.replaces or self.written):
            return []
        unused, _ = _used_by_one_another(file, [one for one in found if one.place.kind not in ("kernel", "include")])
        return [one for one in unused if self._unknown(file, one)]

    def _refused(self, file: CxxFile, idle: Sequence[_Found]) -> Outcome:
        problems = (f"{one.place.name} is {self._unknown(file, one)}" for one in idle)
        problem = f"{', '.join(problems)}, and nothing would use {'it' if len(idle) == 1 else 'them'} any more"
        lines = [file.line(thing.start) for one in idle for thing in one.things]
        return self.failed(self._anchor, problem, matches=lines, status=Status.DIFFERENT)

    def _removed(self, tree: Tree, file: CxxFile, found: Sequence[_Found]) -> Outcome:
        gone, stays = self._unused(file, found)
        lines = tuple(file.line(thing.start) for one in (gone or found) for thing in one.things)
        note = "" if found else f"no such definition{'s' if len(self.places) > 1 else ''}"
        if not gone:
            return Outcome(Status.SATISFIED, self._anchor, lines, note=note, spots=stays, neutral=True)
        things = [thing for one in gone for thing in one.all]
        things += [block for block in _comments(file) if self._goes_along(file, block)]
        after = without(file, things)
        lost = lost_beside(file, after, things)
        if lost or (after.broken and not file.broken):
            return self.failed(self._anchor, f"removing it would change {', '.join(lost) or 'the file'}", matches=lines)
        rung = self.rung(tree)
        return Outcome(Status.APPLIES, self._anchor, lines, rung, after.data, spots=stays, neutral=True)

    def _unused(self, file: CxxFile, found: Sequence[_Found]) -> tuple[list[_Found], tuple[Spot, ...]]:
        """Those that nothing uses but one another, and why the others stay."""
        reasons = {one.place: Spot(self._unknown(file, one)) for one in found}
        gone, used = _used_by_one_another(file, [one for one in found if not reasons[one.place].words])
        reasons.update((place, Spot("it is used", line)) for place, line in used.items())
        name = {one.place: f"{one.place.name} " if len(self.places) > 1 else "" for one in found}
        stays = ((name[place], reason) for place, reason in reasons.items() if reason.words)
        return gone, tuple(Spot(f"{which}left: {reason.words}", reason.line) for which, reason in stays)

    def _unknown(self, file: CxxFile, one: _Found) -> str:
        """Why a text may not go, empty where it may."""
        if one.place.kind == "include":
            return "" if one.brings else "what it brings is not known"
        is_any = not (self.replaces or self.written)
        if is_any and one.place.kind not in FOUND_BY_NAME:
            return ""
        texts = [file.data[file.comment_start(thing) : thing.end] for thing in one.things]
        strange = [text for text in texts if not is_known(text, (*self.replaces, *self.written))]
        return f"not a version the series knows (its digest is {code_digest(strange[0])})" if strange else ""

    def _goes_along(self, file: CxxFile, block: Definition) -> bool:
        return bool(self.comments) and is_known_comment(file.data[block.start : block.end], self.comments)


def _used_by_one_another(file: CxxFile, found: Sequence[_Found]) -> tuple[list[_Found], dict[CxxPlace, int]]:
    """Those of some definitions that nothing uses but one another; for the others, the line of a use."""
    gone, used = list(found), dict[CxxPlace, int]()
    while True:
        things = [thing for one in gone for thing in one.all]
        lines = {one.place: _first_use(file, one.brings, things) for one in gone}
        used.update((place, line) for place, line in lines.items() if line)
        if not any(lines.values()):
            return gone, used
        gone = [one for one in gone if not lines[one.place]]


def _beside(file: CxxFile, things: Sequence[Definition]) -> tuple[Definition, ...]:
    name, kinds, scopes = things[0].name, {thing.kind for thing in things}, {thing.scope for thing in things}
    calls = [d for d in file.definitions if "macro" in kinds and (d.kind, d.name) == ("registration", name)]
    prototypes = [d for d in file.prototypes if "function" in kinds and d.name == name and d.scope in scopes]
    return (*calls, *prototypes)


def _included(tree: Tree, file: CxxFile, place: CxxPlace) -> list[_Found]:
    """An include line with the names that its header brings; none where they cannot be told."""
    for line in file.includes:
        if line.path == place.name:
            headers = (tree.read(f"{root}{line.path}") for root in _INCLUDE_ROOTS)
            header = next((parse_cxx(data) for data in headers if data is not None), None)
            names = {d.name for d in header.definitions} if header and not header.includes else set()
            thing = Definition("include", line.path, "", line.start, line.end)
            return [_Found(place, (thing,), (), tuple(sorted(names)))]
    return []


def _comments(file: CxxFile) -> Iterator[Definition]:
    """Runs of comment lines with blank lines around them."""
    start, at = -1, 0
    for line in (*file.data.splitlines(keepends=True), b""):
        end = at + len(line)
        is_comment = bool(line.strip()) and not file.uncommented[at:end].strip()
        if is_comment and start < 0 and not file.data[line_start(file.data, at - 1) : at].strip():
            start = at
        elif not is_comment:
            if start >= 0 and not line.strip():
                yield Definition("comment", "", "", start, at)
            start = -1
        at = end


def _first_use(file: CxxFile, names: Iterable[str], gone: Iterable[Definition]) -> int:
    """The line of the first use of one of the names outside comments and what goes, 0 where there is none."""
    word = re.compile(rb"\b(?:%s)\b" % b"|".join(re.escape(name.encode()) for name in names))
    for found in word.finditer(file.uncommented):
        if not any(thing.start <= found.start() < thing.end for thing in gone):
            return line_number(file.data, found.start())
    return 0
