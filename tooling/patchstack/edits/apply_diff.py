"""Apply hunks of a diff, for what no structure fits: documentation, build files, the middle of a function.

The lines of a hunk, context included, must stand in the file exactly once. Where they do not, there is the three-way
merge from the blob that the hunks were taken from, and below that a conflict: no fuzz, no offset that is guessed.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

from patchstack.edits.cxx_edit import CXX_SUFFIXES
from patchstack.edits.model import Edit, Merge, Outcome, Rung, Spot, Status
from patchstack.edits.structure import cxx_facts, python_facts, structural_problem
from patchstack.tree.cxx import parse_cxx
from patchstack.tree.git import Tree
from patchstack.tree.hunks import Hunk, split_lines
from patchstack.tree.python import parse_python
from patchstack.tree.text import apply_splices, find_lines, line_number


@dataclass(frozen=True, kw_only=True)
class ApplyDiff(Edit):
    """Replace lines, each run of them where it stands exactly once.

    Attributes:
        hunks: what is replaced; they do not overlap.
        others: further hunks that do the same to other trees; the first that apply, or are there already, are taken.
    """

    kind: ClassVar[str] = "apply-diff"
    merges: ClassVar[tuple[Status, ...]] = (Status.CONFLICT, Status.DIFFERENT)
    hunks: tuple[Hunk, ...]
    others: tuple[tuple[Hunk, ...], ...] = ()

    def describe(self) -> str:
        return f"apply {_counted(len(self.hunks))}"

    @property
    def _anchor(self) -> str:
        return f"the lines of {_counted(len(self.hunks))}"

    def plan(self, tree: Tree) -> Outcome:
        data = tree.read(self.path)
        if data is None:
            return self.missing_file(tree)
        own = self._planned(tree, data)
        found = [own, *(dataclasses.replace(self, hunks=one, others=())._planned(tree, data) for one in self.others)]
        return next((one for one in found if one.conflict is None), own)

    def _planned(self, tree: Tree, data: bytes) -> Outcome:
        there = [hunk.is_there(data) for hunk in self.hunks]
        if all(there):
            return Outcome(Status.SATISFIED, self._anchor)
        if any(there):
            known = ", ".join(str(number) for number, is_there in enumerate(there, 1) if is_there)
            problem = f"of {len(there)} hunks only some are there already: {known}"
            return self.failed(self._anchor, problem, status=Status.DIFFERENT)
        return self._applied(tree, data)

    def _applied(self, tree: Tree, data: bytes) -> Outcome:
        splices, lines = [], []
        for number, hunk in enumerate(self.hunks, 1):
            places = hunk.places(data)
            if len(places) != 1:
                problem = f"the lines of hunk {number} of {len(self.hunks)} stand at {len(places)} places, expected 1"
                matches = [line_number(data, at) for at in places]
                return self.failed(self._anchor, problem, matches=matches, nearest=_nearest(data, hunk))
            splices.append(hunk.splice(places[0]))
            lines.append(line_number(data, places[0]))
        try:
            after = apply_splices(data, splices)
        except ValueError:
            return self.failed(self._anchor, "two hunks would change the same lines", matches=lines)
        rung = Rung.EXACT if self.rung(tree) is Rung.EXACT else Rung.CONTEXT
        return Outcome(Status.APPLIES, self._anchor, tuple(lines), rung=rung, after=after)

    def merge_problem(self, merge: Merge) -> str:
        texts = (merge.base, merge.edited, merge.current, merge.merged)
        if self.path.endswith(CXX_SUFFIXES):
            return structural_problem(*(cxx_facts(parse_cxx(text)) for text in texts))
        if self.path.endswith(".py"):
            files = [parse_python(text) for text in texts]
            if files[-1].broken and not files[2].broken:
                return "the file would no longer be valid Python"
            return structural_problem(*map(python_facts, files))
        return ""


def _counted(count: int) -> str:
    return f"{count} hunk{'s' if count > 1 else ''}"


def _nearest(data: bytes, hunk: Hunk) -> list[Spot]:
    """The longest line of a hunk that the file has, which is where a person would look."""
    for line in sorted({line.strip() for line in split_lines(hunk.old)}, key=lambda line: (-len(line), line)):
        whole = next((one for one in split_lines(hunk.old) if one.strip() == line), b"")
        at = find_lines(data, whole) if line else None
        if at is not None:
            return [Spot(line.decode(errors="replace"), line_number(data, at))]
    return []
