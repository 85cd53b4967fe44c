"""What the edits of Python files have in common: read the file, parse it, follow the steps to one place."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from tree_sitter import Node

from patchstack.edits.model import Edit, Outcome, Status
from patchstack.edits.python_anchor import describe_steps, nearest_step
from patchstack.tree.git import Tree
from patchstack.tree.python import PythonFile, Step, parse_python


@dataclass(frozen=True, kw_only=True)
class PythonEdit(Edit):
    """An edit of one place in a Python file.

    Attributes:
        steps: the way to the place.
    """

    steps: tuple[Step, ...]

    @property
    @abstractmethod
    def anchor(self) -> str:
        """What is looked for, in words."""

    @abstractmethod
    def _planned(self, tree: Tree, file: PythonFile, place: Node) -> Outcome:
        """The outcome where the steps lead to one place."""

    def plan(self, tree: Tree) -> Outcome:
        located = self._located(tree)
        return located if isinstance(located, Outcome) else self._planned(tree, *located)

    def _located(self, tree: Tree) -> tuple[PythonFile, Node] | Outcome:
        """The file and the place, or the outcome where there is no such file, or not one such place."""
        data = tree.read(self.path)
        if data is None:
            return self.missing_file(tree)
        file = parse_python(data)
        if file.broken:
            return self.failed(self.anchor, "the file is not valid Python")
        hits = file.find(self.steps)
        if len(hits) != 1:
            lines = [file.line(node.start_byte) for node in hits]
            problem = f"{len(hits)} places match '{describe_steps(self.steps)}', expected 1"
            return self.failed(self.anchor, problem, matches=lines, nearest=nearest_step(file, self.steps))
        return file, hits[0]

    def _made(self, tree: Tree, after: PythonFile, problem: str, *lines: int) -> Outcome:
        """The outcome of an edit that gives ``after``, unless checking that found a problem.

        Args:
            lines: the lines of what the anchor matched.
        """
        if problem:
            return self.failed(self.anchor, problem, matches=lines)
        return Outcome(Status.APPLIES, self.anchor, lines, rung=self.rung(tree), after=after.data)
