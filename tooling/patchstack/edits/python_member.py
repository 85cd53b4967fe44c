"""Remove one member of a Python class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tree_sitter import Node

from patchstack.edits.model import Conflict, Outcome, Spot, Status
from patchstack.edits.python_anchor import describe_steps
from patchstack.edits.python_edit import PythonEdit
from patchstack.manifest.closest import closest
from patchstack.tree.git import Tree
from patchstack.tree.python import Member, PythonFile
from patchstack.tree.text import Splice, line_end, line_start


@dataclass(frozen=True, kw_only=True)
class RemoveClassMember(PythonEdit):
    """Take a method, a nested class or a variable out of a class, decorators and one run of blank lines included.

    Attributes:
        member: name of the member.
    """

    kind: ClassVar[str] = "remove-class-member"
    member: str

    def describe(self) -> str:
        return f"remove {self.member} from {describe_steps(self.steps)}"

    @property
    def anchor(self) -> str:
        return f"{self.member} in {describe_steps(self.steps)}"

    def _planned(self, tree: Tree, file: PythonFile, place: Node) -> Outcome:
        members = file.members(place)
        matching = [member for member in members if member.name == self.member]
        if len(matching) != 1:
            return self._not_one(file, members, matching, self.anchor)
        after = file.spliced([member_removal(file.data, matching[0])])
        return self._made(tree, after, self._verify(file, place, after), file.line(matching[0].start))

    def _not_one(self, file: PythonFile, members: list[Member], matching: list[Member], anchor: str) -> Outcome:
        known = {member.name: file.line(member.start) for member in members}
        nearest = tuple(Spot(name, known[name]) for name in closest(self.member, known))
        problem = f"{len(matching)} members match '{anchor}', expected 1"
        if matching:
            lines = [file.line(member.start) for member in matching]
            return self.failed(anchor, problem, matches=lines, nearest=nearest)
        conflict = Conflict(self.path, anchor, problem, nearest=nearest)
        return Outcome(Status.SATISFIED, anchor, conflict=conflict, note="no such member")

    def _verify(self, before: PythonFile, old: Node, after: PythonFile) -> str:
        hits = after.find(self.steps)
        if after.broken or len(hits) != 1:
            return "the file would no longer be valid Python"
        wanted = [member.name for member in before.members(old) if member.name != self.member]
        if not wanted or [member.name for member in after.members(hits[0])] != wanted:
            return "the class would lose more than the one member, or have none left"
        return ""


def member_removal(data: bytes, member: Member) -> Splice:
    """The member's lines and the blank lines behind it; those before it where it is the last of its block."""
    start, end = line_start(data, member.start), line_end(data, member.end - 1)
    behind = end
    while behind < len(data) and not data[behind : line_end(data, behind)].strip():
        behind = line_end(data, behind)
    depth = member.start - start
    goes_on = len(data[behind : line_end(data, behind)]) - len(data[behind : line_end(data, behind)].lstrip(b" \t"))
    if behind < len(data) and goes_on == depth:
        return Splice(start, behind, b"")
    while start and not data[line_start(data, start - 1) : start].strip():
        start = line_start(data, start - 1)
    return Splice(start, end, b"")
