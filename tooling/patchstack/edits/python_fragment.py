"""Place a fragment at the end of a Python class."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import ClassVar

from tree_sitter import Node

from patchstack.edits.model import Edit, Outcome, Status
from patchstack.edits.python_anchor import describe_steps, nearest_step
from patchstack.git import Tree
from patchstack.manifest.overlay import Fragment
from patchstack.source.python import PythonFile, Step, parse_python
from patchstack.source.text import Splice, find_lines, line_ending, with_line_ending


@dataclass(frozen=True, kw_only=True)
class PlacePythonFragment(Edit):
    """Add members at the end of a class.

    Attributes:
        fragment: the members, indented as they land.
        steps: the way to the class.
    """

    kind: ClassVar[str] = "place-fragment"
    fragment: Fragment
    steps: tuple[Step, ...]

    def describe(self) -> str:
        return f"add '{self.fragment.name}' at the end of {describe_steps(self.steps)}"

    def plan(self, tree: Tree) -> Outcome:
        data = tree.read(self.path)
        if data is None:
            return self.missing_file(tree)
        file = parse_python(data)
        anchor = f"end of {describe_steps(self.steps)}"
        hits = file.find(self.steps)
        lines = tuple(file.line(hit.start_byte) for hit in hits)
        if file.broken:
            return self.failed(anchor, "the file is not valid Python", matches=lines)
        if len(hits) != 1:
            problem = f"{len(hits)} places match '{anchor}', expected 1"
            return self.failed(anchor, problem, matches=lines, nearest=nearest_step(file, self.steps))
        present = self._already(file, hits[0], anchor)
        if present is not None:
            return present
        after = file.spliced([self._splice(file, hits[0])])
        problem = self._verify(file, after)
        if problem:
            return self.failed(anchor, problem, matches=lines)
        return Outcome(Status.APPLIES, anchor, lines, rung=self.rung(tree), after=after.data)

    def _members(self) -> list[str]:
        own = PythonFile(textwrap.dedent(self.fragment.text.decode()).encode())
        return [member.name for member in own.members(own.root)]

    def _already(self, file: PythonFile, node: Node, anchor: str) -> Outcome | None:
        at = find_lines(file.data, self.fragment.text, node.start_byte, file.class_end(node))
        here = {member.name: file.line(member.start) for member in file.members(node)}
        clashes = [name for name in self._members() if name in here]
        if at is not None and clashes == self._members():
            return Outcome(Status.SATISFIED, anchor, (file.line(at),))
        if clashes:
            problem = f"the class already has {', '.join(clashes)}, and not as the fragment does"
            lines = [here[name] for name in clashes]
            return self.failed(anchor, problem, matches=lines, status=Status.DIFFERENT)
        return None

    def _splice(self, file: PythonFile, node: Node) -> Splice:
        ending = line_ending(file.data)
        at = file.class_end(node)
        text = ending + with_line_ending(self.fragment.text, ending)
        if not file.data[:at].endswith(b"\n"):
            text = ending + text
        return Splice(at, at, text)

    def _verify(self, before: PythonFile, file: PythonFile) -> str:
        """On the parsed result: the class has its old members and then the new ones, and nothing else moved."""
        hits, old = file.find(self.steps), before.find(self.steps)
        if file.broken or len(hits) != 1:
            return "the file would no longer be valid Python"
        wanted = [member.name for member in before.members(old[0])] + self._members()
        if [member.name for member in file.members(hits[0])] != wanted:
            return "the fragment would not end up as members of the class"
        if [member.name for member in file.members(file.root)] != [m.name for m in before.members(before.root)]:
            return "the fragment would change the module around the class"
        return ""
