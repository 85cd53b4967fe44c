"""Edits of YAML files: put entries behind one that is there, or instead of some that the series knows."""

from __future__ import annotations

import textwrap
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import yaml

from patchstack.edits.model import Edit, Merge, Outcome, Spot, Status
from patchstack.edits.spacing import USUAL, Spacing
from patchstack.manifest.closest import closest
from patchstack.manifest.overlay import Fragment
from patchstack.tree.git import Tree
from patchstack.tree.text import Splice, apply_splices, digest, find_lines, line_ending, lines_end, with_line_ending
from patchstack.tree.yaml_entries import YamlEntry, YamlFile, parse_yaml, shape
from patchstack.tree.yaml_nodes import YamlSyntaxError, line_of, pairs

YAML_SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True, kw_only=True)
class YamlEdit(Edit):
    """An edit of the entries of one list or mapping.

    Attributes:
        fragment: the entries that land, indented as they land.
        names: the entries that lead to the list or mapping, from the top.
    """

    merges: ClassVar[tuple[Status, ...]] = (Status.CONFLICT,)
    fragment: Fragment
    names: tuple[str, ...] = ()

    @property
    @abstractmethod
    def anchor(self) -> str:
        """What is looked for, in words."""

    @abstractmethod
    def _planned(self, tree: Tree, file: YamlFile, node: yaml.Node) -> Outcome:
        """The outcome where the names lead to one collection."""

    @property
    def _where(self) -> str:
        return " / ".join(self.names) or "the top of the file"

    def plan(self, tree: Tree) -> Outcome:
        data = tree.read(self.path)
        if data is None:
            return self.missing_file(tree)
        try:
            file = parse_yaml(data)
        except YamlSyntaxError as error:
            return self.failed(self.anchor, f"the file cannot be read: {error}")
        hits = file.find(self.names)
        if len(hits) == 1:
            return self._planned(tree, file, hits[0])
        problem = f"{len(hits)} places match '{self._where}', expected 1"
        return self.failed(self.anchor, problem, matches=map(line_of, hits), nearest=self._nearest(file))

    def _nearest(self, file: YamlFile) -> list[Spot]:
        for count, name in enumerate(self.names):
            if not file.find(self.names[: count + 1]):
                known = {e.name: e.line for node in file.find(self.names[:count]) for e in file.entries(node) if e.name}
                return [Spot(found, known[found]) for found in closest(name, known)]
        return []

    def _there(self, file: YamlFile, node: yaml.Node) -> tuple[int, int] | None:
        """Where the fragment stands already as whole entries."""
        entries = file.entries(node)
        starts, ends = {entry.start for entry in entries}, {entry.end for entry in entries}
        text = self.fragment.text
        at = find_lines(file.data, text, entries[0].start) if entries else None
        while at is not None and at < entries[-1].end:
            if at in starts and (end := lines_end(file.data, at, text)) in ends:
                return at, end
            at = find_lines(file.data, text, at + 1)
        return None

    def _made(self, tree: Tree, file: YamlFile, node: yaml.Node, splice: Splice, *lines: int) -> Outcome:
        """The outcome of a change of some lines of a collection, unless something else would become another."""
        after = apply_splices(file.data, [splice])
        problem = self._problem(file, node, after, splice)
        if problem:
            return self.failed(self.anchor, problem, matches=lines)
        return Outcome(Status.APPLIES, self.anchor, lines, rung=self.rung(tree), after=after)

    def _problem(self, file: YamlFile, node: yaml.Node, data: bytes, splice: Splice) -> str:
        try:
            after = YamlFile(data)
            hits = after.find(self.names)
            if len(hits) == 1 and isinstance(hits[0], yaml.MappingNode):
                list(pairs(hits[0]))
        except YamlSyntaxError as error:
            return f"the file could no longer be read: {error}"
        if len(hits) != 1 or shape(file.root, node) != shape(after.root, hits[0]):
            return "the entries would change what is around them"
        stays = [
            [_shape(one) for one in entries if one.end <= splice.start or one.start >= end]
            for entries, end in (
                (file.entries(node), splice.end),
                (after.entries(hits[0]), splice.start + len(splice.replacement)),
            )
        ]
        return "" if stays[0] == stays[1] else "the entries would change those around them"

    def merge_problem(self, merge: Merge) -> str:
        try:
            found = [YamlFile(text).root for text in (merge.base, merge.edited, merge.current, merge.merged)]
        except YamlSyntaxError as error:
            return f"the file could no longer be read: {error}"
        return "" if shape(found[2]) != shape(found[3]) else "the text would merge, and the entries would not be in it"

    @property
    def result(self) -> tuple[str, ...]:
        return (self.path, "text", self.fragment.text.decode(errors="replace"))


def _shape(entry: YamlEntry) -> tuple[str, object]:
    return entry.name, shape(entry.value)


@dataclass(frozen=True, kw_only=True)
class PlaceYamlEntries(YamlEdit):
    """Add entries to a list or mapping of YAML, behind one that is there.

    Attributes:
        after: name of that entry.
        spacing: the blank lines around them.
    """

    kind: ClassVar[str] = "place-fragment"
    after: str
    spacing: Spacing = USUAL

    def describe(self) -> str:
        return f"add '{self.fragment.name}' {self.anchor}"

    @property
    def anchor(self) -> str:
        return f"after {self.after} in {self._where}"

    def _planned(self, tree: Tree, file: YamlFile, node: yaml.Node) -> Outcome:
        there = self._there(file, node)
        if there is not None:
            return Outcome(Status.SATISFIED, self.anchor, (file.data.count(b"\n", 0, there[0]) + 1,))
        entries = file.entries(node)
        own = set(_names_of(self.fragment.text))
        clashes = [entry for entry in entries if entry.name and entry.name in own]
        if clashes:
            problem = f"{', '.join(entry.name for entry in clashes)} is there already, and not as the fragment has it"
            return self.failed(self.anchor, problem, matches=(e.line for e in clashes), status=Status.DIFFERENT)
        hits = [entry for entry in entries if entry.name == self.after]
        if len(hits) != 1:
            known = {entry.name: entry.line for entry in entries if entry.name}
            nearest = [Spot(name, known[name]) for name in closest(self.after, known)]
            problem = f"{len(hits)} entries match '{self.anchor}', expected 1"
            return self.failed(self.anchor, problem, matches=(e.line for e in hits), nearest=nearest)
        splice = self.spacing.splice(file.data, hits[0].end, self.fragment.text, (0, 0))
        return self._made(tree, file, node, splice, hits[0].line)


@dataclass(frozen=True, kw_only=True)
class ReplaceYamlEntries(YamlEdit):
    """Put a fragment where some entries of YAML stand one behind the other, the comment lines above them included.

    Attributes:
        replaces: digests (:func:`patchstack.tree.text.digest`) of the texts that may be replaced.
        statements: how many entries go.
    """

    kind: ClassVar[str] = "replace-statements"
    replaces: tuple[str, ...]
    statements: int

    def describe(self) -> str:
        return f"replace {self.statements} {'entries' if self.statements > 1 else 'entry'} of {self._where}"

    @property
    def anchor(self) -> str:
        return f"entries of {self._where}"

    def _planned(self, tree: Tree, file: YamlFile, node: yaml.Node) -> Outcome:
        hits = [run for run in runs(file, node, self.statements) if digest(file.data[slice(*run)]) in self.replaces]
        there = self._there(file, node)
        lines = [file.data.count(b"\n", 0, start) + 1 for start, _ in hits]
        if there is not None and all(there[0] <= start and end <= there[1] for start, end in hits):
            return Outcome(Status.SATISFIED, self.anchor, (file.data.count(b"\n", 0, there[0]) + 1,))
        if len(hits) != 1:
            problem = f"{len(hits)} runs of entries there are what the series knows, expected 1"
            return self.failed(self.anchor, problem, matches=lines)
        (start, end) = hits[0]
        text = with_line_ending(self.fragment.text, line_ending(file.data))
        text = text if file.data[start:end].endswith(b"\n") else text.rstrip(b"\r\n")
        return self._made(tree, file, node, Splice(start, end, text), *lines)


def runs(file: YamlFile, node: yaml.Node, count: int) -> Iterator[tuple[int, int]]:
    """Offsets of every run of neighbouring entries of a list or mapping."""
    entries = file.entries(node)
    for first, last in zip(entries, entries[count - 1 :], strict=False):
        yield first.start, last.end


def _names_of(text: bytes) -> Iterator[str]:
    """What the entries of a fragment are called."""
    try:
        own = YamlFile(textwrap.dedent(text.decode(errors="replace")).encode())
    except YamlSyntaxError:
        return
    if own.root is not None:
        yield from (entry.name for entry in own.entries(own.root) if entry.name)
