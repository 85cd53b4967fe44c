"""Structural edits that may stand for hunks of a Python file: entries of containers, members of classes."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence

from tree_sitter import Node

from patchstack.capture.cxx import SMALL, Proposal, blank_lines, held, held_hunks, is_worth_it, plain, replaced_text
from patchstack.capture.state import Insertion, State
from patchstack.edits import Edit
from patchstack.edits.python_entry import AddPythonEntry, RemovePythonEntry
from patchstack.edits.python_fragment import PlacePythonFragment
from patchstack.edits.python_member import RemoveClassMember
from patchstack.edits.python_replace import ReplacePythonDefinition, definition_span
from patchstack.edits.python_statements import ReplacePythonStatements, lines_of
from patchstack.edits.spacing import USUAL, Spacing
from patchstack.manifest.overlay import Fragment, has_markers
from patchstack.tree.python import PythonFile, Step, container_in, parse_python
from patchstack.tree.python_layout import Entry
from patchstack.tree.text import digest, line_end, line_start

_CONTAINERS = ("list", "tuple", "set", "dictionary", "argument_list")
_NAMED = {"class_definition": "class", "function_definition": "function"}
_MOST_ENTRIES = 6
_BODY_KINDS = ("class", "function")
_NAME = re.compile(rb"[A-Za-z_]\w*")
_COMMENT = re.compile(rb"[ \t]*,?[ \t]*#[ \t]*([^\n]*?)[ \t]*\r?\n")
_DEF = re.compile(r"(?:def|class)\s+(\w+)")


def python_proposals(path: str, state: State) -> Iterator[Proposal]:
    """Edits for the next hunk, or for it and those behind it."""
    file = parse_python(state.text)
    if file.broken:
        return
    for insertion in state.insertions():
        if insertion.text.strip() and not has_markers(insertion.text):
            yield from ((1, (edit,)) for edit in _members(path, file, state, insertion))
    yield from _entries(path, file, state)
    yield from _removed_member(path, file, state)
    yield from _replacements(path, file, state)
    yield from _statements(path, file, state)


def steps_at(file: PythonFile, start: int, end: int) -> Iterator[tuple[tuple[Step, ...], Node]]:
    """The nodes around a stretch that steps lead to, outermost first, each with these steps."""
    node, steps = file.root, tuple[Step, ...]()
    while True:
        inner = next((child for child in node.children if child.start_byte <= start and end <= child.end_byte), None)
        if inner is None:
            return
        node = inner
        step = _step(node)
        if step is not None:
            steps = (*steps, step)
            yield steps, node


def _step(node: Node) -> Step | None:
    def text(field: str) -> str:
        found = node.child_by_field_name(field)
        return found.text.decode(errors="replace") if found is not None and found.text else ""

    if node.type in _NAMED:
        return Step(_NAMED[node.type], text("name"))
    if node.type == "assignment" and node.child_by_field_name("right") is not None:
        return Step("assign", text("left"))
    if node.type == "keyword_argument":
        return Step("keyword", text("name"))
    if node.type == "pair":
        return Step("key", text("key"))
    arguments = node.child_by_field_name("arguments") if node.type == "call" else None
    first = next((c for c in arguments.named_children if c.type != "comment"), None) if arguments else None
    if first is not None and first.type != "keyword_argument" and first.text:
        return Step("call", text("function"), first.text.decode(errors="replace"))
    return None


def _members(path: str, file: PythonFile, state: State, insertion: Insertion) -> Iterator[Edit]:
    probe = max(insertion.at - 1, 0)
    while probe and not file.data[probe : probe + 1].strip():
        probe -= 1
    lead = len(insertion.text) - len(insertion.text.lstrip())
    start = insertion.text.rfind(b"\n", 0, lead) + 1
    text = insertion.text[start:].rstrip() + b"\n"
    found = _DEF.search(text.decode(errors="replace"))
    name = found[1] if found else "members"
    usual = Fragment(name, plain(text), "")
    spacings = [(USUAL, usual), (blank_lines(state.after(1).text, insertion.at + start, text), usual)]
    spacings.append((Spacing(exact=True), Fragment(name, plain(insertion.text), "")))
    for steps, node in reversed(list(steps_at(file, probe, probe + 1))):
        if node.type == "class_definition":
            for spacing, fragment in spacings:
                yield PlacePythonFragment(path=path, steps=steps, fragment=fragment, spacing=spacing)
            yield from _behind_member(path, file, (steps, node), insertion, spacings)
    yield from _behind_member(path, file, ((), file.root), insertion, spacings)


def _behind_member(
    path: str,
    file: PythonFile,
    place: tuple[tuple[Step, ...], Node],
    insertion: Insertion,
    spacings: Sequence[tuple[Spacing, Fragment]],
) -> Iterator[Edit]:
    """Members behind the member of a class, or of the module, that ends next above an insertion."""
    steps, node = place
    above = max((m for m in file.members(node) if m.end <= insertion.at), key=lambda m: m.end, default=None)
    if above is not None:
        for spacing, fragment in spacings:
            yield PlacePythonFragment(path=path, steps=steps, fragment=fragment, spacing=spacing, after=above.name)


def _removed_member(path: str, file: PythonFile, state: State) -> Iterator[Proposal]:
    start, end = state.span(0)
    inner = file.data[start:end].strip()
    if not inner:
        return
    first = file.data.index(inner, start)
    for steps, node in reversed(list(steps_at(file, first, first + 1))):
        if node.type == "class_definition":
            for member in file.members(node):
                if first <= member.start < end:
                    yield 1, (RemoveClassMember(path=path, steps=steps, member=member.name),)


def _replacements(path: str, file: PythonFile, state: State) -> Iterator[Proposal]:
    """Whole functions that hold the next hunk, the innermost first, each with the other hunks in it."""
    start, end = state.span(0)
    inner = file.data[start:end].strip()
    probe = file.data.index(inner, start) if inner else max(len(file.data[:start].rstrip()) - 1, 0)
    for steps, node in reversed(list(steps_at(file, probe, probe + 1))):
        low, high = definition_span(file.data, node)
        if node.type != "function_definition" or not (low <= start and end <= high) or len(file.find(steps)) != 1:
            continue
        count = held_hunks(state, high)
        text = replaced_text(state, count, low, high)
        if is_worth_it(state, count, low, high) and not has_markers(text):
            fragment = Fragment(steps[-1].name, plain(text), "")
            digests = (digest(file.data[low:high]),)
            yield count, (ReplacePythonDefinition(path=path, steps=steps, fragment=fragment, replaces=digests),)


def _statements(path: str, file: PythonFile, state: State) -> Iterator[Proposal]:
    """Runs of statements that hold the next hunk, in the innermost body first."""
    start, end = state.span(0)
    node: Node | None = file.root.descendant_for_byte_range(start, max(end - 1, start))
    while node is not None:
        listed = [child for child in node.named_children if child.type != "comment"]
        if node.type in ("block", "module") and listed:
            spans = [(line_start(file.data, n.start_byte), line_end(file.data, n.end_byte - 1)) for n in listed]
            first, last = held(spans, start, end)
            for low, high in ((first, last), (first - 1, last), (first, last + 1)):
                if 0 <= low <= high < len(listed):
                    for begin, stop in lines_of(file, listed[low], listed[high]):
                        yield from _statement_edit(path, file, state, high - low + 1, (begin, stop))
        node = node.parent


def _statement_edit(
    path: str, file: PythonFile, state: State, statements: int, lines: tuple[int, int]
) -> Iterator[Proposal]:
    low, high = lines
    count = held_hunks(state, high)
    if not count or state.span(0)[0] < low or file.data.count(b"\n", low, high) > SMALL:
        return
    text = replaced_text(state, count, low, high)
    if not text.strip() or has_markers(text):
        return
    named = [found[0] for found in steps_at(file, low, high) if all(step.kind in _BODY_KINDS for step in found[0])]
    steps = next((steps for steps in reversed(named) if len(file.find(steps)) == 1), ())
    found = _NAME.search(text)
    fragment = Fragment(f"{found[0].decode()}_lines" if found else "lines", plain(text), "")
    digests = (digest(file.data[low:high]),)
    yield (
        count,
        (ReplacePythonStatements(path=path, steps=steps, fragment=fragment, replaces=digests, statements=statements),),
    )


def _entries(path: str, file: PythonFile, state: State) -> Iterator[Proposal]:
    """What changed in the innermost containers around the next hunk."""
    start, end = state.span(0)
    for node in _containers_around(file, start, end):
        count = 1
        while count < state.left and state.span(count)[1] <= node.end_byte:
            count += 1
        for hunks in dict.fromkeys((1, count)):
            after = parse_python(state.after(hunks).text)
            for steps in _steps_to(file, node):
                hits = after.find(steps)
                new = container_in(hits[0], steps[-1]) if len(hits) == 1 else None
                if new is not None and new.type == node.type:
                    for edits in _differences(path, steps, (file, node), (after, new)):
                        yield hunks, edits


def _containers_around(file: PythonFile, start: int, end: int) -> Iterator[Node]:
    node = file.root.descendant_for_byte_range(start, max(end - 1, start))
    while node is not None:
        if node.type in _CONTAINERS and node.start_byte < start and end <= node.end_byte:
            yield node
        node = node.parent


def _steps_to(file: PythonFile, container: Node) -> Iterator[tuple[Step, ...]]:
    found = list(steps_at(file, container.start_byte, container.end_byte))
    if found:
        steps = found[-1][0]
        hits = file.find(steps)
        inner = container_in(hits[0], steps[-1]) if len(hits) == 1 else None
        if inner is not None and (inner.start_byte, inner.end_byte) == (container.start_byte, container.end_byte):
            yield steps


def _differences(
    path: str, steps: tuple[Step, ...], before: tuple[PythonFile, Node], after: tuple[PythonFile, Node]
) -> Iterator[tuple[Edit, ...]]:
    """Removals and additions that turn the entries of one container into those of another."""
    old, new = before[0].entries(before[1]), after[0].entries(after[1])
    matcher = difflib.SequenceMatcher(None, [e.text for e in old], [e.text for e in new], autojunk=False)
    gone, come = list[Entry](), list[tuple[Entry, Entry | None]]()
    for kind, low, high, new_low, new_high in matcher.get_opcodes():
        if kind != "equal":
            gone += old[low:high]
            come += [(new[n], new[n - 1] if n else None) for n in range(new_low, new_high)]
    if not 0 < len(gone) + len(come) <= _MOST_ENTRIES:
        return
    for with_comment in (False, True) if gone else (False,):
        for at_end in (True, False):
            yield (
                *(_removal(path, steps, entry, before[1], with_comment=with_comment) for entry in gone),
                *(_addition(path, steps, entry, above, after, at_end=at_end) for entry, above in come),
            )
        if not come:
            return


def _value(entry: Entry, container: Node) -> str:
    return entry.text[len(entry.key) :].lstrip(" \t:\r\n") if container.type == "dictionary" else ""


def _removal(path: str, steps: tuple[Step, ...], entry: Entry, container: Node, *, with_comment: bool) -> Edit:
    value = _value(entry, container)
    return RemovePythonEntry(path=path, steps=steps, entry=entry.key, value=value, with_comment=with_comment)


def _addition(
    path: str,
    steps: tuple[Step, ...],
    entry: Entry,
    above: Entry | None,
    container: tuple[PythonFile, Node],
    *,
    at_end: bool,
) -> Edit:
    file, node = container
    found = _COMMENT.match(file.data, entry.end)
    comment = found[1].decode(errors="replace") if found else ""
    is_last = at_end and entry.end == file.entries(node)[-1].end
    after = "" if is_last or above is None else above.key
    text = _dedented(file.data, entry, entry.key)
    return AddPythonEntry(
        path=path,
        steps=steps,
        entry=text,
        value=_dedented(file.data, entry, _value(entry, node)),
        after=after,
        comment=comment,
    )


def _dedented(data: bytes, entry: Entry, text: str) -> str:
    """The lines of an entry as they stand behind the indentation of its first one."""
    start = data.rfind(b"\n", 0, entry.start) + 1
    line = data[start : entry.start]
    indent = line[: len(line) - len(line.lstrip())].decode(errors="replace")
    first, *rest = text.split("\n")
    return "\n".join([first, *(one.removeprefix(indent) for one in rest)])
