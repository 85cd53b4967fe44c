"""Add a dispatch key to one entry of ``native_functions.yaml``, as one more line and nothing else."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

from patchstack.edits.model import Edit, Outcome, Spot, Status
from patchstack.manifest.closest import closest
from patchstack.tree.git import Tree
from patchstack.tree.native_functions import FunctionEntry, NativeFunctions, parse_native_functions
from patchstack.tree.pieces import Piece
from patchstack.tree.text import Splice, apply_splices, indentation, line_end, line_ending, line_number
from patchstack.tree.yaml_nodes import YamlSyntaxError

_DispatchLine = tuple[tuple[str, ...], str]  # the keys and the function


@dataclass(frozen=True, kw_only=True)
class AddDispatchKey(Edit):
    """Register ``function`` for ``op`` under ``key``. The schema line is never touched.

    Attributes:
        op: operator name with its overload (``grid_sampler_2d_backward``, ``add.out``).
        key: dispatch key (``MPS``).
        function: native function that is registered.
    """

    kind: ClassVar[str] = "add-dispatch-key"
    op: str
    key: str
    function: str

    def describe(self) -> str:
        return f"register {self.function} for {self.op} on {self.key}"

    def plan(self, tree: Tree) -> Outcome:
        anchor = f"the entry of {self.op}"
        data = tree.read(self.path)
        if data is None:
            return self.missing_file(tree)
        functions = parse_native_functions(data)
        try:
            entries = functions.find(self.op)
        except YamlSyntaxError as error:
            return self.failed(anchor, f"the entry cannot be read: {error.problem}", matches=[error.line])
        lines = tuple(entry.line for entry in entries)
        if len(entries) != 1:
            problem = f"{len(entries)} entries are called {self.op}, expected 1"
            known = functions.lines
            nearest = [Spot(name, known[name]) for name in closest(self.op, known)]
            return self.failed(anchor, problem, matches=lines, nearest=nearest)
        return self._plan_entry(tree, data, entries[0], anchor)

    def _plan_entry(self, tree: Tree, data: bytes, entry: FunctionEntry, anchor: str) -> Outcome:
        registered = entry.function_for(self.key)
        matches = (entry.line,)
        if registered == self.function:
            return Outcome(Status.SATISFIED, anchor, matches)
        if registered is not None:
            problem = f"{self.op} already has {registered} for {self.key}, not {self.function}"
            return self.failed(anchor, problem, matches=matches, status=Status.DIFFERENT)
        if not entry.has_dispatch:
            reason = "it is composite, and a map would take its composite kernel away"
            if entry.structured_delegate:
                reason = f"its kernels are those of {entry.structured_delegate}, where the key belongs"
            return self.failed(anchor, f"{self.op} has no dispatch map: {reason}", matches=matches)
        wanted = [*_lines(entry), ((self.key,), self.function)]
        return self._spliced(tree, data, entry, [self._splice(data, entry)], wanted)

    def replace(self, tree: Tree) -> Outcome:
        """Register our function where another one is; a line that the key shares with others keeps those."""
        planned = self.plan(tree)
        data = tree.read(self.path)
        if planned.status is not Status.DIFFERENT or data is None:
            return planned
        (entry,) = parse_native_functions(data).find(self.op)
        at, old = next((n, line) for n, line in enumerate(entry.dispatch) if self.key in line.keys)
        wanted = _lines(entry)
        rest = tuple(key for key in old.keys if key != self.key)
        if rest:
            wanted[at : at + 1] = [(rest, old.function)]
            wanted.append(((self.key,), self.function))
            shorter = Splice(old.start, old.end, f"{', '.join(rest)}: {old.function}".encode())
            splices = [shorter, self._splice(data, entry)]
        else:
            wanted[at] = (old.keys, self.function)
            splices = [Splice(old.end - len(old.function.encode()), old.end, self.function.encode())]
        outcome = self._spliced(tree, data, entry, splices, wanted)
        note = f"{old.function} is no longer registered for {self.key}; where it is defined, it stays"
        return dataclasses.replace(outcome, replaced=(self._piece(data, entry),), note=note)

    def _spliced(
        self, tree: Tree, data: bytes, entry: FunctionEntry, splices: list[Splice], wanted: list[_DispatchLine]
    ) -> Outcome:
        """The outcome of splices that are to give the entry the dispatch lines ``wanted``."""
        anchor = f"the entry of {self.op}"
        after = apply_splices(data, splices)
        problem = self._verify(data, entry, after, wanted)
        if problem:
            return self.failed(anchor, problem, matches=[entry.line])
        return Outcome(Status.APPLIES, anchor, (entry.line,), rung=self.rung(tree), after=after)

    def introduces(self) -> tuple[Piece, ...]:
        return (Piece(self.path, "dispatch entry", f"{self.op} {self.key}", self._line.encode()),)

    def counterparts(self, tree: Tree) -> tuple[Piece, ...]:
        data = tree.read(self.path) or b""
        try:
            found = parse_native_functions(data).find(self.op)
        except YamlSyntaxError:
            return ()
        return tuple(self._piece(data, entry) for entry in found if entry.function_for(self.key) is not None)

    def _piece(self, data: bytes, entry: FunctionEntry) -> Piece:
        (line,) = (line for line in entry.dispatch if self.key in line.keys)
        text, at = data[line.start : line.end], line_number(data, line.start)
        return Piece(self.path, "dispatch entry", f"{self.op} {self.key}", text, at)

    @property
    def _line(self) -> str:
        return f"{self.key}: {self.function}"

    def _splice(self, data: bytes, entry: FunctionEntry) -> Splice:
        text = self._line.encode()
        if entry.flow_end is not None:
            at = entry.dispatch[-1].end if entry.dispatch else entry.flow_end
            return Splice(at, at, (b", " if entry.dispatch else b"") + text)
        last = entry.dispatch[-1]
        end = line_end(data, last.end)
        ending = line_ending(data)
        indent = indentation(data, last.start)
        if data[end - 1 : end] == b"\n":
            return Splice(end, end, indent + text + ending)
        return Splice(end, end, ending + indent + text)  # the file ends here without a line feed

    def _verify(self, data: bytes, before: FunctionEntry, after: bytes, wanted: list[_DispatchLine]) -> str:
        """The entry as torchgen will read it has the lines ``wanted`` and the schema it had."""
        try:
            end = before.end + len(after) - len(data)
            found = NativeFunctions(after[before.start : end]).find(self.op)
        except YamlSyntaxError as error:
            return f"the entry would no longer be YAML: {error.problem}"
        if len(found) != 1 or _lines(found[0]) != wanted or found[0].schema != before.schema:
            return "the entry would change in more than the new dispatch key"
        return ""


def _lines(entry: FunctionEntry) -> list[_DispatchLine]:
    return [(line.keys, line.function) for line in entry.dispatch]
