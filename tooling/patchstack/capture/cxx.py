"""Structural edits that may stand for hunks of a C++, Metal or Objective-C++ file, most durable first.

What is proposed here is tried by the caller: only an edit that gives the very bytes of the commit is taken.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Sequence

from patchstack.capture.state import Insertion, State
from patchstack.edits import Edit
from patchstack.edits.cxx_anchor import ANY, FUNCTION_KINDS, CxxPlace, Hit, find_hits, whole_lines
from patchstack.edits.cxx_fragment import PlaceCxxFragment
from patchstack.edits.cxx_in_function import PlaceInFunction
from patchstack.edits.cxx_remove import PRIVATE_SUFFIXES, RemoveUnusedDefinition
from patchstack.edits.cxx_replace import ReplaceDefinition
from patchstack.edits.cxx_statements import ReplaceStatements, signature
from patchstack.edits.spacing import USUAL, Spacing
from patchstack.manifest.overlay import Fragment, has_markers
from patchstack.tree.cxx import CxxFile, Definition, Namespace, parse_cxx
from patchstack.tree.cxx_declarations import declarations, used_names
from patchstack.tree.cxx_digest import code_digest
from patchstack.tree.cxx_statements import Statement, brackets_pair, statements_of
from patchstack.tree.text import line_end, line_start

_NAME = re.compile(rb"[A-Za-z_]\w*")
_WORDS = ("if", "for", "while", "switch", "return", "sizeof", "catch", "else", "do", "decltype", "alignof")
SMALL = 40
"""Lines of a definition that is replaced as a whole, however little of it changed."""
_SHARE = 4
"""Of a longer one, one line in so many must have changed: what upstream does to the rest should not be in the way."""

_MOST_SCOPES = 3
"""How far out from a hunk declarations are looked for."""

Proposal = tuple[int, tuple[Edit, ...]]
"""Hunks that edits stand for, and these edits."""


def cxx_proposals(path: str, state: State) -> Iterator[Proposal]:
    """Edits for the next hunk, or for it and those behind it."""
    file = parse_cxx(state.text)
    for insertion in state.insertions():
        yield from _include_lines(path, file, insertion)
    for insertion in sorted(state.insertions(), key=_starts_with_blank):
        if insertion.text.strip() and brackets_pair(insertion.text) and not has_markers(insertion.text):
            for edit in _insertions(path, file, state, insertion):
                yield 1, (edit,)
    yield from _removals(path, file, state)
    yield from _replacements(path, file, state, small_types=False)
    yield from _statements(path, file, state)
    yield from _declarations(path, file, state)
    yield from _replacements(path, file, state, small_types=True)


def _starts_with_blank(insertion: Insertion) -> tuple[bool, bool]:
    lines = insertion.text.split(b"\n")
    return (bool(lines[0].strip()), lines[-2:-1] != [b"}"])


def _insertions(path: str, file: CxxFile, state: State, insertion: Insertion) -> Iterator[Edit]:
    lead = len(insertion.text) - len(insertion.text.lstrip(b"\r\n \t"))
    start = insertion.text.rfind(b"\n", 0, lead) + 1
    text = insertion.text[start:].rstrip() + b"\n"
    name = _fragment_name(parse_cxx(text), text, _functions_at(file, insertion.at))
    whole = state.after(1).text
    usual = Fragment(name, plain(text), "")
    spacings = [(USUAL, usual), (blank_lines(whole, insertion.at + start, text), usual)]
    spacings.append((Spacing(exact=True), Fragment(name, plain(insertion.text), "")))
    for place in _places(file, insertion, text):
        kind = PlaceInFunction if place.in_function else PlaceCxxFragment
        for spacing, fragment in dict(spacings).items():
            yield kind(path=path, fragment=fragment, place=place, spacing=spacing)


def plain(text: bytes) -> bytes:
    """As the overlay has it: line feeds alone, one at the end."""
    plain = text.replace(b"\r\n", b"\n")
    return plain if plain.endswith(b"\n") else plain + b"\n"


def blank_lines(data: bytes, start: int, text: bytes) -> Spacing:
    """The blank lines around a text where it stands."""
    above, below = data[:start], data[start + len(text) :]
    before = above[len(above.rstrip()) :].count(b"\n") - bool(above.strip())
    after = below[: len(below) - len(below.lstrip())].count(b"\n")
    return Spacing(min(max(before, 0), 9), min(after, 9))


def _functions_at(file: CxxFile, at: int) -> list[Definition]:
    return [d for d in file.definitions if d.kind in ("function", "kernel") and d.start < at < d.end]


def _fragment_name(file: CxxFile, text: bytes, around: Sequence[Definition] = ()) -> str:
    """What a fragment defines; lines of a function have its name, since their first word says little."""
    if around:
        return _plain_name(around[-1].name) + "_lines"
    if file.definitions:
        return _plain_name(file.definitions[0].name)
    if file.has_only_includes:
        stem = file.includes[0].path.rpartition("/")[2].partition(".")[0]
        return re.sub(r"[^\w.-]+", "_", stem) + "_include"
    found = [name for name in _NAME.findall(text) if name.decode() not in _WORDS]
    return f"{found[0].decode()}_lines" if found else "lines"


def _plain_name(name: str) -> str:
    return re.sub(r"[^\w.-]+", "_", name).strip("_") or "code"


def _places(file: CxxFile, insertion: Insertion, text: bytes) -> Iterator[CxxPlace]:
    at = insertion.at
    if functions := _functions_at(file, at):
        yield from _places_in(file, functions[-1], at)
        return
    if parse_cxx(text).has_only_includes:
        yield from _include_places(file, at)
    bodies: list[Definition | Namespace] = [*file.namespaces, *(d for d in file.definitions if d.body_start >= 0)]
    inside = [body for body in bodies if body.body_start <= at <= body.body_end]
    scope = max(inside, key=lambda body: body.start, default=None)
    name = scope.name if isinstance(scope, Namespace) else scope.qualified if scope else ""
    yield from _beside(file, at, name)
    yield from _beside_declarations(file, at, scope, name)
    if scope is not None:
        kind = "namespace" if isinstance(scope, Namespace) else scope.kind
        around = None if isinstance(scope, Namespace) else scope.scope
        for relation in ("end_of", "start_of"):
            yield from _counted(file, CxxPlace(relation, kind, scope.name, around), scope.start)
    else:
        yield from (CxxPlace("end_of", "file", "end"), CxxPlace("start_of", "file", "start"))
    yield from _beside_namespaces(file, at, name)


def _beside(file: CxxFile, at: int, scope: str) -> Iterator[CxxPlace]:
    siblings = [d for d in file.definitions if d.scope == scope]
    above = max((d for d in siblings if d.end <= at), key=lambda d: d.end, default=None)
    below = min((d for d in siblings if d.start >= at), key=lambda d: d.start, default=None)
    for relation, found in (("after", above), ("before", below)):
        if found is not None:
            place = CxxPlace(relation, found.kind, found.name, scope)
            yield from _counted(file, place, found.start)
            yield from _counted(file, dataclasses.replace(place, inside_if=True), found.start)


def _beside_declarations(file: CxxFile, at: int, scope: Definition | Namespace | None, name: str) -> Iterator[CxxPlace]:
    """Places beside the fields, prototypes and ``using`` lines next to an offset."""
    low, high = (scope.body_start, scope.body_end) if scope is not None else (0, len(file.data))
    listed = list(declarations(file, low, high))
    above = [one for one in listed if one.end <= at][-1:]
    below = [one for one in listed if one.start >= at][:1]
    for relation, found in (("after", above), ("before", below)):
        for one in found:
            for target in (*one.declares, *used_names(one)):
                place = CxxPlace(relation, "declaration", target, name)
                yield from _counted(file, place, one.start)


def _beside_namespaces(file: CxxFile, at: int, scope: str) -> Iterator[CxxPlace]:
    above = [space for space in file.namespaces if space.end <= at and space.scope == scope][-1:]
    below = [space for space in file.namespaces if space.start >= at and space.scope == scope][:1]
    for relation, found in (("after", above), ("before", below)):
        for space in found:
            yield from _counted(file, CxxPlace(relation, "namespace", space.name), space.start)


def _include_lines(path: str, file: CxxFile, insertion: Insertion) -> Iterator[Proposal]:
    """Several include lines as an edit each: a tree may have some of them."""
    includes = parse_cxx(insertion.text)
    if not includes.has_only_includes or len(includes.includes) < 2 or b"\n\n" in insertion.text:
        return
    found = [place for place in dict.fromkeys(_include_places(file, insertion.at)) if place.relation == "into"]
    if found:
        texts = [insertion.text[include.start : include.end] for include in includes.includes]
        fragments = [Fragment(_fragment_name(parse_cxx(text), text), plain(text), "") for text in texts]
        others = tuple(found[1:3])
        yield 1, tuple(PlaceCxxFragment(path=path, fragment=f, place=found[0], others=others) for f in fragments)


def _include_places(file: CxxFile, at: int) -> Iterator[CxxPlace]:
    above = [i for i in file.includes if i.end <= at][-1:]
    below = [i for i in file.includes if i.start >= at][:1]
    for include in (*above, *below):
        block = [i for i in file.includes if i.block == include.block]
        for other in sorted(block, key=lambda i: abs(i.start - at)):
            yield CxxPlace("into", "include_block", other.path)
    for relation, found in (("after", above), ("before", below)):
        for include in found:
            yield CxxPlace(relation, "include", include.path)


def _counted(file: CxxFile, place: CxxPlace, start: int) -> Iterator[CxxPlace]:
    """The place with its number of matches, where the thing at an offset is the only, the first or the last one."""
    starts = [hit.thing.start for hit in find_hits(file, place) if hit.thing is not None]
    if len(starts) == 1:
        yield place
    elif starts and start in (starts[0], starts[-1]):
        pick = "first" if start == starts[0] else "last"
        yield dataclasses.replace(place, matches=len(starts), pick=pick)


def _places_in(file: CxxFile, function: Definition, at: int) -> Iterator[CxxPlace]:
    place = CxxPlace("after", function.kind, function.name, function.scope)
    statements = statements_of(file, function)
    above = max((s for s in statements if s.end <= at), key=lambda s: (s.end, s.start), default=None)
    below = min((s for s in statements if s.start >= at), key=lambda s: (s.start, -s.end), default=None)
    for relation, found in (("after", above), ("before", below)):
        if found is not None:
            for verb, target in _does(found):
                beside = dataclasses.replace(place, relation=relation, verb=verb, target=target)
                hits = find_hits(file, beside)
                if len(hits) == 1 and hits[0].thing == found:
                    yield beside
    for relation in ("start_of", "end_of"):
        yield dataclasses.replace(place, relation=relation)


def _does(statement: Statement) -> Iterator[tuple[str, str]]:
    for name in statement.declares:
        yield "declares", name
    names = list(dict.fromkeys(found.decode() for found in _NAME.findall(statement.text)))
    yield from (("assigns", name) for name in names if statement.assigns(name))
    yield from (("calls", name) for name in names if name not in _WORDS and statement.calls(name))
    if statement.returns:
        yield "returns", ANY
        yield from (("returns", name) for name in names if name != "return")


def _removals(path: str, file: CxxFile, state: State) -> Iterator[Proposal]:
    start, end = state.span(0)
    if start == end or not path.endswith(PRIVATE_SUFFIXES):
        return
    gone = [d for d in file.definitions if start <= d.start and d.end <= end]
    inside = [d for d in gone if not any(o is not d and o.start <= d.start and d.end <= o.end for o in gone)]
    if inside:
        places = tuple(CxxPlace("definition", d.kind, d.name, d.scope) for d in inside if d.kind != "registration")
        texts = [file.data[file.comment_start(d) : d.end] for d in inside]
        digests = tuple(dict.fromkeys(map(code_digest, texts)))
        if places:
            yield 1, (RemoveUnusedDefinition(path=path, places=places, replaces=digests),)


def _replacements(path: str, file: CxxFile, state: State, *, small_types: bool) -> Iterator[Proposal]:
    """Whole definitions that hold the next hunk, the innermost first, each with the other hunks in it.

    Args:
        small_types: whether a short type goes as a whole too, of which little changed; its members come first.
    """
    start, end = state.span(0)
    around = [d for d in file.definitions if file.comment_start(d) <= start and end <= d.end and start < d.end]
    for found in sorted(around, key=lambda d: d.end - d.start):
        low, high = file.comment_start(found), found.end
        count = held_hunks(state, high)
        text = replaced_text(state, count, low, high)
        place = CxxPlace("definition", found.kind, found.name, found.scope)
        small = SMALL if small_types or found.body_start < 0 else 0
        if not is_worth_it(state, count, low, high, small) or has_markers(text) or len(find_hits(file, place)) != 1:
            continue
        fragment = Fragment(re.sub(r"[^\w.-]+", "_", found.name), plain(text), "")
        yield (
            count,
            (
                ReplaceDefinition(
                    path=path, fragment=fragment, place=place, replaces=(code_digest(file.data[low:high]),)
                ),
            ),
        )


def _statements(path: str, file: CxxFile, state: State) -> Iterator[Proposal]:
    """Runs of statements that hold the next hunk, in the innermost block first, and the signature of a function."""
    start, end = state.span(0)
    functions = [d for d in file.definitions if d.kind in FUNCTION_KINDS and file.comment_start(d) <= start < d.end]
    for function in functions[-1:]:
        place = CxxPlace("definition", function.kind, function.name, function.scope)
        for hit in signature(file, function):
            if hit.start <= start and end <= hit.end:
                yield from _statement_edit(path, file, state, place, 0, hit)
        yield from _run_edits(path, file, state, place, statements_of(file, function))


def _declarations(path: str, file: CxxFile, state: State) -> Iterator[Proposal]:
    """Runs of declarations that hold the next hunk, in the innermost scope first."""
    start, end = state.span(0)
    scopes: list[Definition | Namespace] = [*file.namespaces, *(d for d in file.definitions if d.body_start >= 0)]
    around = [scope for scope in scopes if scope.body_start <= start and end <= scope.body_end]
    for scope in sorted(around, key=lambda scope: -scope.start)[:_MOST_SCOPES]:
        kind, within = ("namespace", None) if isinstance(scope, Namespace) else (scope.kind, scope.scope)
        place = CxxPlace("scope", kind, scope.name, within)
        yield from _run_edits(path, file, state, place, declarations(file, scope.body_start, scope.body_end))
    if len(around) < _MOST_SCOPES:
        place = CxxPlace("scope", "file", "all")
        yield from _run_edits(path, file, state, place, declarations(file, 0, len(file.data)))


def _run_edits(
    path: str, file: CxxFile, state: State, place: CxxPlace, statements: Iterable[Statement]
) -> Iterator[Proposal]:
    start, end = state.span(0)
    blocks: dict[tuple[int, int], list[Statement]] = {}
    for one in statements:
        blocks.setdefault(one.block, []).append(one)
    around = [block for block in blocks if block[0] <= start and end <= block[1]]
    for block in sorted(around, key=lambda block: block[1] - block[0]):
        listed = blocks[block]
        spans = [(line_start(file.data, one.start), line_end(file.data, one.end - 1)) for one in listed]
        first, last = held(spans, start, end)
        for low, high in ((first, last), (first - 1, last), (first, last + 1), (first - 1, last + 1)):
            if 0 <= low <= high < len(listed):
                for hit in whole_lines(file, listed[low], listed[high]):
                    yield from _statement_edit(path, file, state, place, high - low + 1, hit)


def held(lines: Sequence[tuple[int, int]], start: int, end: int) -> tuple[int, int]:
    """The first and the last of some stretches that a hunk touches; for lines that come between two, the one above."""
    touched = [n for n, (low, high) in enumerate(lines) if low < end and start < high]
    if touched:
        return touched[0], touched[-1]
    above = max((n for n, (_, high) in enumerate(lines) if high <= start), default=0)
    return above, above


def _statement_edit(
    path: str, file: CxxFile, state: State, place: CxxPlace, statements: int, hit: Hit
) -> Iterator[Proposal]:
    low, high = min(hit.start, state.span(0)[0]), hit.end
    if low < hit.start or file.data.count(b"\n", low, high) > SMALL:
        return
    count = held_hunks(state, high)
    text = replaced_text(state, count, low, high)
    if count and text.strip() and not has_markers(text):
        name = "file" if place.kind == "file" else _plain_name(place.name)
        fragment = Fragment(f"{name}_lines", plain(text), "")
        digests = (code_digest(file.data[low:high]),)
        edit = ReplaceStatements(path=path, fragment=fragment, place=place, replaces=digests, statements=statements)
        yield count, (edit,)


def held_hunks(state: State, high: int) -> int:
    """How many of the next hunks end before an offset."""
    count = 0
    while count < state.left and state.span(count)[1] <= high and (not count or state.span(count)[0] < high):
        count += 1
    return count


def replaced_text(state: State, count: int, low: int, high: int) -> bytes:
    """What a stretch of the text becomes with the next hunks."""
    after = state.after(count).text
    return after[low : high + len(after) - len(state.text)]


def is_worth_it(state: State, count: int, low: int, high: int, small: int = SMALL) -> bool:
    """Whether enough of a definition changes for the whole of it to be the unit that is replaced.

    Args:
        small: lines of a definition that is replaced however little of it changed.
    """
    lines = state.text.count(b"\n", low, line_end(state.text, high - 1))
    changes = state.changes[state.done : state.done + count]
    changed = sum(max(c.old_end - c.old_start, c.new_end - c.new_start) for c in changes)
    return lines <= small or changed * _SHARE >= lines
