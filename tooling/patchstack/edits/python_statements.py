"""Replace neighbouring statements in a function, a class or a module of Python, if they are what the series knows."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from tree_sitter import Node

from patchstack.edits.model import Outcome, Status
from patchstack.edits.python_anchor import describe_steps
from patchstack.edits.python_replace import ReplacePythonDefinition
from patchstack.tree.git import Tree
from patchstack.tree.python import PythonFile, parse_python
from patchstack.tree.text import Splice, digest, line_end, line_ending, line_start, with_line_ending

_BODIES = ("block", "module")


@dataclass(frozen=True, kw_only=True)
class ReplacePythonStatements(ReplacePythonDefinition):
    """Put a fragment where some statements stand one behind the other, the comment lines above them included.

    Attributes:
        statements: how many statements go.
    """

    kind: ClassVar[str] = "replace-statements"
    merges: ClassVar[tuple[Status, ...]] = (Status.CONFLICT,)
    statements: int

    def describe(self) -> str:
        where = f"of {describe_steps(self.steps)}" if self.steps else "of the module"
        return f"replace {self.statements} statement{'s' if self.statements > 1 else ''} {where}"

    @property
    def anchor(self) -> str:
        return f"statements of {describe_steps(self.steps) or 'the module'}"

    def _planned(self, tree: Tree, file: PythonFile, place: Node) -> Outcome:
        hits = [run for run in runs(file, place, self.statements) if digest(file.data[slice(*run)]) in self.replaces]
        new = with_line_ending(self.fragment.text, line_ending(file.data))
        there = self._already(file, place, new)
        if there is not None and all(there[0] <= start and end <= there[1] for start, end in hits):
            return Outcome(Status.SATISFIED, self.anchor, (file.line(there[0]),))
        lines = [file.line(start) for start, _ in hits]
        if len(hits) != 1:
            problem = f"{len(hits)} runs of statements there are what the series knows, expected 1"
            return self.failed(self.anchor, problem, matches=lines)
        (start, end) = hits[0]
        text = new if file.data[start:end].endswith(b"\n") else new.rstrip(b"\r\n")
        after = file.spliced([Splice(start, end, text)])
        return self._made(tree, after, self._verify(file, after), *lines)

    def _already(self, file: PythonFile, place: Node, text: bytes) -> tuple[int, int] | None:
        own = parse_python(textwrap.dedent(text.decode(errors="replace")).encode())
        count = len(_statements(own.root))
        found = runs(file, place, count) if count and not own.broken else iter(())
        return next((run for run in found if file.data[slice(*run)] == text), None)

    def _verify(self, before: PythonFile, after: PythonFile) -> str:
        if after.broken or len(after.find(self.steps)) != 1:
            return "the file would no longer be valid Python, or lack the place"
        return "" if not self.steps else super()._verify(before, after)


def runs(file: PythonFile, place: Node, count: int) -> Iterator[tuple[int, int]]:
    """Offsets of every run of ``count`` neighbouring statements below a node that has its lines to itself."""
    waiting = [place]
    while waiting:
        node = waiting.pop()
        waiting += node.named_children
        if node.type not in _BODIES:
            continue
        listed = _statements(node)
        for first, last in zip(listed, listed[count - 1 :], strict=False):
            yield from lines_of(file, first, last)


def lines_of(file: PythonFile, first: Node, last: Node) -> Iterator[tuple[int, int]]:
    """The lines from one statement to another, the comment lines above included; nothing where others share them."""
    start, end = line_start(file.data, first.start_byte), line_end(file.data, last.end_byte - 1)
    behind = file.data[last.end_byte : end].strip()
    if not file.data[start : first.start_byte].strip() and (not behind or behind.startswith(b"#")):
        above = first.prev_sibling
        while above is not None and above.type == "comment" and line_end(file.data, above.end_byte - 1) == start:
            begin = line_start(file.data, above.start_byte)
            if file.data[begin : above.start_byte].strip():
                break
            start, above = begin, above.prev_sibling
        yield start, end


def _statements(node: Node) -> list[Node]:
    return [child for child in node.named_children if child.type != "comment"]
