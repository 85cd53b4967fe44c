"""YAML of a tree as nodes with their lines, read strictly.

It is composed, not loaded: that keeps the place of everything, and shows a key that stands twice, of which a loader
silently drops one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MERGE_MARKER = re.compile(rb"^(?:<{7}|>{7}|={7})(?: .*)?\r?$", re.MULTILINE)


class YamlSyntaxError(Exception):
    """A text is not the YAML that it should be.

    Attributes:
        line: 1-based line of the problem; 0 where none can be named.
        problem: what is wrong.
        found: what stands there, empty where the problem says it.
    """

    def __init__(self, line: int, problem: str, found: str = "") -> None:
        super().__init__(f"line {line}: {problem}")
        self.line = line
        self.problem = problem
        self.found = found


def compose(data: bytes) -> yaml.Node | None:
    """The nodes of a text; ``None`` for one with nothing in it.

    Raises:
        YamlSyntaxError: an unresolved merge conflict, not UTF-8, not YAML, or nested too deeply.
    """
    marker = _MERGE_MARKER.search(data)
    if marker:
        line = data.count(b"\n", 0, marker.start()) + 1
        raise YamlSyntaxError(line, "unresolved merge conflict", marker[0][:20].decode(errors="replace").strip())
    try:
        node: yaml.Node | None = yaml.compose(data.decode(), Loader=_LOADER)
    except UnicodeDecodeError as error:
        raise YamlSyntaxError(data.count(b"\n", 0, error.start) + 1, "the text is not UTF-8") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlSyntaxError(mark.line + 1 if mark else 0, f"not YAML: {error.problem or error.context}") from None
    except yaml.reader.ReaderError as error:
        raise YamlSyntaxError(0, f"not YAML: {error.reason}", f"character {error.character!r}") from None
    except RecursionError:
        raise YamlSyntaxError(0, "not YAML that can be read: it is nested too deeply") from None
    return node


def sequence(node: yaml.Node | None, what: str) -> list[yaml.Node]:
    """The items of a list of ``what``.

    Raises:
        YamlSyntaxError: the node is no list.
    """
    if not isinstance(node, yaml.SequenceNode):
        raise YamlSyntaxError(line_of(node) if node else 1, f"expected a list of {what}", _kind(node))
    return list(node.value)


def pairs(node: yaml.Node) -> Iterator[tuple[yaml.ScalarNode, yaml.Node]]:
    """Keys and values of a mapping.

    Raises:
        YamlSyntaxError: the node is no mapping, a key is not plain text, or a key stands there twice.
    """
    if not isinstance(node, yaml.MappingNode):
        raise YamlSyntaxError(line_of(node), "expected a mapping", _kind(node))
    seen: dict[str, int] = {}
    for key, value in node.value:
        name = text_of(key)
        if name in seen:
            raise YamlSyntaxError(line_of(key), f"the key '{name}' stands twice", f"the first on line {seen[name]}")
        seen[name] = line_of(key)
        yield key, value


def mapping(node: yaml.Node) -> dict[str, yaml.Node]:
    """The values of a mapping by key; it raises what :func:`pairs` raises."""
    return {str(key.value): value for key, value in pairs(node)}


def text_of(node: yaml.Node) -> str:
    """The text of a node; aliases can make the text of a small list endless, so that only a scalar has one.

    Raises:
        YamlSyntaxError: a list or a mapping.
    """
    if not isinstance(node, yaml.ScalarNode):
        raise YamlSyntaxError(line_of(node), "expected plain text", _kind(node))
    return str(node.value)


def words(node: yaml.Node | None) -> tuple[str, ...]:
    """The words of ``a``, ``a, b`` or ``[a, b]``; none of a key that is not there."""
    if node is None:
        return ()
    parts = node.value if isinstance(node, yaml.SequenceNode) else [node]
    return tuple(word.strip() for part in parts for word in text_of(part).split(",") if word.strip())


def line_of(node: yaml.Node) -> int:
    """1-based line where a node begins."""
    return int(node.start_mark.line) + 1


def _kind(node: yaml.Node | None) -> str:
    return "an empty file" if node is None else f"a {type(node).__name__.removesuffix('Node').lower()}"
