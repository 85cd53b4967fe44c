"""Place a fragment in the body of a function: at its start or end, or beside one of its statements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from patchstack.edits.cxx_anchor import Hit, find_functions
from patchstack.edits.cxx_edit import Located, identity, named
from patchstack.edits.cxx_fragment import PlaceCxxFragment
from patchstack.edits.model import Outcome, Status
from patchstack.tree.cxx import CxxFile, Definition
from patchstack.tree.cxx_mask import code_only
from patchstack.tree.cxx_statements import Statement, body_of, statements_in, statements_of
from patchstack.tree.git import Tree
from patchstack.tree.pieces import Piece
from patchstack.tree.text import Splice, find_lines, line_end, line_start, lines_end


@dataclass(frozen=True, kw_only=True)
class PlaceInFunction(PlaceCxxFragment):
    """Insert statements into the body of a function; its other statements stay as they are."""

    def introduces(self) -> tuple[Piece, ...]:
        return ()

    def _inserted(self, tree: Tree, at: Located) -> Outcome:
        shared = at.hit is not None and self._shares_a_line(at.file, at.hit)
        if shared:
            problem = "other code stands on the line where the fragment would go"
            return self.failed(str(self.place), problem, matches=at.lines)
        return super()._inserted(tree, at)

    def _already(self, file: CxxFile, scope: str | None) -> Outcome | None:
        at = self._find_text(file, file)
        if at is not None:
            return Outcome(Status.SATISFIED, str(self.place), (file.line(at),))
        text, hit = self.fragment.text, self._locate(file).hit
        wanted = {name for one in statements_in(text) if one.block == (0, len(text)) for name in one.declares}
        block = self._block(file, hit) if hit else None
        there = [one for one in self._statements(file) if wanted & {*one.declares} and block in (None, one.block)]
        if not there:
            return None
        names = ", ".join(sorted({name for one in there for name in one.declares} & wanted))
        return self.failed(
            str(self.place),
            f"{self.place.name} already declares {names}, and not as the fragment does",
            matches=(file.line(one.start) for one in there),
            status=Status.DIFFERENT,
        )

    def _block(self, file: CxxFile, hit: Hit) -> tuple[int, int] | None:
        """The block of the function that the place is in."""
        if isinstance(hit.thing, Statement):
            return hit.thing.block
        return body_of(file, hit.thing) if isinstance(hit.thing, Definition) else None

    def _clashing(self, file: CxxFile, scope: str | None, *, any_kind: bool = False) -> list[Definition]:
        return []  # a statement brings no name that another file or function could have

    def _find_text(self, file: CxxFile, adds: CxxFile, scope: str | None = None) -> int | None:
        """Offset of the fragment's text in the function, as code."""
        for function in find_functions(file, self.place):
            code = b" " * function.start + code_only(file.data[function.start : function.end])
            at = find_lines(file.data, self.fragment.text, function.start, function.end)
            while at is not None:
                if code[at : lines_end(file.data, at, self.fragment.text)].strip():
                    return at
                at = find_lines(file.data, self.fragment.text, at + 1, function.end)
        return None

    def _statements(self, file: CxxFile) -> Iterator[Statement]:
        for function in find_functions(file, self.place):
            yield from statements_of(file, function)

    def _usual_blanks(self, data: bytes, at: int, hit: Hit) -> tuple[int, int]:
        return 0, 0

    def _offset(self, file: CxxFile, hit: Hit) -> int:
        if isinstance(hit.thing, Definition):
            body = body_of(file, hit.thing)
            assert body is not None  # _inserted() saw to it
            return line_end(file.data, body[0]) if self.place.relation == "start_of" else line_start(file.data, body[1])
        return super()._offset(file, hit)

    def _shares_a_line(self, file: CxxFile, hit: Hit) -> bool:
        """Whether code would stand before or behind the fragment on its line."""
        code = file.uncommented
        if isinstance(hit.thing, Statement):
            start, end = hit.thing.start, hit.thing.end
            before = code[line_start(code, start) : start]
            return bool(before.strip() or code[end : line_end(code, end)].strip())
        body = body_of(file, hit.thing) if isinstance(hit.thing, Definition) else None
        if body is None:
            return True
        if self.place.relation == "start_of":
            return bool(code[body[0] : line_end(code, body[0])].strip())
        return bool(code[line_start(code, body[1]) : body[1]].strip())

    def _verify(self, before: CxxFile, after: CxxFile, splice: Splice, scope: str) -> str:
        """On the parsed result: the function has its statements and the fragment's, and nothing else changed."""
        if after.broken and not before.broken:
            return "the file could no longer be parsed with the fragment in it"
        if Counter(map(identity, named(before))) != Counter(map(identity, named(after))):
            return "the fragment would change what is around it"
        wanted = [*self._statements(before), *statements_in(splice.replacement)]
        if Counter(one.words for one in self._statements(after)) != Counter(one.words for one in wanted):
            return "the fragment would change the statements around it"
        return ""
