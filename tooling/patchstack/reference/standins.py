"""The stand-ins: files of this project's own making for places that a release's packages do not reach.

They live in ``standins/<tree>/<path in the tree>`` next to this module and travel with it as package data. What is the
same for all of these trees, the settings of the linters, is in ``standins/settings``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from patchstack.reference.model import ReferenceSpec, SourceFile
from patchstack.tree.git.model import MODE_FILE

STAND_INS = Path(__file__).with_name("standins")
_SETTINGS = "settings"  # of the linters, the same for every tree that has stand-ins
_NOT_STAND_INS = ("__pycache__", ".DS_Store")

# When upstream's files had the structure of the stand-ins of a tree. That of 2.11 landed just after the release.
_STRUCTURE_OF = {"2.11": "April 2026", "2.13": "July 2026"}


def stand_ins_of(name: str, folder: Path = STAND_INS) -> tuple[SourceFile, ...]:
    """The stand-ins of one tree, sorted by path; empty when it needs none."""
    own = _files_below(folder / name)
    return tuple(sorted([*own, *_files_below(folder / _SETTINGS)], key=lambda file: file.path)) if own else ()


def _files_below(root: Path) -> list[SourceFile]:
    places = [p for p in root.rglob("*") if p.is_file() and not set(p.parts) & set(_NOT_STAND_INS)]
    return [SourceFile(p.relative_to(root).as_posix(), p.read_bytes(), MODE_FILE) for p in places]


def digest(stand_ins: Sequence[SourceFile]) -> str:
    """SHA-256 over names and contents; a cached tree is rebuilt when it changes."""
    total = hashlib.sha256()
    for file in stand_ins:
        total.update(f"{file.path}\0{len(file.data)}\0".encode())
        total.update(file.data)
    return total.hexdigest()


def commit_message(spec: ReferenceSpec, stand_ins: Sequence[SourceFile]) -> str:
    """What the second commit says: which files are not PyTorch's."""
    listed = "\n".join(f"  {file.path}" for file in stand_ins)
    month = _STRUCTURE_OF.get(spec.stand_ins_of or spec.name, f"{spec.released:%B %Y}")
    return (
        f"Stand-ins for files that the packages of PyTorch {spec.version} do not carry\n\n"
        "NOT PyTorch's text. The files below are this project's own making, with the structure (names,\n"
        f"namespaces, order of definitions) that upstream's files had in {month}, so that a series which edits\n"
        "those files has something to edit:\n\n"
        f"{listed}\n\n"
        "Everything else in this tree is the release's own and came with the first commit.\n"
    )
