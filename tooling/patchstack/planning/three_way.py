"""The third rung: where an anchor drifted, merge from the text that the edit was written against.

A manifest lists that text by the ids of its blobs, and the checkout's own history has them: no upstream text travels
with the series. On the base the edit finds its anchor; git merges what it did there into the tree's file, and the
parsed result decides whether that is what the edit means (:meth:`patchstack.edits.Edit.merge_problem`).
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Sequence
from pathlib import Path

from patchstack.edits import Edit, Merge, Outcome, Rung, Status
from patchstack.errors import TreeError
from patchstack.tree.git import Tree
from patchstack.tree.git.process import GitCommandError, run_git
from patchstack.tree.git.tree import MAX_FILE_BYTES
from patchstack.tree.text import line_ending, with_line_ending

_SHORT = 12  # digits of a blob id in messages
_MOST_CONFLICTS = 127  # what git merge-file counts up to; above that, the status is a failure


def with_merge(edit: Edit, tree: Tree, refused: Outcome, earlier: Sequence[Edit]) -> Outcome:
    """The outcome of a merge from the first base that gives one, or ``refused`` with what each base came to.

    Nothing here is remembered between runs: whether a base blob is in the repository may change from one to the next.

    Args:
        refused: what planning the edit on the tree came to.
        earlier: the edits of the same file that were planned before; they are made on the base too, so that what
            they did is no difference between base and tree.

    Raises:
        TreeError: the tree's own objects cannot be read.
    """
    current = tree.read(edit.path)
    if refused.status not in edit.merges or refused.conflict is None or current is None:
        return refused
    problems = []
    for blob in edit.base:
        merged = _merged_from(blob, edit, tree, current, earlier)
        if isinstance(merged, bytes):
            note = f"merged from blob {blob[:_SHORT]}; the anchor on this tree: {refused.conflict.problem}"
            return Outcome(
                Status.APPLIES, refused.anchor, refused.matches, Rung.THREE_WAY, merged, note=note, base=blob
            )
        problems.append(f"from blob {blob[:_SHORT]}, {merged}")
    conflict = dataclasses.replace(refused.conflict, merge="; ".join(problems))
    return dataclasses.replace(refused, conflict=conflict)


def _merged_from(blob: str, edit: Edit, tree: Tree, current: bytes, earlier: Sequence[Edit]) -> bytes | str:
    """The merged content, or why there is none."""
    sides = sides_from(blob, edit, tree, current, earlier)
    if isinstance(sides, str):
        return sides
    base, edited = sides
    try:
        merged = merge_lines(base, edited, current)
    except GitCommandError as error:
        count = error.status if error.status <= _MOST_CONFLICTS else 0
        return f"{count} place{'s' if count > 1 else ''} changed on both sides" if count else error.reason
    except OSError as error:  # a full disk, no folder for temporary files
        return f"git cannot be given the three texts ({error.strerror or error})"
    if merged == current:
        return "the tree's text already is the merged one, and the edit is not in it"
    return edit.merge_problem(Merge(base, edited, current, merged)) or merged


def sides_from(blob: str, edit: Edit, tree: Tree, current: bytes, earlier: Sequence[Edit]) -> tuple[bytes, bytes] | str:
    """A text that an edit was written against, without and with the edit; or why there is no such pair.

    Args:
        current: the tree's text, whose line endings both get.
        earlier: as for :func:`with_merge`.
    """
    base = _base_content(blob, tree)
    if base is None:
        return "which this repository does not hold (a shallow or partial clone, or another history)"
    base = with_line_ending(base, line_ending(current))
    below = tree.with_files({edit.path: base})
    for before in earlier:
        outcome = before.plan(below)
        if outcome.after is not None:
            below = below.with_files({edit.path: outcome.after})
    planned = edit.plan(below)
    if planned.after is None:
        return "on which the edit does not apply either"
    return below.read(edit.path) or b"", planned.after


def _base_content(blob: str, tree: Tree) -> bytes | None:
    try:
        found = tree.repository.read_object(blob, at_most=MAX_FILE_BYTES)
    except TreeError:  # damaged or too large: as good as not there, since the rungs above need no base
        return None
    return found[2] if found is not None and found[0] == "blob" else None


def merge_lines(base: bytes, edited: bytes, current: bytes) -> bytes:
    """Git's own three-way merge of three contents, in a folder of its own.

    Raises:
        GitCommandError: there are conflicts (their number is the status), or git cannot merge these contents; nothing
            of the half-merged text gets out.
    """
    with tempfile.TemporaryDirectory(prefix="patchstack-merge-") as name:
        folder = Path(name)
        for file, content in {"tree": current, "base": base, "edit": edited}.items():
            (folder / file).write_bytes(content)
        return run_git(folder, ["merge-file", "-p", "-q", "tree", "base", "edit"])


def marked_merge(base: bytes, edited: bytes, current: bytes, labels: tuple[str, str, str]) -> tuple[bytes, int]:
    """The three-way merge with markers around what git could not merge, and the number of such places.

    Args:
        labels: what the markers call the current, the base and the edited text.

    Raises:
        GitCommandError: git cannot merge these contents.
    """
    with tempfile.TemporaryDirectory(prefix="patchstack-merge-") as name:
        folder, count = Path(name), 0
        for file, content in {"tree": current, "base": base, "edit": edited}.items():
            (folder / file).write_bytes(content)
        options = [word for label in labels for word in ("-L", label)]
        try:
            run_git(folder, ["merge-file", "-q", "--diff3", *options, "tree", "base", "edit"])
        except GitCommandError as error:
            count = error.status
            if count > _MOST_CONFLICTS:
                raise
        return (folder / "tree").read_bytes(), count
