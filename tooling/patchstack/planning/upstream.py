"""Whether a tree already carries a change: the manifest's markers, judged on the tree."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from patchstack.edits.dispatch_key import AddDispatchKey
from patchstack.edits.model import Edit
from patchstack.errors import TreeError
from patchstack.manifest.closest import closest
from patchstack.planning.memo import remembered_answer
from patchstack.series import Applicability, Change, Requirement, UpstreamMarker, in_words
from patchstack.tree.c_shim import parse_declarations
from patchstack.tree.cxx import parse_cxx
from patchstack.tree.git import Tree
from patchstack.tree.native_functions import FUNCTIONS_PATH, parse_native_functions
from patchstack.tree.python import parse_python
from patchstack.tree.yaml_nodes import YamlSyntaxError


def marker_holds(marker: UpstreamMarker, tree: Tree) -> bool:
    """Whether one sign is there; a file that is missing has no signs.

    Raises:
        TreeError: the file is there and cannot be read as what it is.
    """
    data = tree.read(marker.path)
    if data is None:
        return False
    if marker.kind == "dispatch":
        try:
            entries = parse_native_functions(data).find(marker.name)
        except YamlSyntaxError as error:
            raise TreeError(
                f"the entry of {marker.name} cannot be read: {error.problem}", where=f"{marker.path}:{error.line}"
            ) from None
        return any(entry.function_for(marker.key) is not None for entry in entries)
    if marker.kind == "declares":
        return marker.name in {declared.name for declared in parse_declarations(data, path=marker.path)}
    return _defines(data, marker.path, marker.name)


def unmet_conditions(change: Change, onto: Tree) -> tuple[Applicability, ...]:
    """The conditions of a change that do not hold; none where it is applicable.

    Args:
        onto: the tree that the series is put on. What the changes below bring counts for nothing here: a condition
            tells kinds of trees apart, and the series does not make one kind of another.

    Raises:
        TreeError: as for :func:`marker_holds`.
    """
    return tuple(condition for condition in change.only_where if not marker_holds(condition.marker, onto))


def why_left_out(edit: Edit, onto: Tree) -> str:
    """Why an edit is not for a tree; empty where it is.

    Args:
        onto: the tree that the series is put on, as for :func:`unmet_conditions`.

    Raises:
        TreeError: as for :func:`marker_holds`.
    """
    unmet = [condition for condition in edit.only_where if not marker_holds(condition.marker, onto)]
    if unmet:
        return f"left out, it is for trees in which {in_words(unmet)}"
    for before in edit.unless:
        if all(marker_holds(condition.marker, onto) for condition in before):
            return f"left out, another text is for trees in which {in_words(before)}"
    return ""


def refuse_unknown_ops(changes: Iterable[Change], onto: Tree, manifest: Path) -> None:
    """Refuse a change for an op that the tree does not have: the gates would prove nothing of what it brings.

    An op that an edit gives a dispatch entry is left to that edit, which tells it among the conflicts.

    Raises:
        TreeError: there is one; names what comes closest to it.
    """
    known = {name.partition(".")[0] for name in parse_native_functions(onto.read(FUNCTIONS_PATH) or b"").lines}
    for change in changes:
        told = {edit.op.partition(".")[0] for edit in change.edits if isinstance(edit, AddDispatchKey)}
        for op in change.ops:
            if op.partition(".")[0] not in known | told:
                raise TreeError(
                    f"'ops' of change '{change.id}' names {op}, which {FUNCTIONS_PATH} of this tree does not have",
                    where=f"{manifest}:{change.line}",
                    expected=" or ".join(closest(op, sorted(known))),
                )


def lacking(requirement: Requirement, tree: Tree) -> str:
    """What the tree lacks of a requirement: a file, or a name in one; empty when it has it."""
    data = tree.read(requirement.path)
    if data is None:
        return requirement.path
    if requirement.defines and not _is_seen(data, requirement.path, requirement.defines, tree):
        return f"{requirement.defines} in {requirement.path}"
    return ""


def _is_seen(data: bytes, path: str, name: str, tree: Tree) -> bool:
    """Whether a file defines a name, or a file of its folder that it includes: upstream splits files."""
    if _defines(data, path, name):
        return True
    folder = path.rpartition("/")[0]
    includes = () if path.endswith(".py") else parse_cxx(data).includes
    for line in includes:
        beside = f"{folder}/{line.path.rpartition('/')[2]}"
        text = tree.read(beside) if f"/{beside}".endswith(f"/{line.path}") and beside != path else None
        if text is not None and _defines(text, beside, name):
            return True
    return False


def _defines(data: bytes, path: str, name: str) -> bool:
    question = f"defines {name} in a {path.rpartition('.')[2]} file"
    return remembered_answer(question, data, lambda: name in defined_names(data, path))


def defined_names(data: bytes, path: str) -> set[str]:
    """Every name that a source file defines; of C++, with and without its namespace."""
    if path.endswith(".py"):
        file = parse_python(data)
        return {name for kind in ("class", "function", "assign") for name in file.names(file.root, kind)}
    return {name for found in parse_cxx(data).definitions for name in (found.name, found.qualified)}
