"""The entries of ``native_functions.yaml``, one at a time.

The file is one long sequence whose entries begin with ``- func:`` in the first column. Only the entry that is asked
for is composed as YAML: 20 lines instead of 16,000, with the same positions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import yaml

from patchstack.tree.text import line_number

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

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
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


class YamlSyntaxError(Exception):
    """An entry is not the YAML that torchgen reads.

    Attributes:
        line: 1-based line of the problem.
        problem: what is wrong.
    """

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"line {line}: {problem}")
        self.line = line
        self.problem = problem


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

    def _entry(self, name: str, start: int) -> FunctionEntry:
        following = _NEXT.search(self.data, start + 1)
        end = following.start() if following else len(self.data)
        line = line_number(self.data, start)
        text, fields = self._fields(start, end, line)
        dispatch = fields.get("dispatch")
        lines: tuple[DispatchKey, ...] = ()
        if dispatch is not None:
            if not isinstance(dispatch, yaml.MappingNode):
                raise YamlSyntaxError(line + dispatch.start_mark.line, "dispatch is not a mapping")
            for key, value in dispatch.value:
                _require_text(key, line)
                _require_text(value, line)
            lines = tuple(self._dispatch_line(text, start, key, value) for key, value in dispatch.value)
            keys = [key for dispatch_line in lines for key in dispatch_line.keys]
            twice = next((key for key in keys if keys.count(key) > 1), None)
            if twice is not None:
                raise YamlSyntaxError(line + dispatch.start_mark.line, f"the dispatch key {twice} stands twice")
        flow_end = None
        if dispatch is not None and dispatch.flow_style:
            flow_end = start + _bytes_before(text, dispatch.end_mark.index) - 1
        schema = fields["func"].value if "func" in fields else ""
        delegate = str(fields["structured_delegate"].value) if "structured_delegate" in fields else ""
        return FunctionEntry(name, start, end, line, schema, lines, dispatch is not None, flow_end, delegate)

    def _fields(self, start: int, end: int, line: int) -> tuple[str, dict[str, yaml.Node]]:
        """The text of one entry, and its fields as YAML nodes with positions in that text."""
        try:
            text = self.data[start:end].decode()
        except UnicodeDecodeError as error:
            at = line + self.data.count(b"\n", start, start + error.start)
            raise YamlSyntaxError(at, "the text is not UTF-8") from None
        try:
            node = yaml.compose(text, Loader=_LOADER)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            problem = str(getattr(error, "problem", None) or error).splitlines()[0]
            raise YamlSyntaxError(line + (mark.line if mark else 0), problem) from None
        if not isinstance(node, yaml.SequenceNode) or not isinstance(node.value[0], yaml.MappingNode):
            raise YamlSyntaxError(line, "the entry is not a mapping")
        fields: dict[str, yaml.Node] = {}
        for key, value in node.value[0].value:
            _require_text(key, line)
            if key.value in fields:
                raise YamlSyntaxError(line + key.start_mark.line, f"the key '{key.value}' stands twice in the entry")
            fields[key.value] = value
        for name in ("func", "structured_delegate"):
            if name in fields:
                _require_text(fields[name], line)
        return text, fields

    @staticmethod
    def _dispatch_line(text: str, start: int, key: yaml.Node, value: yaml.Node) -> DispatchKey:
        return DispatchKey(
            tuple(part.strip() for part in str(key.value).split(",")),
            str(value.value),
            start + _bytes_before(text, key.start_mark.index),
            start + _bytes_before(text, value.end_mark.index),
        )


@lru_cache(maxsize=4)
def parse_native_functions(data: bytes) -> NativeFunctions:
    """Index a file; several edits and markers look at one."""
    return NativeFunctions(data)


def _require_text(node: yaml.Node, line: int) -> None:
    """Refuse a list or a mapping; aliases can make the text of a small one endless."""
    if not isinstance(node, yaml.ScalarNode):
        raise YamlSyntaxError(line + node.start_mark.line, "a text was expected, not a list or a mapping")


def _bytes_before(text: str, index: int) -> int:
    return len(text[:index].encode())
