"""Remove or add one entry of a Python list, tuple, set, dict or argument list."""

from __future__ import annotations

import ast
import dataclasses
from dataclasses import dataclass
from typing import ClassVar

from tree_sitter import Node

from patchstack.edits.model import Conflict, Merge, Outcome, Spot, Status
from patchstack.edits.python_anchor import describe_steps
from patchstack.edits.python_edit import PythonEdit
from patchstack.manifest.closest import closest
from patchstack.tree.git import Tree
from patchstack.tree.pieces import Piece
from patchstack.tree.python import PythonFile, container_in, parse_python, same_expression
from patchstack.tree.python_layout import Entry, addition, removal


@dataclass(frozen=True, kw_only=True)
class _PythonEntryEdit(PythonEdit):
    """What adding and removing have in common: the steps lead to a container; those to a call mean its arguments.

    Attributes:
        entry: source of the element, or of the key of a dict entry.
        value: source of the value of a dict entry; empty for the other containers.
    """

    entry: str
    value: str = ""

    def _located(self, tree: Tree) -> tuple[PythonFile, Node] | Outcome:
        located = super()._located(tree)
        if isinstance(located, Outcome):
            return located
        file, node = located
        container = container_in(node, self.steps[-1])
        if container is None:
            problem = f"'{describe_steps(self.steps)}' leads to a {node.type.replace('_', ' ')}, which has no entries"
            return self.failed(self.anchor, problem, matches=[file.line(node.start_byte)])
        return file, container

    def _matching(self, entries: list[Entry]) -> list[Entry]:
        return [entry for entry in entries if same_expression(entry.key, self.entry)]

    def _has_value(self, entry: Entry) -> bool:
        """Whether a dict entry has the value that the edit names; true where it names none."""
        return not self.value or same_expression(entry.text[len(entry.key) :].lstrip(" \t:"), self.value)

    def _text(self) -> str:
        return f"{self.entry}: {self.value}" if self.value else self.entry

    def _nearest(self, file: PythonFile, entries: list[Entry], wanted: str) -> list[Spot]:
        """The entries whose element or key looks most like ``wanted``."""
        known = {entry.key: entry for entry in entries}
        same = [entry.key for entry in entries if same_expression(entry.key, wanted)]
        nearest = [known[key] for key in dict.fromkeys([*same, *closest(wanted, known)])]
        return [Spot(" ".join(entry.text.split()), file.line(entry.start)) for entry in nearest]

    def _verify(self, before: PythonFile, old: Node, after: PythonFile, wanted: list[str]) -> str:
        """On the parsed result: the container has exactly the wanted entries, and nothing outside it moved."""
        hits = after.find(self.steps)
        found = container_in(hits[0], self.steps[-1]) if len(hits) == 1 else None
        if after.broken or found is None:
            return "the file would no longer be valid Python"
        if found.type != old.type:
            return f"the {old.type} would become a {found.type}"
        entries = [_normal_lines(entry.text) for entry in after.entries(found)]
        if entries != [_normal_lines(text) for text in wanted] or not _parses(found):
            return "more than the one entry would change"
        tail = len(before.data) - old.end_byte
        is_same = before.data[: old.start_byte] == after.data[: old.start_byte]
        if not is_same or before.data[old.end_byte :] != after.data[len(after.data) - tail :]:
            return "something outside the container would change"
        return ""


@dataclass(frozen=True, kw_only=True)
class RemovePythonEntry(_PythonEntryEdit):
    """Take one entry out, with its line where it has one for itself; of a dict, only while it has the value named.

    Attributes:
        with_comment: also take the comment lines directly above it.
    """

    kind: ClassVar[str] = "remove-python-entry"
    with_comment: bool = False

    def describe(self) -> str:
        return f"remove {' '.join(self._text().split())} from {describe_steps(self.steps)}"

    @property
    def anchor(self) -> str:
        return f"{self._text()} in {describe_steps(self.steps)}"

    def _planned(self, tree: Tree, file: PythonFile, place: Node) -> Outcome:
        entries = file.entries(place)
        matching = [entry for entry in self._matching(entries) if self._has_value(entry)]
        if not matching:
            return self._gone(tuple(self._nearest(file, entries, self.entry)))
        return self._without(tree, file, place, matching)

    def replace(self, tree: Tree) -> Outcome:
        """The entry goes whatever its value is."""
        planned, located = super().replace(tree), self._located(tree)
        if planned.status is not Status.SATISFIED or isinstance(located, Outcome):
            return planned
        file, container = located
        matching = self._matching(file.entries(container))
        if not matching:
            return planned
        replaced = tuple(_piece(self.path, file, entry) for entry in matching)
        return dataclasses.replace(self._without(tree, file, container, matching), replaced=replaced)

    def _without(self, tree: Tree, file: PythonFile, container: Node, matching: list[Entry]) -> Outcome:
        entries, anchor = file.entries(container), self.anchor
        lines = tuple(file.line(entry.start) for entry in matching)
        if len(matching) > 1:
            nearest = self._nearest(file, matching, self.entry)
            problem = f"{len(matching)} entries match '{anchor}', expected 1"
            return self.failed(anchor, problem, matches=lines, nearest=nearest)
        at = entries.index(matching[0])
        after = file.spliced(removal(file.brackets(container), at, with_comment=self.with_comment))
        wanted = [entry.text for entry in entries if entry != matching[0]]
        return self._made(tree, after, self._verify(file, container, after, wanted), *lines)

    def _gone(self, nearest: tuple[Spot, ...]) -> Outcome:
        """Nothing to remove: fine where the whole change is there already, and a conflict beside edits that are not."""
        anchor = self.anchor
        problem = f"no entry matches '{anchor}', expected 1"
        conflict = Conflict(self.path, anchor, problem, nearest=nearest)
        return Outcome(Status.SATISFIED, anchor, conflict=conflict, note="no such entry")


@dataclass(frozen=True, kw_only=True)
class AddPythonEntry(_PythonEntryEdit):
    """Add one entry, laid out as its neighbours are.

    Attributes:
        after: source of the element or key that it goes behind; empty for the end of the container.
        comment: text of a comment on its line, where the entry has a line for itself.
    """

    kind: ClassVar[str] = "add-python-entry"
    merges: ClassVar[tuple[Status, ...]] = (Status.CONFLICT,)
    after: str = ""
    comment: str = ""

    def describe(self) -> str:
        return f"add {' '.join(self._text().split())} to {describe_steps(self.steps)}"

    @property
    def anchor(self) -> str:
        return f"{f'after {self.after} in' if self.after else 'end of'} {describe_steps(self.steps)}"

    def replace(self, tree: Tree) -> Outcome:
        """An entry of that key and another value goes first."""
        planned, located = super().replace(tree), self._located(tree)
        if planned.status is not Status.DIFFERENT or isinstance(located, Outcome):
            return planned
        file, container = located
        entries = file.entries(container)
        (old,) = self._matching(entries)
        cleared = file.spliced(removal(file.brackets(container), entries.index(old)))
        outcome = self.plan(tree.with_files({self.path: cleared.data}))
        return dataclasses.replace(outcome, replaced=(_piece(self.path, file, old),))

    def merge_problem(self, merge: Merge) -> str:
        """The entry must end up once, in this very container, and everything else stay."""
        before, after = parse_python(merge.current), parse_python(merge.merged)
        hits, found = before.find(self.steps), after.find(self.steps)
        old = container_in(hits[0], self.steps[-1]) if len(hits) == 1 else None
        new = container_in(found[0], self.steps[-1]) if len(found) == 1 else None
        if old is None or new is None:
            return f"the text would merge, and nothing says that it is still in {describe_steps(self.steps)}"
        entries = [entry.text for entry in after.entries(new)]
        if sorted(entries) != sorted([self._text(), *(entry.text for entry in before.entries(old))]):
            return f"the text would merge, and the entry would not be in {describe_steps(self.steps)}"
        if len(self._matching(after.entries(new))) > 1:
            return "the text would merge, and the entry would be there twice"
        return self._verify(before, old, after, entries)

    def _planned(self, tree: Tree, file: PythonFile, place: Node) -> Outcome:
        anchor, line = self.anchor, file.line(place.start_byte)
        if (place.type == "dictionary") != bool(self.value):
            return self.failed(anchor, f"a {place.type} takes {'a' if not self.value else 'no'} value", matches=[line])
        entries = file.entries(place)
        present = self._already(file, entries, anchor)
        if present is not None:
            return present
        neighbours = [entry for entry in entries if same_expression(entry.key, self.after)]
        if self.after and len(neighbours) != 1:
            found = [file.line(entry.start) for entry in neighbours]
            nearest = self._nearest(file, entries, self.after)
            problem = f"{len(neighbours)} entries match {self.after}, expected 1"
            return self.failed(anchor, problem, matches=found, nearest=nearest)
        at = entries.index(neighbours[0]) if self.after else len(entries) - 1
        after = file.spliced(addition(file.brackets(place), self._text(), after=at, comment=self.comment))
        wanted = [entry.text for entry in entries]
        problem = self._verify(file, place, after, [*wanted[: at + 1], self._text(), *wanted[at + 1 :]])
        return self._made(tree, after, problem, file.line(neighbours[0].start) if self.after else line)

    def _already(self, file: PythonFile, entries: list[Entry], anchor: str) -> Outcome | None:
        matching = self._matching(entries)
        if not matching:
            return None
        lines = tuple(file.line(entry.start) for entry in matching)
        if len(matching) > 1:
            return self.failed(anchor, f"{len(matching)} entries are {self.entry} already, expected 0", matches=lines)
        if self._has_value(matching[0]):
            return Outcome(Status.SATISFIED, anchor, lines)
        return self.failed(anchor, "the key is there with another value", matches=lines, status=Status.DIFFERENT)


def _piece(path: str, file: PythonFile, entry: Entry) -> Piece:
    return Piece(path, "entry", " ".join(entry.key.split()), f"{entry.text}\n".encode(), file.line(entry.start))


def _parses(container: Node) -> bool:
    """Whether the container alone is Python: the grammar of the file lets ``f(a=1, 2)`` pass."""
    source = (container.text or b"").decode(errors="replace")
    try:
        ast.parse(f"_{source}" if container.type == "argument_list" else f"(\n{source}\n)", mode="eval")
    except (SyntaxError, ValueError):
        return False
    return True


def _normal_lines(source: str) -> str:
    """Source without the indentation of its further lines, which follow the first to where it lands."""
    return "\n".join(line.strip() for line in source.splitlines())
