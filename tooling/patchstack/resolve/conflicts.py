"""A conflict as a person sees it in the worktree: markers in the text, or the text beside its file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from patchstack.capture.texts import text_of
from patchstack.edits import Edit
from patchstack.edits.apply_diff import ApplyDiff
from patchstack.edits.cxx_edit import CxxEdit
from patchstack.edits.python_fragment import PlacePythonFragment
from patchstack.edits.python_replace import ReplacePythonDefinition
from patchstack.planning import ChangePlan, EditPlan
from patchstack.planning.three_way import marked_merge, sides_from
from patchstack.tree.git import Tree
from patchstack.tree.git.process import GitCommandError
from patchstack.tree.hunks import write_hunks

_STARTS = (b"<<<<<<< ", b"||||||| ", b">>>>>>> ")


@dataclass(frozen=True)
class Shown:
    """One edit that does not apply, as the worktree has it.

    Attributes:
        path: the file.
        problem: the conflict in words.
        beside: name of a file beside it; empty where markers are in the text, or the edit is in place.
        text: content of that file.
    """

    path: str
    problem: str
    beside: str = ""
    text: bytes = b""


def show(plan: ChangePlan, below: Tree, earlier: Sequence[Edit], onto: str) -> tuple[dict[str, bytes], list[Shown]]:
    """The files of a change as far as its edits apply, with markers where git has them; and what is left to do.

    Args:
        below: the tree below the change.
        earlier: the edits of the changes below.
        onto: what the markers call the tree.
    """
    files, shown, made = dict(plan.files), list[Shown](), [*earlier]
    for one in plan.edits:
        path, conflict = one.edit.path, one.outcome.conflict
        if conflict is None:
            made.append(one.edit)
            continue
        if one.outcome.after is not None:  # in place, and what it uses is not found
            shown.append(Shown(path, conflict.said))
            continue
        current = files[path] if path in files else below.read(path)
        marked = _marked(one, below, current, [other for other in made if other.path == path], (onto, plan.change.id))
        if marked is not None:
            files[path] = marked
            shown.append(Shown(path, conflict.said))
        else:
            taken = {other.beside for other in shown}
            shown.append(Shown(path, conflict.said, _name_beside(one.edit, taken), _text_beside(one.edit)))
        made.append(one.edit)
    return files, shown


def _marked(
    plan: EditPlan, tree: Tree, current: bytes | None, earlier: Sequence[Edit], names: tuple[str, str]
) -> bytes | None:
    """The file with the edit between markers; ``None`` where no text that the edit was written against is at hand."""
    for blob in plan.edit.base if current is not None else ():
        sides = sides_from(blob, plan.edit, tree, current or b"", earlier)
        if not isinstance(sides, str):
            try:
                text, count = marked_merge(*sides, current or b"", (names[0], "base", names[1]))
            except GitCommandError:
                continue
            if count:  # a merge without conflicts was refused by its structure, and is no better by hand
                return text
    return None


def _name_beside(edit: Edit, taken: set[str]) -> str:
    if isinstance(edit, ApplyDiff):
        stem, end = edit.path, "rej"
    elif isinstance(edit, (CxxEdit, PlacePythonFragment, ReplacePythonDefinition)):
        stem, end = f"{edit.path}.{edit.fragment.name}", "fragment"
    else:
        stem, end = edit.path, "edit"
    number, name = 1, f"{stem}.{end}"
    while name in taken:
        number += 1
        name = f"{stem}.{number}.{end}"
    return name


def _text_beside(edit: Edit) -> bytes:
    if isinstance(edit, ApplyDiff):
        return write_hunks(edit.path, edit.hunks)
    return text_of(edit) or f"{edit.describe()}\n".encode()


def marker_line(before: bytes, after: bytes) -> int:
    """The first line of a text that is a marker of git's; 0 where there is none that the text before had not."""
    known = [line for line in before.split(b"\n") if line.startswith(_STARTS)]
    for number, line in enumerate(after.split(b"\n"), 1):
        if line.startswith(_STARTS) and line not in known:
            return number
    return 0
