"""Structural edits that may stand for hunks of a YAML file: entries behind one that is there, or instead of some."""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml

from patchstack.capture.cxx import SMALL, Proposal, blank_lines, held, held_hunks, plain, replaced_text
from patchstack.capture.state import Insertion, State
from patchstack.edits import Edit
from patchstack.edits.spacing import USUAL, Spacing
from patchstack.edits.yaml_edit import PlaceYamlEntries, ReplaceYamlEntries
from patchstack.manifest.overlay import Fragment, has_markers
from patchstack.tree.text import digest
from patchstack.tree.yaml_entries import YamlFile, parse_yaml
from patchstack.tree.yaml_nodes import YamlSyntaxError

_NAME = re.compile(rb"[A-Za-z_]\w*")


def yaml_proposals(path: str, state: State) -> Iterator[Proposal]:
    """Edits for the next hunk, or for it and those behind it; nothing for a file that is not YAML."""
    try:
        file = parse_yaml(state.text)
    except YamlSyntaxError:
        return
    for insertion in state.insertions():
        if insertion.text.strip() and not has_markers(insertion.text):
            for edit in _behind(path, file, state, insertion):
                yield 1, (edit,)
    start, end = state.span(0)
    for names, node in reversed(list(file.collections_around(start, end))):
        yield from _runs(path, file, state, names, node)


def _behind(path: str, file: YamlFile, state: State, insertion: Insertion) -> Iterator[Edit]:
    """Entries behind the one that ends next above an insertion, in the innermost collection first."""
    lead = len(insertion.text) - len(insertion.text.lstrip())
    start = insertion.text.rfind(b"\n", 0, lead) + 1
    text = insertion.text[start:].rstrip() + b"\n"
    usual = Fragment(_fragment_name(text), plain(text), "")
    spacings = [(USUAL, usual), (blank_lines(state.after(1).text, insertion.at + start, text), usual)]
    spacings.append((Spacing(exact=True), Fragment(usual.name, plain(insertion.text), "")))
    for names, node in reversed(list(file.collections_around(max(insertion.at - 1, 0), insertion.at))):
        above = [entry for entry in file.entries(node) if entry.end <= insertion.at][-1:]
        for spacing, fragment in dict(spacings).items() if above and above[0].name else ():
            yield PlaceYamlEntries(path=path, fragment=fragment, names=names, after=above[0].name, spacing=spacing)


def _runs(path: str, file: YamlFile, state: State, names: tuple[str, ...], node: yaml.Node) -> Iterator[Proposal]:
    """Runs of entries that hold the next hunk."""
    entries = file.entries(node)
    first, last = held([(entry.start, entry.end) for entry in entries], *state.span(0))
    for one, other in ((first, last), (first - 1, last), (first, last + 1)):
        if not 0 <= one <= other < len(entries):
            continue
        low, high = entries[one].start, entries[other].end
        count = held_hunks(state, high)
        if not count or state.span(0)[0] < low or file.data.count(b"\n", low, high) > SMALL:
            continue
        text = replaced_text(state, count, low, high)
        if text.strip() and not has_markers(text):
            yield (
                count,
                (
                    ReplaceYamlEntries(
                        path=path,
                        fragment=Fragment(_fragment_name(text), plain(text), ""),
                        names=names,
                        replaces=(digest(file.data[low:high]),),
                        statements=other - one + 1,
                    ),
                ),
            )


def _fragment_name(text: bytes) -> str:
    found = _NAME.search(text)
    return f"{found[0].decode()}_entries" if found else "entries"
