"""File names for a cache that clones share: where a folder lies is no part of what is compiled.

A preprocessed source names its files by absolute paths: those of this package, of the tree, of the installed torch.
For the key of a build, and in what is kept with it, a name is the number of the folder it was found in and the rest of
its path. Another clone, or another environment, then finds the build, and its reports name the files of that clone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_MARKER = re.compile(r'^(# \d+ ")([^"]*)(?=")', re.MULTILINE)
_NUMBERED = re.compile(r"<(\d+)>/")


@dataclass(frozen=True)
class Places:
    """The folders that one source is compiled from.

    Attributes:
        folders: absolute, in an order that says what each is for.
    """

    folders: tuple[str, ...]

    @staticmethod
    def of(folders: Sequence[Path]) -> Places:
        """The folders, by their names."""
        return Places(tuple(str(folder) for folder in folders))

    def shared(self, name: str) -> str:
        """A file's name without the place of the innermost folder that has it; other names as they are."""
        above = [number for number, folder in enumerate(self.folders) if name.startswith(f"{folder}/")]
        if not above:
            return name
        number = max(above, key=lambda one: len(self.folders[one]))
        return f"<{number}>{name[len(self.folders[number]) :]}"

    def here(self, shared: str) -> str:
        """The name that :meth:`shared` made one of, as it is here."""
        found = _NUMBERED.match(shared)
        return f"{self.folders[int(found[1])]}/{shared[found.end() :]}" if found else shared

    def shared_text(self, preprocessed: str) -> str:
        """A preprocessed source with shared names in its line markers."""
        return _MARKER.sub(lambda marker: marker[1] + self.shared(marker[2]), preprocessed)
