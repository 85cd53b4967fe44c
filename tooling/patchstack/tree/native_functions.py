"""The entries of ``native_functions.yaml``: one at a time with its place, or all of them.

The file is one long sequence whose entries begin with ``- func:`` in the first column. Where one entry is asked for,
only that one is composed as YAML: 20 lines instead of 16,000, with the same positions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import yaml

from patchstack.tree.text import line_number
from patchstack.tree.yaml_nodes import YamlSyntaxError, compose, line_of, mapping, pairs, sequence, text_of

FUNCTIONS_PATH = "aten/src/ATen/native/native_functions.yaml"
TAGS_PATH = "aten/src/ATen/native/tags.yaml"

DISPATCH_KEYS = (
    "CPU", "CUDA", "MPS", "XPU", "MTIA", "Meta", "MkldnnCPU", "ZeroTensor",
    "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional",
    "CompositeImplicitAutograd", "CompositeImplicitAutogradNestedTensor",
    "NestedTensorCPU", "NestedTensorCUDA", "NestedTensorHPU", "NestedTensorMeta", "NestedTensorXPU",
    "QuantizedCPU", "QuantizedCUDA", "QuantizedMeta",
    "SparseCPU", "SparseCUDA", "SparseMPS", "SparseMeta", "SparseXPU",
    "SparseCsrCPU", "SparseCsrCUDA", "SparseCsrMPS", "SparseCsrMeta", "SparseCsrXPU",
)  # fmt: skip
"""The keys that a ``dispatch`` map may have, of every release that the tests know."""

_ENTRY = re.compile(rb"^- func:[ \t]*([A-Za-z_0-9.]+)[ \t]*\(", re.MULTILINE)
_NEXT = re.compile(rb"^(?=[^ \t\r\n#])", re.MULTILINE)


@dataclass(frozen=True)
class DispatchKey:
    """One line of a ``dispatch`` map.

    Attributes:
        keys: the dispatch keys before the colon (``CPU, CUDA: f`` has two).
        function: the native function behind it.
        start: offset of the first byte of the keys.
        end: offset behind the function's name.
    """

    keys: tuple[str, ...]
    function: str
    start: int
    end: int


@dataclass(frozen=True)
class FunctionEntry:
    """One entry.

    Attributes:
        name: operator name with its overload (``add.Tensor``).
        start: offset of its ``- func:``.
        end: offset behind its last line, blank lines and comments that follow included.
        line: 1-based line of ``- func:``.
        schema: the text after ``func:``.
        dispatch: the dispatch lines in order; empty without a ``dispatch`` map.
        has_dispatch: whether there is a ``dispatch`` map (it may be empty).
        flow_end: offset of the closing brace of a flow-style map (``dispatch: {}``); ``None`` for a block map.
        structured_delegate: the entry whose kernels this one uses instead of its own; empty for most.
    """

    name: str
    start: int
    end: int
    line: int
    schema: str
    dispatch: tuple[DispatchKey, ...]
    has_dispatch: bool
    flow_end: int | None
    structured_delegate: str = ""

    def function_for(self, key: str) -> str | None:
        """The native function registered for a dispatch key, or ``None``."""
        return next((line.function for line in self.dispatch if key in line.keys), None)


@dataclass(frozen=True)
class FunctionFields:
    """What one entry says, wherever it stands.

    Attributes:
        schema: the text after ``func:``.
        line: 1-based line of that text.
        dispatch: the native function of each dispatch key, comma keys split, in order.
        rest: every other key with its node.
    """

    schema: str
    line: int
    dispatch: Mapping[str, str]
    rest: Mapping[str, yaml.Node]


def read_all(data: bytes) -> Iterator[FunctionFields]:
    """Every entry of a file.

    Raises:
        YamlSyntaxError: the file is not a list of entries that torchgen reads.
    """
    for node in sequence(compose(data), "functions"):
        fields = mapping(node)
        if "func" not in fields:
            raise YamlSyntaxError(line_of(node), "the entry has no 'func' key")
        func, dispatch = fields.pop("func"), fields.pop("dispatch", None)
        found = {key: function for keys, function, *_ in _dispatch_lines(dispatch) for key in keys}
        yield FunctionFields(text_of(func), line_of(func), found, fields)


def tag_names(data: bytes) -> Iterator[str]:
    """The tags that a ``tags.yaml`` declares.

    Raises:
        YamlSyntaxError: the file is not a list of them.
    """
    for node in sequence(compose(data), "tags"):
        fields = mapping(node)
        if "tag" not in fields:
            raise YamlSyntaxError(line_of(node), "the entry has no 'tag' key")
        yield text_of(fields["tag"])


def _dispatch_lines(
    node: yaml.Node | None,
) -> Iterator[tuple[tuple[str, ...], str, yaml.ScalarNode, yaml.Node]]:
    """The keys and the function of each line of a ``dispatch`` map, with their nodes."""
    seen: set[str] = set()
    for key, value in pairs(node) if node is not None else ():
        keys = tuple(filter(None, (part.strip() for part in str(key.value).split(","))))
        twice = next((one for number, one in enumerate(keys) if one in seen or one in keys[:number]), None)
        if twice is not None:
            raise YamlSyntaxError(line_of(value), f"the dispatch key {twice} stands twice")
        seen.update(keys)
        yield keys, text_of(value), key, value


class NativeFunctions:
    """The file, indexed by operator name."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._starts = [(m.group(1).decode(), m.start()) for m in _ENTRY.finditer(data)]

    @property
    def lines(self) -> dict[str, int]:
        """All operator names, overloads included, in order, each with the line of its first entry."""
        found: dict[str, int] = {}
        line, at = 1, 0
        for name, start in self._starts:
            line, at = line + self.data.count(b"\n", at, start), start
            found.setdefault(name, line)
        return found

    def find(self, name: str) -> list[FunctionEntry]:
        """All entries of that name; more than one is an error of the file.

        Raises:
            YamlSyntaxError: an entry of that name cannot be read.
        """
        return [self._entry(name, start) for found, start in self._starts if found == name]

    def texts(self) -> Iterator[tuple[str, str]]:
        """Name and text of every entry, from its ``- func:`` to the next one, whether or not it can be read."""
        ends = [*(start for _, start in self._starts[1:]), len(self.data)]
        for (name, start), end in zip(self._starts, ends, strict=True):
            yield name, self.data[start:end].decode(errors="replace")

    def _entry(self, name: str, start: int) -> FunctionEntry:
        following = _NEXT.search(self.data, start + 1)
        end = following.start() if following else len(self.data)
        line = line_number(self.data, start)
        try:
            return _read_entry(name, self.data[start:end], start, line)
        except YamlSyntaxError as error:
            raise YamlSyntaxError(line + max(error.line - 1, 0), error.problem, error.found) from None


def _read_entry(name: str, data: bytes, start: int, line: int) -> FunctionEntry:
    """The only entry of a part of the file that begins at the offset ``start``, on the line ``line``."""
    (node, *_) = sequence(compose(data), "functions")
    fields, text = mapping(node), data.decode()

    def offset(mark: yaml.Mark) -> int:
        return start + len(text[: mark.index].encode())

    dispatch = fields.get("dispatch")
    lines = tuple(
        DispatchKey(keys, function, offset(key.start_mark), offset(value.end_mark))
        for keys, function, key, value in _dispatch_lines(dispatch)
    )
    flow_end = offset(dispatch.end_mark) - 1 if isinstance(dispatch, yaml.MappingNode) and dispatch.flow_style else None
    schema, delegate = (text_of(fields[key]) if key in fields else "" for key in ("func", "structured_delegate"))
    return FunctionEntry(name, start, start + len(data), line, schema, lines, dispatch is not None, flow_end, delegate)


@lru_cache(maxsize=4)
def parse_native_functions(data: bytes) -> NativeFunctions:
    """Index a file; several edits and markers look at one."""
    return NativeFunctions(data)
