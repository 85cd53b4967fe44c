"""Replace a function or method of a Python file, if it is one that the series knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tree_sitter import Node

from patchstack.edits.model import Merge, Outcome, Status
from patchstack.edits.python_anchor import describe_steps
from patchstack.edits.python_edit import PythonEdit
from patchstack.edits.structure import python_facts, structural_problem
from patchstack.manifest.overlay import Fragment
from patchstack.tree.git import Tree
from patchstack.tree.python import PythonFile, parse_python
from patchstack.tree.text import Splice, digest, line_end, line_ending, line_start, with_line_ending


@dataclass(frozen=True, kw_only=True)
class ReplacePythonDefinition(PythonEdit):
    """Put a fragment where a function stands, with its decorators; one that upstream changed meanwhile is a conflict.

    Attributes:
        fragment: the function, indented as it lands.
        replaces: digests (:func:`patchstack.tree.text.digest`) of the texts that may be replaced.
    """

    kind: ClassVar[str] = "replace-definition"
    merges: ClassVar[tuple[Status, ...]] = (Status.CONFLICT, Status.DIFFERENT)
    fragment: Fragment
    replaces: tuple[str, ...]

    def describe(self) -> str:
        return f"replace {describe_steps(self.steps)}"

    @property
    def anchor(self) -> str:
        return f"definition {describe_steps(self.steps)}"

    def _planned(self, tree: Tree, file: PythonFile, place: Node) -> Outcome:
        start, end = definition_span(file.data, place)
        old, line = file.data[start:end], file.line(start)
        new = with_line_ending(self.fragment.text, line_ending(file.data))
        if old == new:
            return Outcome(Status.SATISFIED, self.anchor, (line,))
        if digest(old) not in self.replaces:
            problem = f"{self.steps[-1].name} is not a version the series knows (its digest is {digest(old)})"
            return self.failed(self.anchor, problem, matches=[line], status=Status.DIFFERENT)
        after = file.spliced([Splice(start, end, new if old.endswith(b"\n") else new.rstrip(b"\r\n"))])
        return self._made(tree, after, self._verify(file, after), line)

    def _verify(self, before: PythonFile, after: PythonFile) -> str:
        if after.broken or len(after.find(self.steps)) != 1:
            return "the file would no longer be valid Python, or lack the definition"
        outside = [[fact for fact in python_facts(file) if not self._is_inside(fact.scope)] for file in (before, after)]
        return "" if outside[0] == outside[1] else "the replacement would change what is around it"

    def _is_inside(self, scope: str) -> bool:
        own = ".".join(step.name for step in self.steps)
        return scope == own or scope.startswith(f"{own}.")

    def merge_problem(self, merge: Merge) -> str:
        files = [parse_python(data) for data in (merge.base, merge.edited, merge.current, merge.merged)]
        if files[-1].broken:
            return "the file would no longer be valid Python"
        return structural_problem(*map(python_facts, files))


def definition_span(data: bytes, function: Node) -> tuple[int, int]:
    """Where the lines of a function stand, its decorators included."""
    parent = function.parent
    whole = parent if parent is not None and parent.type == "decorated_definition" else function
    return line_start(data, whole.start_byte), line_end(data, whole.end_byte - 1)
