"""Places in a C++, Metal or Objective-C++ file, by structure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from patchstack.edits.model import Spot
from patchstack.manifest.closest import closest
from patchstack.manifest.complaints import Complaints
from patchstack.manifest.section import Section, read_whole
from patchstack.tree.cxx import CxxFile, Definition, Include, Namespace
from patchstack.tree.cxx_declarations import declarations, used_names
from patchstack.tree.cxx_statements import Statement, statements_of
from patchstack.tree.text import line_end, line_start

DEFINITION_KINDS = (
    "function",
    "kernel",
    "struct",
    "class",
    "union",
    "enum",
    "alias",
    "variable",
    "macro",
    "registration",
)
ANCHOR_KINDS = ("include", "include_block", "namespace", "file", "declaration", *DEFINITION_KINDS)
FUNCTION_KINDS = ("function", "kernel")
SCOPE_KINDS = ("namespace", "file", "struct", "class", "union")
STATEMENT_VERBS = ("declares", "calls", "assigns", "returns")
ANY = "any"
PLACES = ("after", "before", "start_of", "end_of", "into")


@dataclass(frozen=True)
class CxxPlace:
    """A place relative to something named.

    Attributes:
        relation: ``after``, ``before``, ``start_of``, ``end_of``, ``into`` (an include block, sorted),
            ``definition`` (the thing itself, to be replaced) or ``scope`` (what is declared in it).
        kind: one of :data:`ANCHOR_KINDS`.
        name: name of the thing; for an include block, one include that it contains.
        scope: the namespace and types around it; ``None`` accepts any.
        matches: how many there must be.
        pick: which of several is meant, ``first`` or ``last``.
        inside_if: whether what is put beside a definition belongs into the ``#if`` around that.
        verb: of a place in a function, which ``kind``, ``name`` and ``scope`` say then: what the statement does, one of
            :data:`STATEMENT_VERBS`; empty for other places.
        target: what the statement declares, calls, assigns or returns.
    """

    relation: str
    kind: str
    name: str
    scope: str | None = None
    matches: int = 1
    pick: str = "first"
    inside_if: bool = False
    verb: str = ""
    target: str = ""

    @property
    def in_function(self) -> bool:
        """Whether it is inside a function's body."""
        return bool(self.verb) or (self.kind in FUNCTION_KINDS and self.relation in ("start_of", "end_of"))

    def __str__(self) -> str:
        relation = self.relation.replace("_", " ")
        if self.verb:
            inside = f" in {self.scope}" if self.scope else ""
            return f"{relation} the statement that {self.verb} {self.target} in {self.kind} {self.name}{inside}"
        what = "the file" if self.kind == "file" else f"{self.kind.replace('_', ' ')} {self.name}"
        inside = f" in {self.scope or 'the global namespace'}" if self.scope is not None else ""
        return f"{relation} {what}{inside}"


@dataclass(frozen=True)
class Hit:
    """One thing an anchor names.

    Attributes:
        start: offset it begins at, with the comment lines directly above it.
        end: offset behind its last line.
        line: its line.
        thing: what was found.
    """

    start: int
    end: int
    line: int
    thing: Include | Namespace | Definition | Statement | None


def load_definition(section: Section, kinds: Sequence[str] = DEFINITION_KINDS) -> CxxPlace:
    """Read the name of a definition, such as ``{function: f, in: at::native}``; any number of them may be there."""
    parts = Complaints()
    kind = parts.part(section.one_of, kinds)
    scope = parts.part(_scope, section)
    parts.check()
    return CxxPlace("definition", kind, section.text(kind), scope)


def _scope(section: Section) -> str | None:
    scope = section.text("in") if section.has("in") else None
    return "" if scope == "global" else scope


def load_places(section: Section, keys: Sequence[str] = PLACES) -> tuple[CxxPlace, ...]:
    """Read one place as :func:`load_place` does, or ``places``, a list of them that are tried in order."""
    if not section.has("places"):
        return (load_place(section, keys),)
    found = section.each("places", "a place", lambda item: load_place(item, keys))
    if len({(place.in_function, place.relation == "into") for place in found}) > 1:
        expected = "all of them in functions, in include blocks, or elsewhere"
        raise section.error("'places' are not of one kind", line=section.line_of("places"), expected=expected)
    return found


def load_place(section: Section, keys: Sequence[str] = PLACES) -> CxxPlace:
    """Read the one key of ``keys`` that says where, such as ``after: {function: f, in: at::native}``."""
    relation = section.one_of(keys)
    inner = section.section(relation, f"'{relation}'")
    assert inner is not None  # one_of() found the key
    reads = _statement_place if inner.has("statement") else _place
    return read_whole(inner, lambda inner: reads(inner, relation))


def _statement_place(inner: Section, relation: str) -> CxxPlace:
    """Read ``{statement: {declares: x}, in_function: {function: f, in: at::native}}``."""
    parts = Complaints()
    statement, function = (parts.part(_inner, inner, key) for key in ("statement", "in_function"))
    verb = parts.part(statement.one_of, STATEMENT_VERBS) if statement else ""
    target = parts.part(read_whole, statement, lambda one: one.text(verb)) if verb else ""
    place = parts.part(read_whole, function, lambda one: load_definition(one, FUNCTION_KINDS)) if function else None
    count, pick = parts.part(_matches, inner), parts.part(_pick, inner)
    inside_if = parts.part(inner.flag, "inside_if")
    if relation not in ("before", "after"):
        parts.errors.append(inner.error(f"'{relation}' does not go with 'statement'", expected="before or after"))
    parts.check()
    assert place is not None  # or check() complained
    return CxxPlace(relation, place.kind, place.name, place.scope, count, pick, inside_if, verb, target)


def _inner(section: Section, key: str) -> Section:
    found = section.section(key, f"'{key}'")
    if found is None:
        raise section.error(f"a place beside a statement needs the key '{key}'")
    return found


def _place(inner: Section, relation: str) -> CxxPlace:
    parts = Complaints()
    kind = parts.part(inner.one_of, ANCHOR_KINDS)
    scope = parts.part(_scope, inner)
    count = parts.part(_matches, inner)
    pick = parts.part(_pick, inner)
    inside_if = parts.part(inner.flag, "inside_if")
    if kind:
        parts.part(_check_goes_together, inner, relation, kind)
    parts.check()
    return CxxPlace(relation, kind, inner.text(kind), scope, count, pick, inside_if)


def _matches(inner: Section) -> int:
    count = inner.text("matches", default="1")
    if not count.isdigit() or int(count) < 1:
        raise inner.error("'matches' must be a whole number from 1", line=inner.line_of("matches"), found=count)
    return int(count)


def _pick(inner: Section) -> str:
    pick = inner.text("pick", default="first")
    if pick not in ("first", "last"):
        raise inner.error("'pick' must be first or last", line=inner.line_of("pick"), found=pick)
    return pick


def _check_goes_together(inner: Section, relation: str, kind: str) -> None:
    allowed = {
        "into": ("include_block",),
        "start_of": (*SCOPE_KINDS, *FUNCTION_KINDS),
        "end_of": (*SCOPE_KINDS, *FUNCTION_KINDS),
        "definition": DEFINITION_KINDS,
        "scope": SCOPE_KINDS,
    }.get(relation, tuple(k for k in ANCHOR_KINDS if k != "file"))
    if kind not in allowed:
        raise inner.error(f"'{relation}' does not go with '{kind}'", expected=f"one of {', '.join(allowed)}")


def find_hits(file: CxxFile, place: CxxPlace) -> list[Hit]:
    """Everything in the file that the anchor names, in order."""
    if place.verb:
        return list(_statement_hits(file, place))
    if place.kind == "file":
        return [Hit(0, len(file.data), 1, None)]
    if place.kind == "declaration":
        return list(_declaration_hits(file, place))
    if place.kind == "include":
        return [Hit(i.start, i.end, file.line(i.start), i) for i in file.includes if i.path == place.name]
    if place.kind == "include_block":
        return _blocks(file, place)
    if place.kind == "namespace":
        return [Hit(n.start, n.end, file.line(n.start), n) for n in file.namespaces if n.name == place.name]
    return [Hit(file.comment_start(d), d.end, file.line(d.start), d) for d in named_so(file, place)]


def named_so(file: CxxFile, place: CxxPlace) -> list[Definition]:
    """The definitions that have the kind, the name and the scope of a place."""
    names = [d for d in file.definitions if d.kind == place.kind and place.name in (d.name, d.qualified)]
    return [d for d in names if place.scope in (None, d.scope)]


def _declaration_hits(file: CxxFile, place: CxxPlace) -> Iterator[Hit]:
    """Fields, prototypes and ``using`` lines of a name, which are no definitions, where they have their lines alone."""
    name = place.name.encode()
    if name not in file.data:
        return
    for scope, low, high in scopes(file):
        if place.scope in (None, scope):
            for one in declarations(file, low, high):
                if place.name in one.declares or place.name in used_names(one):
                    yield from whole_lines(file, one, one)


def scopes(file: CxxFile) -> Iterator[tuple[str, int, int]]:
    """The name of every scope, and where its inside begins and ends; the file is the first."""
    yield "", 0, len(file.data)
    yield from ((space.name, space.body_start, space.body_end) for space in file.namespaces)
    yield from ((d.qualified, d.body_start, d.body_end) for d in file.definitions if d.body_start >= 0)


def innermost_scope(file: CxxFile, at: int) -> str:
    """The name of the innermost namespace or type that an offset is in; empty at the top."""
    return max((low, scope) for scope, low, high in scopes(file) if low <= at <= high)[1]


def whole_lines(file: CxxFile, first: Statement, last: Statement) -> Iterator[Hit]:
    """The lines from one statement to another, with the comment lines above; nothing where others share them."""
    code, start, end = file.uncommented, line_start(file.data, first.start), line_end(file.data, last.end - 1)
    if not code[start : first.start].strip() and not code[last.end : end].strip():
        yield Hit(file.comment_above(start), end, file.line(first.start), first)


def find_functions(file: CxxFile, place: CxxPlace) -> list[Definition]:
    """The function that a place is in; none where there are several of that name."""
    found = named_so(file, place)
    return found if len(found) == 1 else []


def _statement_hits(file: CxxFile, place: CxxPlace) -> Iterator[Hit]:
    for function in find_functions(file, place):
        for one in statements_of(file, function):
            if _does(one, place):
                start = file.comment_above(line_start(file.data, one.start))
                yield Hit(start, line_end(file.data, one.end - 1), file.line(one.start), one)


def _does(one: Statement, place: CxxPlace) -> bool:
    if place.verb == "declares":
        return place.target in one.declares
    if place.verb == "returns":
        return one.returns and (place.target == ANY or one.has(place.target))
    return one.calls(place.target) if place.verb == "calls" else one.assigns(place.target)


def _blocks(file: CxxFile, place: CxxPlace) -> list[Hit]:
    hits = []
    for include in file.includes:
        if include.path == place.name:
            block = [other for other in file.includes if other.block == include.block]
            hits.append(Hit(block[0].start, block[-1].end, file.line(block[0].start), include))
    return hits


def scope_of(file: CxxFile, place: CxxPlace, hit: Hit) -> str:
    """The scope that something put at a place is in; empty at the top."""
    inside = place.relation in ("start_of", "end_of")
    if place.kind == "declaration":
        return innermost_scope(file, hit.start)
    if isinstance(hit.thing, Namespace):
        return hit.thing.name if inside else hit.thing.scope
    if isinstance(hit.thing, Definition):
        return hit.thing.qualified if inside else hit.thing.scope
    return file.scope_at(hit.start) if hit.thing else ""


def outside_conditionals(file: CxxFile, hit: Hit) -> tuple[int, int]:
    """Where the thing begins and ends, or the outermost ``#if`` around it that is inside the scope of the thing.

    What is put beside a definition is for more than that definition is compiled for. An ``#if`` around all that its
    scope has, such as an include guard, is none that the thing alone is in.
    """
    if not isinstance(hit.thing, (Definition, Namespace, Statement)):
        return hit.start, hit.end
    start, end = hit.start, hit.end
    for conditional in file.conditionals:
        opening, closing = file.extent(conditional)
        if opening <= start and end <= closing:
            if not _is_of_the_thing(file, hit.thing, opening, closing):
                break
            start, end = file.comment_above(opening), closing
    return start, end


def _is_of_the_thing(file: CxxFile, thing: Definition | Namespace | Statement, opening: int, closing: int) -> bool:
    """Whether a conditional is inside the scope of a thing and has not all that this scope has."""
    if isinstance(thing, Statement):
        return thing.block[0] <= opening and closing <= thing.block[1]
    types = [(d.body_start, d.body_end) for d in file.definitions if d.body_start >= 0]
    bodies = [*types, *((n.body_start, n.body_end) for n in file.namespaces)]
    if any(start <= thing.start < end and not (start <= opening and closing <= end) for start, end in bodies):
        return False
    things: list[Definition | Namespace] = [*file.namespaces, *(d for d in file.definitions if d.kind != "macro")]
    code = [other for other in things if other.scope == thing.scope]
    if any(not opening <= other.start < closing for other in code):
        return True
    return len(code) < 2 and not file.is_guard(opening)


def nearest_to(file: CxxFile, place: CxxPlace) -> list[Spot]:
    """What comes closest to an anchor that was not found as expected."""
    known: dict[str, list[Spot]] = {}
    if place.verb and find_functions(file, place):
        return _nearest_statements(file, place)
    if place.kind in ("include", "include_block"):
        for include in file.includes:
            spot = Spot(f"#include <{include.path}>", file.line(include.start))
            known.setdefault(include.path, []).append(spot)
    elif place.kind == "namespace":
        for space in file.namespaces:
            known.setdefault(space.name, []).append(Spot(f"namespace {space.name}", file.line(space.start)))
    else:
        for found in file.definitions:
            scope = f" in {found.scope}" if found.scope else ""
            name = found.qualified if "::" in place.name else found.name
            known.setdefault(name, []).append(Spot(f"{found.kind} {found.name}{scope}", file.line(found.start)))
    return [spot for name in closest(place.name, known) for spot in known[name]]


def _nearest_statements(file: CxxFile, place: CxxPlace) -> list[Spot]:
    lines: dict[str, int] = {}
    for function in find_functions(file, place):
        for one in statements_of(file, function):
            for name in re.findall(r"[A-Za-z_]\w*", one.text.decode(errors="replace")):
                lines.setdefault(name, file.line(one.start))
    return [Spot(name, lines[name]) for name in closest(place.target, lines)]
