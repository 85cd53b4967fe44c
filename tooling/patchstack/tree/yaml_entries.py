"""The entries of the lists and mappings of a YAML file, each with the lines that it has to itself.

Only block style is read: an entry of a flow collection has no lines of its own, so it is nobody's place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import yaml

from patchstack.tree.hunks import split_lines
from patchstack.tree.yaml_nodes import compose


@dataclass(frozen=True)
class YamlEntry:
    """One entry.

    Attributes:
        name: the key; of a list, the text of the item or the first pair of it, as ``key: value``; empty for others.
        start: offset of its first line, the comment lines directly above included.
        end: offset behind its last line.
        line: its 1-based line.
        value: what it holds.
    """

    name: str
    start: int
    end: int
    line: int
    value: yaml.Node


class YamlFile:
    """A parsed file.

    Attributes:
        data: the file.
        root: the node that it holds; ``None`` for an empty file.
    """

    def __init__(self, data: bytes) -> None:
        """Read a file.

        Raises:
            YamlSyntaxError: the text is not YAML.
        """
        self.data = data
        self.root = compose(data)
        self._lines = split_lines(data)
        self._offsets = [0]
        for line in self._lines:
            self._offsets.append(self._offsets[-1] + len(line))

    def find(self, names: Sequence[str]) -> list[yaml.Node]:
        """Every node that the names of entries lead to, from the top."""
        found = [self.root] if self.root is not None else []
        for name in names:
            found = [entry.value for node in found for entry in self.entries(node) if entry.name == name]
        return found

    def entries(self, node: yaml.Node) -> list[YamlEntry]:
        """The entries of a list or mapping in block style, in order; none of anything else."""
        if not isinstance(node, yaml.CollectionNode) or node.flow_style or not node.value:
            return []
        is_list = isinstance(node, yaml.SequenceNode)
        items = [(item, item) if is_list else item for item in node.value]
        column = node.start_mark.column
        starts = [key.start_mark.line for key, _ in items]
        if any(not self._begins(line, column, is_list=is_list) for line in starts) or len({*starts}) < len(starts):
            return []
        ends = [*starts[1:], self._last_line(node)]
        return [
            YamlEntry(_name(key, is_list=is_list), *self._span(start, end, column), start + 1, value)
            for (key, value), start, end in zip(items, starts, ends, strict=True)
        ]

    def _begins(self, line: int, column: int, *, is_list: bool) -> bool:
        text = self._lines[line]
        # An entry of a list of mappings begins behind its dash: `- key: value` is two collections on one line.
        return not text[:column].strip(b" -") and (not is_list or text[column : column + 1] == b"-")

    def _last_line(self, node: yaml.Node) -> int:
        mark = node.end_mark
        return int(mark.line) + bool(mark.column) if mark.line < len(self._lines) else len(self._lines)

    def _span(self, start: int, end: int, column: int) -> tuple[int, int]:
        while end > start + 1 and self._is_between(self._lines[end - 1], column):
            end -= 1
        first = start
        while first and self._is_comment(self._lines[first - 1], column):
            first -= 1
        return self._offsets[first], self._offsets[end]

    @staticmethod
    def _is_comment(line: bytes, column: int) -> bool:
        return not line[:column].strip(b" ") and line[column : column + 1] == b"#"

    @staticmethod
    def _is_between(line: bytes, column: int) -> bool:
        """Whether a line is blank, or a comment that is not inside an entry of a collection at a column."""
        bare = line.lstrip(b" ")
        return not bare.strip() or (bare.startswith(b"#") and len(line) - len(bare) <= column)

    def collections_around(self, start: int, end: int) -> Iterator[tuple[tuple[str, ...], yaml.Node]]:
        """The collections with a stretch of the file among their entries, outermost first, and the way to each."""
        names, node = list[str](), self.root
        while node is not None:
            entries = self.entries(node)
            if not entries:
                return
            yield tuple(names), node
            inside = next((e for e in entries if e.start <= start and end <= e.end), None)
            if inside is None or not inside.name:
                return
            names.append(inside.name)
            node = inside.value


def _name(key: yaml.Node, *, is_list: bool) -> str:
    if isinstance(key, yaml.ScalarNode):
        return str(key.value)
    if is_list and isinstance(key, yaml.MappingNode) and key.value:
        first, value = key.value[0]
        if isinstance(first, yaml.ScalarNode) and isinstance(value, yaml.ScalarNode):
            return f"{first.value}: {value.value}"
    return ""


@lru_cache(maxsize=8)
def parse_yaml(data: bytes) -> YamlFile:
    """Parse a file; the next edit of the same file starts from the content this one left."""
    return YamlFile(data)


def shape(node: yaml.Node | None, besides: yaml.Node | None = None) -> object:
    """What a node says, whatever its layout; of one node below it nothing but that it is there."""
    if node is besides:
        return None
    if isinstance(node, yaml.SequenceNode):
        return [shape(item, besides) for item in node.value]
    if isinstance(node, yaml.MappingNode):
        return {"": [(shape(key, besides), shape(value, besides)) for key, value in node.value]}
    return (node.tag, node.value) if node is not None else ()
