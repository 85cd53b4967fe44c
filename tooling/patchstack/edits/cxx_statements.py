"""Replace neighbouring statements in a function, its signature, or declarations in a scope, if the series knows them.

The middle of a long function belongs to upstream. What a change does there is told by the statements that it takes the
place of: by their tokens, in the function that is named. The rest of the function may be anything. The same goes for
the fields and prototypes of a type, and for what a namespace or a file declares.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from patchstack.edits.cxx_anchor import CxxPlace, Hit, find_hits, named_so, whole_lines
from patchstack.edits.cxx_edit import Located, identity, named
from patchstack.edits.cxx_replace import ReplaceDefinition
from patchstack.edits.model import Outcome, Status
from patchstack.tree.cxx import CxxFile, Definition, Namespace, parse_cxx
from patchstack.tree.cxx_declarations import declarations
from patchstack.tree.cxx_digest import code_digest, comments_of
from patchstack.tree.cxx_statements import Statement, body_of, statements_in, statements_of
from patchstack.tree.git import Tree
from patchstack.tree.pieces import Piece
from patchstack.tree.text import line_end


@dataclass(frozen=True, kw_only=True)
class ReplaceStatements(ReplaceDefinition):
    """Put a fragment where some statements stand one behind the other, the comment lines above them included.

    Of functions with one name, and of a namespace that is opened several times, all are looked at; the run must stand
    in them once.

    Attributes:
        statements: how many statements go; 0 for the function's signature, up to the brace of its body.
    """

    kind: ClassVar[str] = "replace-statements"
    merges: ClassVar[tuple[Status, ...]] = (Status.CONFLICT,)
    noun: ClassVar[str] = "runs of statements"
    statements: int = 1

    def describe(self) -> str:
        what = (
            f"{self.statements} statement{'s' if self.statements > 1 else ''}" if self.statements else "the signature"
        )
        if self._is_scope:
            what = f"{self.statements} declaration{'s' if self.statements > 1 else ''}"
        return f"replace {what} of {scope_words(self.place)}"

    @property
    def _is_scope(self) -> bool:
        return self.place.relation == "scope"

    def introduces(self) -> tuple[Piece, ...]:
        return ()

    def _locate(self, file: CxxFile) -> Located:
        known = [hit for hit in runs(file, self) if self._knows(file, hit)]
        return Located(file, sorted(known, key=lambda hit: hit.start), 1, "first")

    def _knows(self, file: CxxFile, hit: Hit) -> bool:
        return code_digest(file.data[hit.start : hit.end]) in self.replaces

    def _planned(self, tree: Tree, at: Located) -> Outcome:
        there = self._already(at.file)
        if there is not None and all(there.start <= hit.start and hit.end <= there.end for hit in at.hits):
            return Outcome(Status.SATISFIED, self._anchor, (there.line,))
        if at.hit is not None:
            return self._put(tree, at, at.hit)
        if not find_hits(at.file, self.place):
            return self._not_found(at)
        where = "the file" if self.place.kind == "file" else self.place.name
        what = "declarations" if self._is_scope else "statements"
        problem = f"{len(at.hits)} runs of {what} in {where} are what the series knows, expected 1"
        return self.failed(self._anchor, problem, matches=at.lines)

    @property
    def _anchor(self) -> str:
        what = "declarations" if self._is_scope else "statements" if self.statements else "signature"
        return f"{what} of {self.place}".replace("definition ", "").replace("scope ", "")

    def _already(self, file: CxxFile) -> Hit | None:
        """Where the fragment stands already; if the comments alone are new, with its comments."""
        text = self.fragment.text
        adds = self._added()
        count = sum(one.block == (0, len(text)) for one in adds) if self.statements else 0
        wanted = code_digest(text)
        told = [words for _, words in comments_of(text)] if wanted in self.replaces else None
        for hit in runs(file, self, count) if count or not self.statements else ():
            there = file.data[hit.start : hit.end]
            if code_digest(there) == wanted and told in (None, [words for _, words in comments_of(there)]):
                return hit
        return None

    def _added(self) -> list[Statement]:
        """The statements or declarations of the fragment; none of a signature."""
        text = self.fragment.text
        if self._is_scope:
            return list(declarations(parse_cxx(text), 0, len(text)))
        return statements_in(text) if self.statements else []

    def _verify(self, file: CxxFile, after: CxxFile, hit: Hit) -> str:
        """On the parsed result: the same things have names, and no other statement changed."""
        if after.broken and not file.broken:
            return "the file could no longer be parsed with the replacement in it"
        end = hit.end + len(after.data) - len(file.data)
        kept = [identity(thing) for thing in named(file) if not (self._is_scope and hit.start <= thing.start < hit.end)]
        around = [identity(thing) for thing in named(after) if not (self._is_scope and hit.start <= thing.start < end)]
        if Counter(around) != Counter(kept):
            return "the replacement would change what is around it"
        stays = [one.words for one in self._statements(file) if not hit.start <= one.start < hit.end]
        lands = [one.words for one in self._added()]
        if Counter(one.words for one in self._statements(after)) != Counter([*stays, *lands]):
            return "the replacement would change the statements around it"
        return ""

    def _statements(self, file: CxxFile) -> Iterator[Statement]:
        for _, listed in groups(file, self.place):
            yield from listed


def scope_words(place: CxxPlace) -> str:
    """What the statements or declarations are in, in words."""
    return "the file" if place.kind == "file" else f"{place.kind} {place.name}"


def groups(file: CxxFile, place: CxxPlace) -> Iterator[tuple[Definition | None, list[Statement]]]:
    """The functions of a place, each with its statements, or its scopes with their declarations."""
    if place.relation != "scope":
        yield from ((function, statements_of(file, function)) for function in named_so(file, place))
    elif place.kind == "file":
        yield None, list(declarations(file, 0, len(file.data)))
    else:
        for hit in find_hits(file, place):
            assert isinstance(hit.thing, (Definition, Namespace))
            yield None, list(declarations(file, hit.thing.body_start, hit.thing.body_end))


def runs(file: CxxFile, edit: ReplaceStatements, count: int | None = None) -> Iterator[Hit]:
    """Every run of ``count`` neighbouring statements that has its lines to itself; for 0, the signature.

    Args:
        count: those that the edit replaces by default.
    """
    wanted = edit.statements if count is None else count
    for function, listed in groups(file, edit.place):
        if function is not None and not wanted:
            yield from signature(file, function)
            continue
        blocks: dict[tuple[int, int], list[Statement]] = {}
        for one in listed:
            blocks.setdefault(one.block, []).append(one)
        for block in blocks.values():
            for first, last in zip(block, block[wanted - 1 :], strict=False):
                yield from whole_lines(file, first, last)


def signature(file: CxxFile, function: Definition) -> Iterator[Hit]:
    """The lines of a function's head up to the brace, if nothing of the body stands on them."""
    body = body_of(file, function)
    if body is not None:
        end = line_end(file.data, body[0])
        if not file.uncommented[body[0] : end].strip():
            yield Hit(file.comment_start(function), end, file.line(function.start), function)
