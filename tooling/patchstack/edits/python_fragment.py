"""Place a fragment in a Python class or module: at its end, or behind one of its members."""

from __future__ import annotations

import dataclasses
import textwrap
from dataclasses import dataclass
from typing import ClassVar

from tree_sitter import Node

from patchstack.edits.model import Merge, Outcome, Spot, Status
from patchstack.edits.python_anchor import describe_steps
from patchstack.edits.python_edit import PythonEdit
from patchstack.edits.python_member import member_removal
from patchstack.edits.spacing import USUAL, Spacing
from patchstack.edits.structure import python_facts, structural_problem
from patchstack.manifest.closest import closest
from patchstack.manifest.overlay import Fragment
from patchstack.tree.git import Tree
from patchstack.tree.pieces import Piece, gathered
from patchstack.tree.python import Member, PythonFile, parse_python
from patchstack.tree.text import Splice, find_lines, line_end, line_start


@dataclass(frozen=True, kw_only=True)
class PlacePythonFragment(PythonEdit):
    """Add members to a class, to which the steps lead, or to the module where there are none.

    Attributes:
        fragment: the members, indented as they land.
        spacing: the blank lines around them.
        after: the member behind which they stand; empty for the end.
    """

    kind: ClassVar[str] = "place-fragment"
    merges: ClassVar[tuple[Status, ...]] = (Status.CONFLICT,)
    fragment: Fragment
    spacing: Spacing = USUAL
    after: str = ""

    def describe(self) -> str:
        where = f"after {self.after} in" if self.after else "at the end of"
        return f"add '{self.fragment.name}' {where} {describe_steps(self.steps) or 'the module'}"

    @property
    def anchor(self) -> str:
        return f"{f'after {self.after} in' if self.after else 'end of'} {describe_steps(self.steps) or 'the module'}"

    def _planned(self, tree: Tree, file: PythonFile, place: Node) -> Outcome:
        known = {member.name: file.line(member.start) for member in file.members(place)}
        lines = [file.line(member.start) for member in file.members(place) if member.name == self.after]
        already = self._already(file, place)
        if already is None and self.after and len(lines) != 1:
            problem = f"{len(lines)} members match '{self.anchor}', expected 1"
            nearest = [Spot(name, known[name]) for name in closest(self.after, known)]
            return self.failed(self.anchor, problem, matches=lines, nearest=nearest)
        return already or self._appended(tree, file, place)

    def _appended(self, tree: Tree, file: PythonFile, node: Node) -> Outcome:
        after = file.spliced([self._splice(file, node)])
        return self._made(tree, after, self._verify(file, after), file.line(node.start_byte))

    def replace(self, tree: Tree) -> Outcome:
        """Members of the fragment's names go; ours stand at the end of the class, where the others are not missed."""
        planned = super().replace(tree)
        if planned.status is not Status.DIFFERENT:
            return planned
        file = parse_python(tree.read(self.path) or b"")
        (node,) = file.find(self.steps)
        gone = [member for member in file.members(node) if member.name in self._members()]
        if len(gone) == len(file.members(node)):
            return planned  # without a member, the class would be no Python
        cleared = file.spliced([member_removal(file.data, member) for member in gone])
        kept = [member.name for member in file.members(node) if member not in gone]
        hits = cleared.find(self.steps)
        if cleared.broken or len(hits) != 1 or [member.name for member in cleared.members(hits[0])] != kept:
            return planned
        replaced = gathered(_piece(self.path, file, member, in_a_tree=True) for member in gone)
        return dataclasses.replace(self._appended(tree, cleared, hits[0]), replaced=replaced)

    @property
    def result(self) -> tuple[str, ...]:
        return (self.path, "text", self.fragment.text.decode(errors="replace"))

    def introduces(self) -> tuple[Piece, ...]:
        own = PythonFile(textwrap.dedent(self.fragment.text.decode()).encode())
        return gathered(_piece(self.path, own, member, in_a_tree=False) for member in own.members(own.root))

    def counterparts(self, tree: Tree) -> tuple[Piece, ...]:
        file = parse_python(tree.read(self.path) or b"")
        hits = file.find(self.steps)
        return gathered(_piece(self.path, file, m, in_a_tree=True) for node in hits for m in file.members(node))

    def merge_problem(self, merge: Merge) -> str:
        files = [parse_python(data) for data in (merge.base, merge.edited, merge.current, merge.merged)]
        merged = files[-1]
        if merged.broken:
            return "the file would no longer be valid Python"
        problem = structural_problem(*map(python_facts, files))
        if problem or find_lines(merged.data, self.fragment.text) is not None:
            return problem
        return "the text would merge, and the fragment would not be whole in it"

    def _members(self) -> list[str]:
        own = PythonFile(textwrap.dedent(self.fragment.text.decode()).encode())
        return [member.name for member in own.members(own.root)]

    def _already(self, file: PythonFile, node: Node) -> Outcome | None:
        end = file.class_end(node) if self.steps else len(file.data)
        at = find_lines(file.data, self.fragment.text, node.start_byte, end)
        here = {member.name: file.line(member.start) for member in file.members(node)}
        clashes = [name for name in self._members() if name in here]
        if at is not None and clashes == self._members():
            return Outcome(Status.SATISFIED, self.anchor, (file.line(at),))
        if clashes:
            problem = f"the class already has {', '.join(clashes)}, and not as the fragment does"
            lines = [here[name] for name in clashes]
            return self.failed(self.anchor, problem, matches=lines, status=Status.DIFFERENT)
        return None

    def _splice(self, file: PythonFile, node: Node) -> Splice:
        if not self.after:
            return self.spacing.splice(file.data, file.class_end(node), self.fragment.text, (1, 0))
        (above,) = (member for member in file.members(node) if member.name == self.after)
        blanks = 1 if self.steps else 2
        return self.spacing.splice(file.data, line_end(file.data, above.end - 1), self.fragment.text, (blanks, blanks))

    def _verify(self, before: PythonFile, file: PythonFile) -> str:
        """On the parsed result: the class has its old members and then the new ones, and nothing else moved."""
        hits, old = file.find(self.steps), before.find(self.steps)
        if file.broken or len(hits) != 1:
            return "the file would no longer be valid Python"
        wanted = [member.name for member in before.members(old[0])]
        at = wanted.index(self.after) + 1 if self.after else len(wanted)
        wanted[at:at] = self._members()
        if [member.name for member in file.members(hits[0])] != wanted:
            return "the fragment would not end up as members of the class"
        if self.steps and [member.name for member in file.members(file.root)] != [
            m.name for m in before.members(before.root)
        ]:
            return "the fragment would change the module around the class"
        return ""


def _piece(path: str, file: PythonFile, member: Member, *, in_a_tree: bool) -> Piece:
    """A member as a piece, indented as at the top of a file."""
    text = file.data[line_start(file.data, member.start) : line_end(file.data, member.end - 1)].decode(errors="replace")
    return Piece(
        path, "member", member.name, textwrap.dedent(text).encode(), file.line(member.start) if in_a_tree else 0
    )
