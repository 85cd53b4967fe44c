"""Choosing edits for what a commit does to a file: the first proposal that gives the very bytes is taken."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterable, Iterator

from patchstack.capture.apart import Apart, apart
from patchstack.capture.cxx import Proposal, cxx_proposals
from patchstack.capture.model import CaptureError, Choice, FileChange
from patchstack.capture.python import python_proposals
from patchstack.capture.state import State
from patchstack.capture.yaml import yaml_proposals
from patchstack.edits import Edit, Status
from patchstack.edits.apply_diff import ApplyDiff
from patchstack.edits.create_file import CreateFile
from patchstack.edits.cxx_anchor import CxxPlace
from patchstack.edits.cxx_edit import CXX_SUFFIXES
from patchstack.edits.cxx_fragment import PlaceCxxFragment
from patchstack.edits.cxx_remove import PRIVATE_SUFFIXES, RemoveUnusedDefinition
from patchstack.edits.dispatch_key import AddDispatchKey
from patchstack.edits.regenerate import RegenerateShim
from patchstack.edits.yaml_edit import YAML_SUFFIXES
from patchstack.errors import PatchstackError
from patchstack.manifest.overlay import has_markers
from patchstack.tree.c_shim import HEADER_FOLDER, parse_declarations
from patchstack.tree.git import Tree
from patchstack.tree.hunks import LineChange, make_hunks, split_lines
from patchstack.tree.native_functions import FUNCTIONS_PATH, parse_native_functions
from patchstack.tree.yaml_nodes import YamlSyntaxError

_SHIM = re.compile(re.escape(HEADER_FOLDER) + r"/c_shim_(\w+)\.h\Z")
_CONTEXT = 3
_MOST_OTHERS = 2
_MOST_LOOKED_AT = 60


def choose(tree: Tree, change: FileChange, changes: list[LineChange]) -> Iterator[Choice]:
    """Edits that turn a file from before a commit into that of the commit, in order.

    Args:
        tree: the tree below the commit.
        changes: the hunks.

    Raises:
        CaptureError: nothing gives the bytes of the commit.
    """
    path = change.path
    if change.before is None:
        yield Choice(_created(change), 1)
        return
    old, new = split_lines(change.before), split_lines(change.after)
    choices = list(_in_order(tree, path, old, new, changes))
    if path.endswith(PRIVATE_SUFFIXES):
        choices = _with_removals_last(tree, path, apart(old, new, changes), new, choices)
    yield from choices


def _in_order(tree: Tree, path: str, old: list[bytes], new: list[bytes], changes: list[LineChange]) -> Iterator[Choice]:
    """Edits for one hunk after the other."""
    state = pending = State(old, new, changes, 0)
    while state.left:
        found = _first_that_fits(tree, path, state)
        if found is None:
            state = state.after(1)
            continue
        count, edits = found
        if pending.done < state.done:
            yield diff_choice(tree, path, pending, state)
        yield from (Choice(edit, count if edit is edits[-1] else 0) for edit in edits)
        state = pending = state.after(count)
    if pending.done < state.done:
        yield diff_choice(tree, path, pending, state)


def _with_removals_last(tree: Tree, path: str, parts: Apart, new: list[bytes], choices: list[Choice]) -> list[Choice]:
    """The same with the removal of definitions behind what used them, if that leaves no more to a diff.

    Args:
        choices: the edits in the order of the file.
    """
    if _removals(choices) >= len(parts.removals):
        return choices
    others = list(_in_order(tree, path, parts.old, parts.middle, parts.others))
    removals = list(_in_order(tree, path, parts.middle, new, parts.removals))
    left = [sum(one.hunks for one in some if not one.is_structural) for some in (others, choices)]
    if left[0] > left[1] or _removals(removals) < len(removals):
        return choices
    shared = iter(parts.parts)  # of a hunk in two parts the other one counts
    counted = [dataclasses.replace(c, hunks=c.hunks - sum(itertools.islice(shared, c.hunks))) for c in removals]
    return [*others, *counted]


def _removals(choices: Iterable[Choice]) -> int:
    return sum(isinstance(choice.edit, RemoveUnusedDefinition) for choice in choices)


def _created(change: FileChange) -> Edit:
    if b"\r\n" in change.after or has_markers(change.after):
        problem = "a file with CR LF, or with lines that look like fragment markers, cannot be created"
        raise CaptureError(problem, where=change.path, expected="line feeds, and no '// fragment:' line")
    return CreateFile(path=change.path, content=change.after)


def _first_that_fits(tree: Tree, path: str, state: State) -> Proposal | None:
    tried, below = set[str](), tree.with_files({path: state.text})
    proposals = iter(_proposals(path, state))
    for count, edits in proposals:
        key = f"{count} {edits!r}"
        if key not in tried:
            tried.add(key)
            wanted = state.after(count).text
            if applied(below, edits) == wanted:
                return count, _with_other_places(below, edits, wanted, proposals)
    return None


def _with_other_places(
    tree: Tree, edits: tuple[Edit, ...], wanted: bytes, more: Iterable[Proposal]
) -> tuple[Edit, ...]:
    """A placed fragment with further places that give the same bytes, for trees that lack the first one."""
    if len(edits) != 1 or not isinstance(edits[0], PlaceCxxFragment):
        return edits
    chosen, others = edits[0], list[CxxPlace]()
    for _, proposed in itertools.islice(more, _MOST_LOOKED_AT):
        other = proposed[0]
        if len(others) == _MOST_OTHERS or type(other) is not type(chosen) or not isinstance(other, PlaceCxxFragment):
            break
        place = other.place
        alike = (
            place.in_function == chosen.place.in_function and (place.relation, chosen.place.relation).count("into") != 1
        )
        is_new = place.kind != "file" and dataclasses.replace(place, inside_if=False) not in (chosen.place, *others)
        same = (other.fragment.text, other.spacing) == (chosen.fragment.text, chosen.spacing)
        if alike and is_new and same and applied(tree, [other]) == wanted:
            others.append(place)
    return (dataclasses.replace(chosen, others=tuple(others)),)


def _proposals(path: str, state: State) -> Iterable[Proposal]:
    if path.endswith(CXX_SUFFIXES):
        return cxx_proposals(path, state)
    if path.endswith(".py"):
        return python_proposals(path, state)
    dispatch = _dispatch_proposals(path, state) if path == FUNCTIONS_PATH else ()
    return itertools.chain(dispatch, yaml_proposals(path, state)) if path.endswith(YAML_SUFFIXES) else ()


def applied(tree: Tree, edits: Iterable[Edit]) -> bytes | None:
    """What edits of one file make of it; ``None`` where one does not apply."""
    after = None
    for edit in edits:
        outcome = edit.plan(tree)
        if outcome.status is not Status.APPLIES or outcome.after is None:
            return None
        after = outcome.after
        tree = tree.with_files({edit.path: after})
    return after


def diff_choice(tree: Tree, path: str, start: State, end: State) -> Choice:
    """The hunks between two states as a diff.

    Raises:
        CaptureError: no amount of context tells its places apart.
    """
    old, new = start.lines, end.lines
    moved = start.line_span(0)[0] - start.changes[start.done].old_start
    changes = [
        LineChange(c.old_start + moved, c.old_end + moved, c.new_start, c.new_end)
        for c in start.changes[start.done : end.done]
    ]
    context, below = _CONTEXT, tree.with_files({path: start.text})
    while True:
        edit = ApplyDiff(path=path, hunks=tuple(make_hunks(old, new, changes, context)))
        if applied(below, [edit]) == end.text:
            return Choice(edit, len(changes), "no structure holds it")
        if context > len(old):
            raise CaptureError("the change cannot be told by its lines", where=path)
        context *= 2


def _dispatch_proposals(path: str, state: State) -> Iterator[Proposal]:
    """Dispatch keys that the entry around the next hunk gets."""
    if state.text == b"":
        return
    start, _ = state.span(0)
    try:
        before, after = parse_native_functions(state.text), parse_native_functions(state.after(1).text)
        at = state.text.count(b"\n", 0, start) + 1
        around = [name for name, line in before.lines.items() if line <= at]
        if not around:
            return
        op = around[-1]
        (old,), (new,) = before.find(op), after.find(op)
    except (YamlSyntaxError, ValueError):
        return
    known = {key for line in old.dispatch for key in line.keys}
    added = [(key, line.function) for line in new.dispatch for key in line.keys if key not in known]
    if added:
        yield 1, tuple(AddDispatchKey(path=path, op=op, key=key, function=function) for key, function in added)


def schema_notes(change: FileChange) -> Iterator[str]:
    """The schema lines of ``native_functions.yaml`` that a commit changes, each with what judges it."""
    before, after = (_schemas(text) for text in (change.before or b"", change.after))
    for op in sorted(before.keys() | after.keys()):
        old, new = before.get(op, "nothing"), after.get(op, "nothing")
        if old != new:
            judge = "FC and BC: validate-stack --only fc-window"
            yield f"{change.path}: the schema of {op} changes from '{old}' to '{new}' ({judge})"


_SCHEMA = re.compile(rb"^- func:[ \t]*(([\w.]+)[^\n]*?)[ \t\r]*$", re.MULTILINE)


def _schemas(text: bytes) -> dict[str, str]:
    return {m[2].decode(errors="replace"): m[1].decode(errors="replace") for m in _SCHEMA.finditer(text)}


def is_shim(path: str) -> bool:
    """Whether torchgen makes a file from others."""
    return path.startswith(f"{HEADER_FOLDER}/")


def shim_choice(tree: Tree, change: FileChange) -> Choice | None:
    """The regeneration of a C-shim header, where the tree's torchgen makes just what the commit has.

    Args:
        tree: the tree with the other edits of the change in place.
    """
    found = _SHIM.match(change.path)
    if found is None or change.before is None:
        return None
    try:
        old, new = (
            {d.name for d in parse_declarations(text, path=change.path)} for text in (change.before, change.after)
        )
    except PatchstackError:
        return None
    if not new - old:
        return None
    edit = RegenerateShim(path=change.path, backend=found[1].upper(), adds=tuple(sorted(new - old)))
    return Choice(edit, 1) if applied(tree, [edit]) == change.after else None


def renamed(choice: Choice, name: str) -> Choice:
    """The choice with another name for its fragment."""
    fragment = getattr(choice.edit, "fragment")  # noqa: B009 - edits with a fragment have no class in common
    edit = dataclasses.replace(choice.edit, fragment=dataclasses.replace(fragment, name=name))  # type: ignore[call-arg]
    return dataclasses.replace(choice, edit=edit)
