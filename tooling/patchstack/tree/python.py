"""The structure of a Python file: classes, functions, and the entries of literal lists, dicts and call arguments.

tree-sitter finds the place; the bytes are spliced, so comments, quotes and layout around an edit stay as they are.
Entries are compared as syntax (``ast``), so a change of quotes, line breaks or a trailing comma does not hide one.
"""

from __future__ import annotations

import ast
import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import tree_sitter_python
from tree_sitter import Language, Node, Parser, Tree

from patchstack.tree.python_layout import Brackets, Entry
from patchstack.tree.text import Splice, apply_splices, indentation, line_end, line_number, line_start, one_splice

_NESTING = (
    "if_statement",
    "elif_clause",
    "else_clause",
    "try_statement",
    "except_clause",
    "finally_clause",
    "with_statement",
    "block",
)
_COMMENT_OR_BLANK = re.compile(rb"([ \t]*)(#[^\n]*)?(?:\r?\n|\Z)")
_CONTAINERS = ("list", "tuple", "set", "dictionary", "argument_list")


@dataclass(frozen=True)
class Step:
    """One step down into a Python file.

    Attributes:
        kind: ``class``, ``function``, ``assign`` (the value bound to a name), ``call`` (a call of a name whose first
            argument is ``argument``, anywhere below), ``keyword`` (the value of a keyword argument) or ``key`` (the
            value of a dict entry).
        name: the name of the class, function, variable, callee or keyword, or source of the key.
        argument: source of the first argument of a ``call``; empty for the other kinds.
    """

    kind: str
    name: str
    argument: str = ""

    def __str__(self) -> str:
        return f"call {self.name}({self.argument}, ...)" if self.kind == "call" else f"{self.kind} {self.name}"


@dataclass(frozen=True)
class Member:
    """One member of a class.

    Attributes:
        name: name of the method, nested class or variable.
        start: offset of its first byte, decorators included.
        end: offset behind its last byte.
    """

    name: str
    start: int
    end: int


def same_expression(left: str, right: str) -> bool:
    """Whether two pieces of source are the same expression, layout and quotes aside."""
    first, second = _normal(left), _normal(right)
    return first is not None and first == second


@lru_cache(maxsize=4096)
def _normal(source: str) -> str | None:
    """One entry as syntax: an expression, ``*rest``, ``**rest`` or ``name=value``; ``None`` for anything else."""
    try:
        call = ast.parse(f"_(\n{source.strip()}\n)", mode="eval").body
    except (SyntaxError, ValueError):
        return None
    is_one = isinstance(call, ast.Call) and len(call.args) + len(call.keywords) == 1
    return ast.dump(call) if is_one else None


def is_entry(source: str) -> bool:
    """Whether a piece of source can be one entry of a container."""
    return _normal(source) is not None


@lru_cache(maxsize=1)
def _parser() -> Parser:
    return Parser(Language(tree_sitter_python.language()))


class PythonFile:
    """A parsed Python file.

    Attributes:
        data: the file as it is.
        broken: whether it is not valid Python to the grammar.
    """

    def __init__(self, data: bytes, tree: Tree | None = None) -> None:
        self.data = data
        self._tree = _parser().parse(data) if tree is None else _parser().parse(data, tree)
        self.root = self._tree.root_node
        self.broken = self.root.has_error

    def spliced(self, splices: Iterable[Splice]) -> PythonFile:
        """The file with splices applied, parsed from this one: a fraction of the time of parsing it anew."""
        ordered = sorted(splices, key=lambda splice: (splice.start, splice.end), reverse=True)
        tree = self._tree.copy()
        for splice in ordered:  # from the end, so that the offsets before it stay
            new_end = splice.start + len(splice.replacement)
            start_point = self._point(splice.start)
            tail = splice.replacement.rpartition(b"\n")[2]
            rows = splice.replacement.count(b"\n")
            column = len(tail) if rows else start_point[1] + len(tail)
            tree.edit(
                start_byte=splice.start,
                old_end_byte=splice.end,
                new_end_byte=new_end,
                start_point=start_point,
                old_end_point=self._point(splice.end),
                new_end_point=(start_point[0] + rows, column),
            )
        return remember_python(PythonFile(apply_splices(self.data, ordered), tree))

    def _point(self, offset: int) -> tuple[int, int]:
        return self.line(offset) - 1, offset - line_start(self.data, offset)

    def line(self, offset: int) -> int:
        """The 1-based line of an offset."""
        return line_number(self.data, offset)

    def find(self, steps: tuple[Step, ...]) -> list[Node]:
        """All nodes that the steps lead to; for classes and functions the definition, decorators left out."""
        found = [self.root]
        for step in steps:
            found = [hit for node in found for hit in self._step(node, step)]
        return found

    def names(self, node: Node, kind: str) -> list[str]:
        """The names of the classes, functions or variables (``assign``) in a body."""
        if kind in ("class", "function"):
            return [self._text(n.child_by_field_name("name")) for n in self._definitions(node, kind)]
        return [self._text(n.child_by_field_name("left")) for n in self._below(node, ("assignment",))]

    def scopes(self, node: Node) -> Iterator[tuple[str, str, Node]]:
        """Name, kind (``class``, ``function``, ``assign``) and node of all that a body binds, also under ``if``."""
        for kind in ("class", "function"):
            for found in self._definitions(node, kind):
                yield self._text(found.child_by_field_name("name")), kind, found
        for found in self._below(node, ("assignment",)):
            yield self._text(found.child_by_field_name("left")), "assign", found

    def alternatives(self, node: Node, step: Step) -> dict[str, int]:
        """What one more step of the same kind below ``node`` could have named, each with its line."""
        if step.kind in ("class", "function"):
            found = [n.child_by_field_name("name") for n in self._definitions(node, step.kind)]
        elif step.kind == "assign":
            found = [n.child_by_field_name("left") for n in self._below(node, ("assignment",))]
        elif step.kind == "call":
            found = [_first_argument(call) for call in self._containing(node, step.name.encode(), "call")]
        elif step.kind == "key":
            found = [child.child_by_field_name("key") for child in node.named_children]
        else:
            arguments = node.child_by_field_name("arguments") if node.type == "call" else None
            found = [child.child_by_field_name("name") for child in (arguments.named_children if arguments else [])]
        return {self._text(name): self.line(name.start_byte) for name in found if name is not None}

    def entries(self, container: Node) -> list[Entry]:
        """The entries of a literal or an argument list, comments left out."""
        entries = []
        for child in container.named_children:
            if child.type == "comment":
                continue
            key = child.child_by_field_name("key") if child.type == "pair" else None
            entries.append(Entry(child.start_byte, child.end_byte, self._text(key or child), self._text(child)))
        return entries

    def brackets(self, container: Node) -> Brackets:
        """A container as its brackets and entries."""
        opening, closing = container.start_byte + 1, container.end_byte - 1
        return Brackets(self.data, opening, closing, self.entries(container), is_tuple=container.type == "tuple")

    def members(self, node: Node) -> list[Member]:
        """The methods, nested classes and assigned names of a class, in order."""
        return [member for child in node_body(node).named_children for member in self._member(child)]

    def class_end(self, node: Node) -> int:
        """Offset behind the last line of a class body, comments of its depth included: where a further member goes."""
        inner = [child for child in node_body(node).named_children if child.type != "comment"]
        last = inner[-1] if inner else node  # which the grammar reads, though it is no Python
        end = line_end(self.data, max(last.end_byte - 1, 0))
        indent = len(indentation(self.data, node_body(node).start_byte))
        at = end
        while at < len(self.data) and (line := _COMMENT_OR_BLANK.match(self.data, at)):
            if line.group(2) and len(line.group(1)) < indent:
                break
            at = line.end()
            end = at if line.group(2) else end
        return end

    def _member(self, child: Node) -> Iterator[Member]:
        target = child.child_by_field_name("definition") if child.type == "decorated_definition" else child
        if target is None:
            return
        if target.type in ("function_definition", "class_definition"):
            yield Member(self._text(target.child_by_field_name("name")), child.start_byte, child.end_byte)
        elif target.type == "expression_statement":
            for inner in target.named_children:
                if inner.type == "assignment":
                    yield Member(self._text(inner.child_by_field_name("left")), child.start_byte, child.end_byte)

    def _step(self, node: Node, step: Step) -> Iterator[Node]:
        if step.kind in ("class", "function"):
            for found in self._definitions(node, step.kind):
                if self._text(found.child_by_field_name("name")) == step.name:
                    yield found
        elif step.kind == "assign":
            for found in self._below(node, ("assignment",)):
                value = found.child_by_field_name("right")
                if value is not None and self._text(found.child_by_field_name("left")) == step.name:
                    yield value
        elif step.kind == "call":
            yield from self._calls(node, step)
        elif step.kind == "key":
            for child in node.named_children if node.type == "dictionary" else []:
                key, value = child.child_by_field_name("key"), child.child_by_field_name("value")
                if value is not None and same_expression(self._text(key), step.name):
                    yield value
        elif step.kind == "keyword":
            arguments = node.child_by_field_name("arguments") if node.type == "call" else None
            for child in arguments.named_children if arguments else []:
                if child.type == "keyword_argument" and self._text(child.child_by_field_name("name")) == step.name:
                    value = child.child_by_field_name("value")
                    if value is not None:
                        yield value

    def _calls(self, node: Node, step: Step) -> Iterator[Node]:
        name, argument = step.name.encode(), step.argument.strip("\"'").encode()
        for found in self._containing(node, argument, "call"):
            callee, first = found.child_by_field_name("function"), _first_argument(found)
            if callee is None or first is None or callee.text != name:
                continue
            if same_expression(self._text(first), step.argument):
                yield found

    def _containing(self, node: Node, text: bytes, kind: str) -> Iterator[Node]:
        """Nodes of ``kind`` around each occurrence of ``text``; walks up from there instead of over the whole file."""
        seen: set[int] = set()
        at = self.data.find(text, node.start_byte, node.end_byte)
        while at >= 0:
            found = node.descendant_for_byte_range(at, at + len(text))
            while found is not None and found.start_byte >= node.start_byte and found != node:
                if found.type == kind and found.id not in seen:
                    seen.add(found.id)
                    yield found
                found = found.parent
            at = self.data.find(text, at + 1, node.end_byte)

    def _definitions(self, node: Node, kind: str) -> Iterator[Node]:
        wanted = f"{kind}_definition"
        for child in self._statements(node):
            target = child.child_by_field_name("definition") if child.type == "decorated_definition" else child
            if target is not None and target.type == wanted:
                yield target

    def _statements(self, node: Node) -> Iterator[Node]:
        """The statements of a body, those under ``if``, ``try`` and ``with`` included."""
        body = node.child_by_field_name("body") if node.type in ("class_definition", "function_definition") else node
        for child in body.named_children if body else []:
            yield child
            if child.type in _NESTING:
                yield from self._statements(child)

    def _below(self, node: Node, kinds: tuple[str, ...]) -> Iterator[Node]:
        """Statements of ``kinds`` in a body, nested functions and classes left out."""
        for child in self._statements(node):
            if child.type == "expression_statement":
                yield from (inner for inner in child.named_children if inner.type in kinds)

    def _text(self, node: Node | None) -> str:
        return self.data[node.start_byte : node.end_byte].decode(errors="replace") if node else ""


_REMEMBERED = 8
_recent: OrderedDict[bytes, PythonFile] = OrderedDict()
_ORIGINALS = 4
_originals: OrderedDict[bytes, PythonFile] = OrderedDict()
_FAR = 8
"""A file is parsed from another version of it if no more than one part in so many is different."""


def parse_python(data: bytes) -> PythonFile:
    """Parse a file, or take it from the last few: the next edit of a file starts from what the one before left.

    Another version of a file that was parsed whole is parsed from that one: on many trees of one history, most of a
    file is as it was.
    """
    if data not in _recent:
        _originals[data] = _near(data) or PythonFile(data)
        while len(_originals) > _ORIGINALS:
            _originals.popitem(last=False)
        remember_python(_originals[data])
    return _recent[data]


def _near(data: bytes) -> PythonFile | None:
    for original in reversed(_originals.values()):
        splice = one_splice(original.data, data)
        if max(splice.end - splice.start, len(splice.replacement)) * _FAR < len(data):
            file = original.spliced([splice])
            return None if file.broken else file  # how a parser recovers may depend on where it came from
    return None


def remember_python(file: PythonFile) -> PythonFile:
    """Keep a parsed file for :func:`parse_python`."""
    _recent[file.data] = file
    while len(_recent) > _REMEMBERED:
        _recent.popitem(last=False)
    return file


def container_in(node: Node, step: Step) -> Node | None:
    """The node whose entries can be edited where the last ``step`` led to ``node``; ``None`` where it has none.

    Only a step to a call means its arguments: ``NAMES = set(names)`` is no list of names.
    """
    found = node.child_by_field_name("arguments") if step.kind == "call" else node
    return found if found is not None and found.type in _CONTAINERS else None


def node_body(node: Node) -> Node:
    """The body of a class or function; any other node itself."""
    return node.child_by_field_name("body") or node


def _first_argument(call: Node) -> Node | None:
    arguments = call.child_by_field_name("arguments")
    return next((c for c in arguments.named_children if c.type != "comment"), None) if arguments else None
