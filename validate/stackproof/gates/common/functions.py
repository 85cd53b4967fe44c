"""``native_functions.yaml`` and ``tags.yaml`` of one tree, read with line numbers and with clear errors.

The YAML is composed, not loaded: that keeps the line of every entry and shows duplicate keys, which a loader drops
silently. Whatever is wrong with the file ends in one :class:`MalformedTreeError` that names the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import yaml

from patchstack.tree.git import Tree
from patchstack.tree.native_functions import FUNCTIONS_PATH as FUNCTIONS_PATH
from patchstack.tree.native_functions import TAGS_PATH as TAGS_PATH
from stackproof.gates.common.errors import MalformedTreeError
from stackproof.gates.common.schema import Schema, parse_schema

LARGEST_FILE = 16 << 20
"""Bytes; the real file has 0.6 MB. Anything near this is not a ``native_functions.yaml``."""

_MERGE_MARKER = re.compile(rb"^(?:<{7}|>{7}|={7})(?: .*)?\r?$", re.MULTILINE)
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class NativeFunction:
    """One entry of ``native_functions.yaml``.

    Attributes:
        schema: the parsed ``func:`` value.
        line: 1-based line of the ``func:`` value.
        dispatch: dispatch key to kernel, comma keys split, in key order of the file.
        tags: names of its tags.
        variants: ``function`` and/or ``method``.
        python_module: ``nn``, ``linalg``, ...; empty for plain ``torch``.
        autogen: operator names that torchgen derives from this entry.
        rest: every other key with its value as text.
    """

    schema: Schema
    line: int
    dispatch: Mapping[str, str]
    tags: frozenset[str] = frozenset()
    variants: frozenset[str] = frozenset({"function"})
    python_module: str = ""
    autogen: tuple[str, ...] = ()
    rest: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_core(self) -> bool:
        """Whether the operator belongs to the core ATen set, which promises more."""
        return "core" in self.tags


@dataclass(frozen=True)
class NativeFunctions:
    """All entries of one tree.

    Attributes:
        by_name: ``aten::add.Tensor`` to entry, in file order.
        tags: tag names that ``tags.yaml`` declares; ``None`` where the tree has no such file.
    """

    by_name: Mapping[str, NativeFunction]
    tags: frozenset[str] | None = None


def read_functions(tree: Tree) -> NativeFunctions | None:
    """Read both files of a tree; ``None`` where it has no ``native_functions.yaml``.

    Raises:
        MalformedTreeError: one of the files cannot be read as what it should be.
    """
    content = read_limited(tree, FUNCTIONS_PATH)
    if content is None:
        return None
    entries: dict[str, NativeFunction] = {}
    for function in _entries(content):
        first = entries.setdefault(function.schema.name, function)
        if first is not function:
            raise _bad(FUNCTIONS_PATH, function.line, f"{function.schema.name} is defined twice", f"line {first.line}")
    tags = read_limited(tree, TAGS_PATH)
    return NativeFunctions(entries, None if tags is None else frozenset(_tag_names(tags)))


def read_limited(tree: Tree, path: str) -> bytes | None:
    """The file at ``path``, or ``None``.

    Raises:
        MalformedTreeError: it is larger than :data:`LARGEST_FILE`; its content is not loaded then.
    """
    blob = tree.blob_hash(path)
    size = int(tree.repository.text("cat-file", "-s", blob)) if blob else 0
    if size > LARGEST_FILE:
        raise MalformedTreeError(
            "the file is too large to be what its name says",
            where=path,
            expected=f"at most {LARGEST_FILE >> 20} MiB",
            found=f"{size / (1 << 20):.0f} MiB",
        )
    return tree.read(path)


def compose(content: bytes, path: str) -> yaml.Node | None:
    """The YAML node graph of a file, checked for merge markers and duplicate keys.

    Raises:
        MalformedTreeError: the content is not YAML, is not UTF-8, or has one of the faults above.
    """
    marker = _MERGE_MARKER.search(content)
    if marker:
        line = content.count(b"\n", 0, marker.start()) + 1
        raise _bad(path, line, "unresolved merge conflict", marker[0][:20].decode(errors="replace").strip())
    try:
        text = content.decode()
        node: yaml.Node | None = yaml.compose(text, Loader=_Loader)
    except UnicodeDecodeError as error:
        raise _bad(path, content.count(b"\n", 0, error.start) + 1, "the file is not UTF-8", "") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise _bad(path, mark.line + 1 if mark else 0, f"not YAML: {error.problem or error.context}", "") from None
    except yaml.reader.ReaderError as error:
        raise _bad(path, 0, f"not YAML: {error.reason}", f"character {error.character!r}") from None
    except RecursionError:
        raise _bad(path, 0, "not YAML that can be read: it is nested too deeply", "") from None
    return node


def mapping_items(node: yaml.Node, path: str) -> Iterator[tuple[str, yaml.Node]]:
    """Keys and value nodes of a YAML mapping.

    Raises:
        MalformedTreeError: the node is no mapping, a key is not plain text, or a key stands there twice.
    """
    if not isinstance(node, yaml.MappingNode):
        raise _bad(path, _line(node), "expected a mapping", _kind(node))
    seen: dict[str, int] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise _bad(path, _line(key), "expected a plain key", _kind(key))
        if key.value in seen:
            first = f"the first on line {seen[key.value]}"
            raise _bad(path, _line(key), f"the key {key.value!r} is there twice", first)
        seen[key.value] = _line(key)
        yield key.value, value


def _entries(content: bytes) -> Iterator[NativeFunction]:
    top = compose(content, FUNCTIONS_PATH)
    if not isinstance(top, yaml.SequenceNode):
        raise _bad(FUNCTIONS_PATH, 1, "expected a list of functions", _kind(top))
    for node in top.value:
        yield _entry(node)


def _entry(node: yaml.Node) -> NativeFunction:
    fields = dict(mapping_items(node, FUNCTIONS_PATH))
    func = fields.pop("func", None)
    if func is None:
        raise _bad(FUNCTIONS_PATH, _line(node), "the entry has no 'func' key", "")
    text = _scalar(func)
    try:
        schema = parse_schema(text)
    except ValueError as error:
        raise _bad(FUNCTIONS_PATH, _line(func), f"the schema cannot be read: {error}", repr(text[:120])) from None
    return NativeFunction(
        schema=schema,
        line=_line(func),
        dispatch=_dispatch(fields.pop("dispatch", None)),
        tags=frozenset(_words(fields.pop("tags", None))),
        variants=frozenset(_words(fields.pop("variants", None))) or frozenset({"function"}),
        python_module="".join(_words(fields.pop("python_module", None))),
        autogen=tuple(_words(fields.pop("autogen", None))),
        rest={key: yaml.serialize(value) for key, value in fields.items()},
    )


def _dispatch(node: yaml.Node | None) -> Mapping[str, str]:
    if node is None:
        return {}
    found: dict[str, str] = {}
    for keys, value in mapping_items(node, FUNCTIONS_PATH):
        for key in filter(None, (key.strip() for key in keys.split(","))):
            if key in found:
                raise _bad(FUNCTIONS_PATH, _line(value), f"the dispatch key {key} is there twice", "")
            found[key] = _scalar(value)
    return found


def _words(node: yaml.Node | None) -> Iterator[str]:
    """The words of ``a``, ``a, b`` or ``[a, b]``."""
    if node is None:
        return
    parts = node.value if isinstance(node, yaml.SequenceNode) else [node]
    for part in parts:
        yield from filter(None, (word.strip() for word in _scalar(part).split(",")))


def _tag_names(content: bytes) -> Iterator[str]:
    top = compose(content, TAGS_PATH)
    if not isinstance(top, yaml.SequenceNode):
        raise _bad(TAGS_PATH, 1, "expected a list of tags", "")
    for node in top.value:
        fields = dict(mapping_items(node, TAGS_PATH))
        if "tag" not in fields:
            raise _bad(TAGS_PATH, _line(node), "the entry has no 'tag' key", "")
        yield _scalar(fields["tag"], TAGS_PATH)


def _scalar(node: yaml.Node, path: str = FUNCTIONS_PATH) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise _bad(path, _line(node), "expected plain text", _kind(node))
    return str(node.value)


def _kind(node: yaml.Node | None) -> str:
    return "an empty file" if node is None else f"a {type(node).__name__.removesuffix('Node').lower()}"


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _bad(path: str, line: int, problem: str, found: str) -> MalformedTreeError:
    return MalformedTreeError(problem, where=f"{path}:{line}" if line else path, found=found)
