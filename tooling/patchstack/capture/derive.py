"""What a manifest says beside the edits, as far as commits tell: ids, upstream markers, requirements, needs."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Iterator, Sequence

from patchstack.edits import Edit
from patchstack.edits.create_file import CreateFile
from patchstack.edits.cxx_edit import CXX_SUFFIXES, CxxEdit
from patchstack.edits.dispatch_key import AddDispatchKey
from patchstack.edits.python_fragment import PlacePythonFragment
from patchstack.edits.regenerate import RegenerateShim
from patchstack.planning import plan_stack
from patchstack.planning.memo import Memory
from patchstack.planning.upstream import marker_holds
from patchstack.series import Requirement, Series, UpstreamMarker
from patchstack.tree.cxx import parse_cxx
from patchstack.tree.git import GitCommitHash, Repository, Tree
from patchstack.tree.native_functions import FUNCTIONS_PATH

_TAG = re.compile(r"\[[^\]]*\]")
_MOST_LETTERS = 50
_OFTEN_MISSING = re.compile(r"metal|/mps/")


def identity_of(title: str, edits: Sequence[Edit], taken: Collection[str], name: str = "") -> str:
    """An id for a change: the name asked for, the op that it gives a dispatch key, or the words of its title."""
    ops = [edit.op for edit in edits if isinstance(edit, AddDispatchKey)]
    words = textwrap.shorten(
        " ".join(re.findall("[a-z0-9]+", _TAG.sub("", title).lower())), _MOST_LETTERS, placeholder=""
    )
    words = words.replace(" ", "_")
    wanted = name or (ops[0].lower().strip("_") if ops else words) or "change"
    number, identity = 1, wanted
    while identity in taken:
        number += 1
        identity = f"{wanted}_{number}"
    return identity


def ops_of(edits: Sequence[Edit]) -> list[str]:
    """The ops that get a dispatch key."""
    return list(dict.fromkeys(edit.op for edit in edits if isinstance(edit, AddDispatchKey)))


def markers_of(edits: Sequence[Edit], below: Tree, after: Tree) -> list[UpstreamMarker]:
    """Signs of the change that the tree with it has, and the tree below it has not."""
    strong = [m for edit in edits for m in _strong(edit)]
    weak = [m for edit in edits for m in _weak(edit)]
    found = [m for m in strong if marker_holds(m, after) and not marker_holds(m, below)]
    return found or [m for m in weak if marker_holds(m, after) and not marker_holds(m, below)][:1]


def _strong(edit: Edit) -> Iterator[UpstreamMarker]:
    if isinstance(edit, AddDispatchKey):
        yield UpstreamMarker("dispatch", FUNCTIONS_PATH, edit.op, edit.key)
    if isinstance(edit, RegenerateShim):
        yield from (UpstreamMarker("declares", edit.path, name) for name in edit.adds)


def _weak(edit: Edit) -> Iterator[UpstreamMarker]:
    if isinstance(edit, (CxxEdit, CreateFile, PlacePythonFragment)):
        for piece in edit.introduces():
            if piece.kind != "registration":
                yield UpstreamMarker("defines", edit.path, piece.name)


def requirements_of(edits: Sequence[Edit], tree: Tree) -> list[Requirement]:
    """The Metal headers of the tree that the new text includes; other headers are in every tree."""
    found: dict[str, Requirement] = {}
    for edit in edits:
        text = edit.fragment.text if isinstance(edit, CxxEdit) else b""
        if isinstance(edit, CreateFile) and edit.path.endswith(CXX_SUFFIXES):
            text = edit.content
        for include in parse_cxx(text).includes if text else ():
            path = next((p for p in (f"aten/src/{include.path}", include.path) if tree.exists(p)), "")
            if _OFTEN_MISSING.search(path):
                reason = f"included by {edit.path.rpartition('/')[2]}"
                found.setdefault(path, Requirement(path, "", reason))
    return list(found.values())


def needs_of(
    repository: Repository, series: Series, onto: GitCommitHash, changes: Sequence[str]
) -> dict[str, list[str]]:
    """Which earlier changes each change builds on: without them its edits, or the names that it uses, find no place."""
    memory, needs = Memory(), dict[str, list[str]]()

    def applies(*ids: str) -> bool:
        plan = plan_stack(repository, series, onto, only=ids, memory=memory)
        return not [change for change in plan.blocked if change.change.id == ids[-1]]

    for number, change in enumerate(changes):
        needed = list(changes[:number])
        if needed and applies(change):
            needed = []
        for other in list(needed):
            fewer = [name for name in needed if name != other]
            if fewer and applies(*fewer, change):
                needed = fewer
        needs[change] = needed
    return needs
