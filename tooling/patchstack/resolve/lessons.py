"""What one file of a result teaches the edits of that file: each lesson is tried by the caller, the best one first."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from patchstack.capture.choose import applied, choose, diff_choice
from patchstack.capture.commits import changed_lines
from patchstack.capture.compose import Composer
from patchstack.capture.cxx import Proposal, cxx_proposals
from patchstack.capture.extend import add_condition, add_diff, add_digests, add_place, add_text, digests_of
from patchstack.capture.model import Choice, FileChange
from patchstack.capture.python import python_proposals
from patchstack.capture.state import State
from patchstack.edits import Edit, Status
from patchstack.edits.apply_diff import ApplyDiff
from patchstack.edits.cxx_anchor import CxxPlace
from patchstack.edits.cxx_edit import CXX_SUFFIXES, CxxEdit
from patchstack.edits.load import HAVE_FRAGMENTS
from patchstack.edits.python_fragment import PlacePythonFragment
from patchstack.edits.python_replace import ReplacePythonDefinition
from patchstack.planning.upstream import why_left_out
from patchstack.series import Change, UpstreamMarker
from patchstack.tree.git import Tree
from patchstack.tree.hunks import split_lines

_WITH_TEXT = (CxxEdit, PlacePythonFragment, ReplacePythonDefinition)
_MOST_TRIED = 200
_NEW, _OLD = "text of a conflict that was resolved by hand", "older trees, without that conflict"


@dataclass(frozen=True)
class Lesson:
    """A change of the manifest.

    Attributes:
        says: what is added, for the report.
        write: makes it.
    """

    says: str
    write: Callable[[Composer], None]


@dataclass(frozen=True)
class Topic:
    """One file of one result.

    Attributes:
        change: the change, as the series has it.
        path: the file.
        below: the tree below the change.
        onto: the tree that the stack is on.
        wanted: the file as it was resolved.
    """

    change: Change
    path: str
    below: Tree
    onto: Tree
    wanted: bytes

    def failing(self) -> tuple[Tree, list[Edit]]:
        """The tree with the edits of the file that apply, and those that do not."""
        tree, failing = self.below, list[Edit]()
        for edit in self.change.edits:
            if edit.path == self.path and not why_left_out(edit, self.onto):
                outcome = edit.plan(tree)
                if outcome.after is not None:
                    tree = tree.with_files({self.path: outcome.after})
                elif outcome.status is not Status.SATISFIED:
                    failing.append(edit)
        return tree, failing


def lessons(topic: Topic, only_new: Sequence[UpstreamMarker], only_old: Sequence[UpstreamMarker]) -> Iterator[Lesson]:
    """What could be added to the series, so that it gives the file.

    Args:
        only_new: what the new tree has, and no tree on which the series applied.
        only_old: what those have, and the new tree has not.

    Raises:
        CaptureError: no edit says what was done to the file.
    """
    tree, failing = topic.failing()
    current = tree.read(topic.path)
    if not failing or current is None:
        for new in only_new[:1]:
            yield _more(topic, tuple(_choices(tree, topic)), new)
        return
    changes = changed_lines(tree.repository, current, topic.wanted)
    state = State(split_lines(current), split_lines(topic.wanted), changes, 0)
    if (known := _places(topic, tree, state, failing)) is not None:
        yield known
    if len(failing) == 1 and isinstance(failing[0], ApplyDiff):
        yield _diff(topic, failing[0], diff_choice(tree, topic.path, state, state.after(state.left)))
    choices = list(_choices(tree, topic))
    for new in only_new[:1]:
        if len(choices) == len(failing) == 1 and _is_text_for(choices[0].edit, failing[0]):
            yield _text(topic, failing[0], choices[0], new)
        for old in only_old[:1]:
            yield _both(topic, failing, choices, new, old)


def _places(topic: Topic, tree: Tree, state: State, failing: Sequence[Edit]) -> Lesson | None:
    """The same texts at other places, or instead of other texts; ``None`` where that does not give the file."""
    found, left = list[tuple[Edit, Edit]](), list(failing)
    while state.left:
        below = tree.with_files({topic.path: state.text})
        step = next((s for e in left if (s := _other_place(topic.path, below, state, e)) is not None), None)
        if step is None:
            return None
        count, edit, proposed = step
        found.append((edit, proposed))
        left.remove(edit)
        state = state.after(count)
    if left:
        return None
    says = "; ".join(_said(edit, proposed) for edit, proposed in found)

    def write(composer: Composer) -> None:
        for edit, proposed in found:
            _add_place(composer, topic.change, edit, proposed)

    return Lesson(f"{topic.path}: {says}", write)


def _said(edit: Edit, proposed: Edit) -> str:
    name = getattr(edit, "fragment").name  # noqa: B009 - edits with a fragment have no class in common
    if place := _new_place(edit, proposed):
        return f"'{name}' has one more place: {place}"
    return f"'{name}' may replace one more text ({', '.join(digests_of(proposed))})"


def _new_place(edit: Edit, proposed: Edit) -> CxxPlace | None:
    if not isinstance(edit, CxxEdit) or not isinstance(proposed, CxxEdit):
        return None
    return None if proposed.place in (edit.place, *edit.others) else proposed.place


def _add_place(composer: Composer, change: Change, edit: Edit, proposed: Edit) -> None:
    entry = composer.entries_of(change.id)[change.edits.index(edit)]
    if place := _new_place(edit, proposed):
        add_place(entry, place)
    if digests := digests_of(proposed):
        add_digests(entry, digests)


def _other_place(path: str, below: Tree, state: State, edit: Edit) -> tuple[int, Edit, Edit] | None:
    """The hunks that an edit stands for at another place, the edit, and the one that has the place."""
    for number, (count, proposed) in enumerate(_proposals(path, state)):
        if number == _MOST_TRIED:
            break
        moved = _moved(edit, proposed[0]) if len(proposed) == 1 else None
        if moved is not None and applied(below, [moved]) == state.after(count).text:
            return count, edit, proposed[0]
    return None


def _proposals(path: str, state: State) -> Iterator[Proposal]:
    if path.endswith(CXX_SUFFIXES):
        yield from cxx_proposals(path, state)
    elif path.endswith(".py"):
        yield from python_proposals(path, state)


def _moved(edit: Edit, proposed: Edit) -> Edit | None:
    """The edit at the place of another, if that has its text; where it is, with another text that it may replace."""
    if not isinstance(edit, _WITH_TEXT) or not isinstance(proposed, _WITH_TEXT) or type(edit) is not type(proposed):
        return None
    if edit.fragment.text.strip() != proposed.fragment.text.strip():
        return None
    if isinstance(edit, CxxEdit) and isinstance(proposed, CxxEdit):
        if (edit.place.relation, proposed.place.relation).count("into") == 1:
            return None
        moved: Edit = dataclasses.replace(edit, place=proposed.place, others=())
    elif isinstance(edit, ReplacePythonDefinition):
        moved = edit
    else:
        return None
    known = digests_of(proposed)
    return dataclasses.replace(moved, replaces=known) if known else moved  # type: ignore[call-arg]


def _diff(topic: Topic, edit: ApplyDiff, choice: Choice) -> Lesson:
    """Other hunks, for trees on which those that are known do not apply."""

    def write(composer: Composer) -> None:
        assert isinstance(choice.edit, ApplyDiff)
        entry = composer.entries_of(topic.change.id)[topic.change.edits.index(edit)]
        add_diff(entry, composer.written_diff(topic.change.id, choice.edit))

    return Lesson(f"{topic.path}: one more diff, for trees that lack the lines of the others", write)


def _choices(tree: Tree, topic: Topic) -> Iterator[Choice]:
    """Edits that make of a file, which may be new, what was resolved."""
    current = tree.read(topic.path)
    changes = changed_lines(tree.repository, current, topic.wanted) if current is not None else []
    return choose(tree, FileChange(topic.path, current, topic.wanted), changes)


def _more(topic: Topic, choices: Sequence[Choice], marker: UpstreamMarker) -> Lesson:
    """Edits beside those that the change has, for trees like the new one."""

    def write(composer: Composer) -> None:
        for entry in composer.add_edits(topic.change.id, choices):
            add_condition(entry, marker, _NEW)

    kinds = ", ".join(choice.edit.kind for choice in choices)
    return Lesson(f"{topic.path}: more edits where {marker} ({kinds})", write)


def _is_text_for(new: Edit, edit: Edit) -> bool:
    return edit.kind in HAVE_FRAGMENTS and type(new) is type(edit) and isinstance(edit, _WITH_TEXT)


def _text(topic: Topic, edit: Edit, choice: Choice, marker: UpstreamMarker) -> Lesson:
    """Another text for trees like the new one, at the place that is known or one more."""

    def write(composer: Composer) -> None:
        entry = composer.entries_of(topic.change.id)[topic.change.edits.index(edit)]
        written = composer.written(topic.change.id, choice)
        assert isinstance(written, _WITH_TEXT)
        add_text(entry, written.fragment.name, marker, _NEW)
        if place := _new_place(edit, written):
            add_place(entry, place)
        if digests := digests_of(written):
            add_digests(entry, digests)

    return Lesson(f"{topic.path}: '{getattr(edit, 'fragment').name}' has another text where {marker}", write)  # noqa: B009


def _both(
    topic: Topic, failing: Sequence[Edit], choices: Sequence[Choice], new: UpstreamMarker, old: UpstreamMarker
) -> Lesson:
    """Edits of their own for trees like the new one; those that fail there are kept to trees like the old ones."""

    def write(composer: Composer) -> None:
        entries = composer.entries_of(topic.change.id)
        chosen = [entries[topic.change.edits.index(edit)] for edit in failing]
        for number, entry in enumerate(chosen):
            if not any(entry is other for other in chosen[:number]):
                add_condition(entry, old, _OLD)
        for entry in composer.add_edits(topic.change.id, choices):
            add_condition(entry, new, _NEW)

    kinds = ", ".join(choice.edit.kind for choice in choices)
    return Lesson(f"{topic.path}: edits of their own where {new} ({kinds}); those from before where {old}", write)
