"""The note inside a finished tree's git directory that says what it is.

It is written before the tree is renamed into place, so a tree that has it is complete.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from patchstack.reference.model import ReferenceTree
from patchstack.tree.git.model import GitCommitHash

_NAME = "patchstack-reference.json"


def write_stamp(root: Path, key: str, tree: ReferenceTree) -> None:
    """Leave the note in the repository at ``root``."""
    facts = {
        "key": key,
        "name": tree.name,
        "version": tree.version,
        "commit": tree.commit,
        "release_commit": tree.release_commit,
        "stand_ins": tree.stand_ins,
        "notes": tree.notes,
    }
    (root / ".git" / _NAME).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


def read_stamp(root: Path, key: str) -> ReferenceTree | None:
    """The tree that the note describes, or None without a note for that key. Marks the tree as used now."""
    try:
        facts = json.loads((root / ".git" / _NAME).read_text(encoding="utf-8"))
        if facts["key"] != key:
            return None
        os.utime(root)
        return ReferenceTree(
            name=facts["name"],
            version=facts["version"],
            path=root,
            commit=GitCommitHash(facts["commit"]),
            release_commit=GitCommitHash(facts["release_commit"]),
            stand_ins=tuple(facts["stand_ins"]),
            notes=tuple(facts["notes"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
