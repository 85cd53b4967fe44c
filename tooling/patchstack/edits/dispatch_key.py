"""Add a dispatch key to one entry of ``native_functions.yaml``, as one more line and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from patchstack.edits.model import Edit, Outcome, Status, closest
from patchstack.git import Tree
from patchstack.source.native_functions import FunctionEntry, NativeFunctions, YamlSyntaxError
from patchstack.source.text import Splice, apply_splices, indentation, line_end, line_ending


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
        functions = NativeFunctions(data)
        try:
            entries = functions.find(self.op)
        except YamlSyntaxError as error:
            return self.failed(anchor, f"the entry cannot be read as YAML: {error.problem}", matches=[error.line])
        lines = tuple(entry.line for entry in entries)
        if len(entries) != 1:
            problem = f"{len(entries)} entries are called {self.op}, expected 1"
            known = functions.lines
            nearest = [f"{name} at line {known[name]}" for name in closest(self.op, known)]
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
        after = apply_splices(data, [self._splice(data, entry)])
        problem = self._verify(data, entry, after)
        if problem:
            return self.failed(anchor, problem, matches=matches)
        return Outcome(Status.APPLIES, anchor, matches, rung=self.rung(tree), after=after)

    def _splice(self, data: bytes, entry: FunctionEntry) -> Splice:
        text = f"{self.key}: {self.function}".encode()
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

    def _verify(self, data: bytes, before: FunctionEntry, after: bytes) -> str:
        """The entry as torchgen will read it has the new key and is otherwise what it was."""
        try:
            end = before.end + len(after) - len(data)
            found = NativeFunctions(after[before.start : end]).find(self.op)
        except YamlSyntaxError as error:
            return f"the entry would no longer be YAML: {error.problem}"
        old = [(line.keys, line.function) for line in before.dispatch]
        new = [(line.keys, line.function) for line in found[0].dispatch] if len(found) == 1 else []
        if new != [*old, ((self.key,), self.function)] or found[0].schema != before.schema:
            return "the entry would change in more than the new dispatch key"
        return ""
