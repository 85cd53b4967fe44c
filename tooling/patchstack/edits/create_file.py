"""Create a file that the tree does not have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from patchstack.edits.model import Edit, Outcome, Rung, Status
from patchstack.git import Tree


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
