"""Create a file that the tree does not have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from patchstack.edits.cxx_edit import CXX_SUFFIXES, cxx_pieces
from patchstack.edits.model import Edit, Outcome, Rung, Status
from patchstack.tree.cxx import parse_cxx
from patchstack.tree.git import Tree
from patchstack.tree.pieces import Piece


@dataclass(frozen=True, kw_only=True)
class CreateFile(Edit):
    """The file lands as the overlay has it, byte for byte.

    Attributes:
        content: the whole file.
    """

    kind: ClassVar[str] = "create-file"
    content: bytes

    def describe(self) -> str:
        return "create the file"

    def plan(self, tree: Tree) -> Outcome:
        anchor = f"no file {self.path}"
        folder = self.path.rpartition("/")[0]
        while folder:
            entry = tree.entry(folder)
            if entry is not None and not entry.is_directory:
                return self.failed(anchor, f"{folder} is in the way: it is not a folder")
            folder = folder.rpartition("/")[0]
        if not tree.exists(self.path):
            return Outcome(Status.APPLIES, anchor, rung=Rung.NEW_FILE, after=self.content)
        entry = tree.entry(self.path)
        if entry is not None and not entry.is_file:
            return self.failed(anchor, "something that is not a regular file is in the way", status=Status.DIFFERENT)
        if tree.read(self.path) == self.content:
            return Outcome(Status.SATISFIED, anchor)
        return self.failed(anchor, "the file exists with another content", status=Status.DIFFERENT)

    def replace(self, tree: Tree) -> Outcome:
        planned = self.plan(tree)
        entry = tree.entry(self.path)
        if planned.status is not Status.DIFFERENT or (entry is not None and not entry.is_file):
            return planned
        gone = Piece(self.path, "file", self.path.rpartition("/")[2], tree.read(self.path) or b"", 1)
        return Outcome(Status.APPLIES, planned.anchor, rung=self.rung(tree), after=self.content, replaced=(gone,))

    def introduces(self) -> tuple[Piece, ...]:
        return self._pieces(self.content, in_a_tree=False)

    def counterparts(self, tree: Tree) -> tuple[Piece, ...]:
        entry = tree.entry(self.path)
        is_file = self.path in tree.replaced or (entry is not None and entry.is_file)
        return self._pieces(tree.read(self.path) or b"", in_a_tree=True) if is_file else ()

    def _pieces(self, content: bytes, *, in_a_tree: bool) -> tuple[Piece, ...]:
        if self.path.endswith(CXX_SUFFIXES):
            return cxx_pieces(parse_cxx(content), self.path, in_a_tree=in_a_tree)
        return (Piece(self.path, "file", self.path.rpartition("/")[2], content, int(in_a_tree)),)
