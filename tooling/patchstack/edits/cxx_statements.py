"""Replace neighbouring statements in a function, or its signature, if they are what the series knows.

The middle of a long function belongs to upstream. What a change does there is told by the statements that it takes the
place of: by their tokens, in the function that is named. The rest of the function may be anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from patchstack.edits.cxx_anchor import Hit, find_functions
from patchstack.edits.cxx_edit import Located, identity, named
from patchstack.edits.cxx_replace import ReplaceDefinition
from patchstack.edits.model import Outcome, Status
from patchstack.tree.cxx import CxxFile, Definition
from patchstack.tree.cxx_digest import code_digest
from patchstack.tree.cxx_statements import Statement, body_of, statements_in, statements_of
from patchstack.tree.git import Tree
from patchstack.tree.pieces import Piece
from patchstack.tree.text import line_end, line_start


@dataclass(frozen=True, kw_only=True)
class ReplaceStatements(ReplaceDefinition):
    """Put a fragment where some statements stand one behind the other, the comment lines above them included.

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
        return f"replace {what} of {self.place.kind} {self.place.name}"

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
        if not find_functions(at.file, self.place):
            return self._not_found(at)
        problem = f"{len(at.hits)} runs of statements in {self.place.name} are what the series knows, expected 1"
        return self.failed(self._anchor, problem, matches=at.lines)

    @property
    def _anchor(self) -> str:
        return f"{'statements' if self.statements else 'signature'} of {self.place}".replace("definition ", "")

    def _already(self, file: CxxFile) -> Hit | None:
        """Where the fragment stands already."""
        text = self.fragment.text
        count = sum(one.block == (0, len(text)) for one in statements_in(text)) if self.statements else 0
        wanted = code_digest(text)
        found = runs(file, self, count) if count or not self.statements else iter(())
        return next((hit for hit in found if code_digest(file.data[hit.start : hit.end]) == wanted), None)

    def _verify(self, file: CxxFile, after: CxxFile, hit: Hit) -> str:
        """On the parsed result: the same things have names, and no other statement changed."""
        if after.broken and not file.broken:
            return "the file could no longer be parsed with the replacement in it"
        if Counter(map(identity, named(file))) != Counter(map(identity, named(after))):
            return "the replacement would change what is around it"
        kept = [one.words for one in self._statements(file) if not hit.start <= one.start < hit.end]
        adds = [one.words for one in statements_in(self.fragment.text)] if self.statements else []
        if Counter(one.words for one in self._statements(after)) != Counter([*kept, *adds]):
            return "the replacement would change the statements around it"
        return ""

    def _statements(self, file: CxxFile) -> Iterator[Statement]:
        for function in find_functions(file, self.place):
            yield from statements_of(file, function)


def runs(file: CxxFile, edit: ReplaceStatements, count: int | None = None) -> Iterator[Hit]:
    """Every run of ``count`` neighbouring statements that has its lines to itself; for 0, the signature.

    Args:
        count: those that the edit replaces by default.
    """
    wanted = edit.statements if count is None else count
    for function in find_functions(file, edit.place):
        if not wanted:
            yield from signature(file, function)
            continue
        blocks: dict[tuple[int, int], list[Statement]] = {}
        for one in statements_of(file, function):
            blocks.setdefault(one.block, []).append(one)
        for block in blocks.values():
            for first, last in zip(block, block[wanted - 1 :], strict=False):
                yield from lines_of(file, first, last)


def lines_of(file: CxxFile, first: Statement, last: Statement) -> Iterator[Hit]:
    """The lines from one statement to another, with the comment lines above; nothing where others share them."""
    code, start, end = file.uncommented, line_start(file.data, first.start), line_end(file.data, last.end - 1)
    if not code[start : first.start].strip() and not code[last.end : end].strip():
        yield Hit(file.comment_above(start), end, file.line(first.start), first)


def signature(file: CxxFile, function: Definition) -> Iterator[Hit]:
    """The lines of a function's head up to the brace, if nothing of the body stands on them."""
    body = body_of(file, function)
    if body is not None:
        end = line_end(file.data, body[0])
        if not file.uncommented[body[0] : end].strip():
            yield Hit(file.comment_start(function), end, file.line(function.start), function)
