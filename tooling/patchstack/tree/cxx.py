"""The structure of a C++, Metal or Objective-C++ file: include blocks, namespaces, named definitions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import tree_sitter_cpp
from tree_sitter import Language, Node, Parser

from patchstack.tree.cxx_conditionals import Conditional
from patchstack.tree.cxx_mask import Skeleton, skeleton
from patchstack.tree.text import Splice, apply_splices, line_end, line_number, line_start, text_start

_INCLUDE = re.compile(rb"\s*#\s*(?:include|import)\s*[<\"]([^>\"]+)[>\"]")
_NOTHING = re.compile(rb"\s*")
_ATTRIBUTES = re.compile(rb"\s*(?:\[\[[^\n]*\]\]\s*)?")
_DEFINE = re.compile(rb"\s*#\s*define\s+(\w+)")
_GUARD = re.compile(rb"[ \t]*#[ \t]*ifndef[ \t]+(\w+)\s*\n\s*#[ \t]*define[ \t]+\1\b")
_BRACE = re.compile(rb"[{}]")
_SEMICOLON = re.compile(rb"[ \t]*;")
_TYPES = {
    "struct_specifier": "struct",
    "class_specifier": "class",
    "union_specifier": "union",
    "enum_specifier": "enum",
    "alias_declaration": "alias",
    "type_definition": "alias",
}


@dataclass(frozen=True)
class Include:
    """One ``#include`` line.

    Attributes:
        path: what stands between the brackets or quotes.
        start: offset of the first byte of the line.
        end: offset behind its line feed.
        block: number of its block; lines without anything between them are one block.
    """

    path: str
    start: int
    end: int
    block: int


@dataclass(frozen=True)
class Namespace:
    """One opened namespace.

    Attributes:
        name: qualified from the top (``at::native::mps``); an anonymous part is ``(anonymous)``.
        scope: the namespace it is opened in; empty at the top.
        start: offset of the line it is opened on.
        body_start: offset behind the opening brace.
        body_end: offset of the closing brace.
        end: offset behind the line the closing brace stands on.
    """

    name: str
    scope: str
    start: int
    body_start: int
    body_end: int
    end: int


@dataclass(frozen=True)
class Definition:
    """One named definition.

    Attributes:
        kind: ``function``, ``kernel``, ``struct``, ``class``, ``union``, ``enum``, ``alias``, ``variable``
            (with its value, outside types and functions), ``macro`` or ``registration`` (a macro call at namespace
            scope).
        name: as written, qualification included (``Foo::bar``), template arguments left out.
        scope: the namespace and types around it, joined by ``::``; empty at the top.
        start: offset of the line it begins on, its template head and attributes included, comments above it not.
        end: offset behind the line it ends on.
        body_start: offset behind the opening brace of a struct, class or union; -1 for everything else.
        body_end: offset of its closing brace; -1 for everything else.
    """

    kind: str
    name: str
    scope: str
    start: int
    end: int
    body_start: int = -1
    body_end: int = -1

    @property
    def qualified(self) -> str:
        return f"{self.scope}::{self.name}" if self.scope else self.name


@lru_cache(maxsize=1)
def _parser() -> Parser:
    return Parser(Language(tree_sitter_cpp.language()))


class CxxFile:
    """A parsed file.

    Attributes:
        data: the file as it is.
        uncommented: the file with its comments blanked.
        skeleton: what of it was parsed.
        includes: all include lines.
        namespaces: all namespaces, in the order they are opened.
        definitions: all named definitions outside functions, in order.
        conditionals: every ``#if`` to its ``#endif``, inner ones before those around them.
        prototypes: declarations of functions without a body, outside types and functions, in order.
        braces_pair: whether braces and ``#if`` pair; where they do, scopes are right even in a file that is ``broken``.
        broken: whether the grammar met something it could not read outside function bodies, or an ``#if`` has no end.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        found = skeleton(data)
        tree = _parser().parse(found.text)
        self.skeleton = found
        self._text = found.text
        self.uncommented = found.uncommented
        self._comments = found.comments
        self._kernels = found.kernels
        self.conditionals = tuple(found.conditionals)
        self.braces_pair = found.conditionals_pair and _pair(found.text)
        self.broken = tree.root_node.has_error or not found.conditionals_pair
        self.includes = tuple(self._find_includes(found))
        self.namespaces: tuple[Namespace, ...] = ()
        self.prototypes: tuple[Definition, ...] = ()
        definitions = list(self._walk(tree.root_node, ""))
        definitions += self._from_preprocessor(found)
        self.definitions = tuple(sorted(definitions, key=lambda d: (d.start, d.end)))

    def line(self, offset: int) -> int:
        """The 1-based line of an offset."""
        return line_number(self.data, offset)

    @property
    def has_only_includes(self) -> bool:
        """Whether the file is include lines and comments, and at least one include line."""
        rest = apply_splices(self.uncommented, [Splice(i.start, i.end, b"") for i in self.includes])
        return bool(self.includes) and not rest.strip()

    def is_code(self, start: int, end: int) -> bool:
        """Whether a stretch is compiled: not a comment, a literal, or a branch that never is."""
        registered = any(d.kind in ("macro", "registration") and start <= d.start < end for d in self.definitions)
        return registered or bool(self._text[start:end].strip())

    def scope_at(self, offset: int) -> str:
        """The innermost namespace that encloses ``offset``."""
        inside = [space for space in self.namespaces if space.start < offset <= space.body_end]
        return max(inside, key=lambda space: space.start).name if inside else ""

    def conditions_at(self, offset: int) -> tuple[str, ...]:
        """The preprocessor branches that enclose ``offset``, outermost first: opening line and number of the branch."""
        found = []
        for conditional in reversed(self.conditionals):
            for number, branch in enumerate(conditional.branches, 1):
                if branch.start <= offset < branch.end:
                    opening = conditional.branches[0].start
                    line = self.uncommented[self.uncommented.rfind(b"#", 0, opening) : opening].replace(b"\\\n", b" ")
                    found.append(f"{' '.join(line.decode(errors='replace').split())}, branch {number}")
        return tuple(found)

    def extent(self, conditional: Conditional) -> tuple[int, int]:
        """Where the line of an ``#if`` begins, and where that of its ``#endif`` ends."""
        sign = self.uncommented.rfind(b"#", 0, conditional.branches[0].start)
        return line_start(self.data, sign), line_end(self.data, conditional.end)

    def is_guard(self, opening: int) -> bool:
        """Whether the ``#ifndef`` at an offset is followed by the ``#define`` of an include guard."""
        return _GUARD.match(self.uncommented, opening) is not None

    def comment_above(self, start: int) -> int:
        """Offset of the comment lines directly above a line, or the line's own without any."""
        return self._lines_above(start, _NOTHING)

    def comment_start(self, definition: Definition) -> int:
        """Offset of the comment lines directly above a definition, or its own start without any."""
        start = self._lines_above(definition.start, _NOTHING)
        inside = any(begin < start < end for begin, end in self._comments)  # it began behind code, on a line above
        return definition.start if inside else start

    def _lines_above(self, start: int, pattern: re.Pattern[bytes]) -> int:
        """Offset of the first of the lines above ``start`` that, blank lines and comments aside, match ``pattern``."""
        while start > text_start(self.data):
            previous = line_start(self.data, start - 1)
            is_blank = not self.data[previous:start].strip()
            if is_blank or not pattern.fullmatch(self.uncommented, previous, start):
                break
            start = previous
        return start

    def _find_includes(self, found: Skeleton) -> Iterator[Include]:
        block = -1
        previous_end = -1
        for directive in found.directives:
            match = _INCLUDE.match(self.uncommented, directive.start, directive.end)
            if directive.word not in ("include", "import") or match is None:
                continue
            start = line_start(self.data, directive.start)
            if start != previous_end:
                block += 1
            previous_end = line_end(self.data, directive.end - 1)
            yield Include(match.group(1).decode(errors="replace"), start, previous_end, block)

    def _from_preprocessor(self, found: Skeleton) -> Iterator[Definition]:
        for directive in found.directives:
            match = _DEFINE.match(self.uncommented, directive.start, directive.end)
            if match:
                start, end = line_start(self.data, directive.start), line_end(self.data, directive.end - 1)
                yield Definition("macro", match.group(1).decode(), self.scope_at(directive.start), start, end)
        for call in found.macro_calls:
            start, end = line_start(self.data, call.start), line_end(self.data, call.end - 1)
            yield Definition("registration", call.name, self.scope_at(call.start), start, end)

    def _walk(self, node: Node, scope: str) -> Iterator[Definition]:
        for child in node.named_children:
            if child.type == "namespace_definition":
                yield from self._namespace(child, scope)
            elif child.type in ("linkage_specification", "declaration_list", "ERROR"):
                yield from self._walk(child, scope)
            else:
                yield from self._definition(child, child, scope)

    def _namespace(self, node: Node, scope: str) -> Iterator[Definition]:
        name_node = node.child_by_field_name("name")
        body = node.child_by_field_name("body")
        name = re.sub(r"\s|\binline\b", "", self._slice(name_node)) if name_node else "(anonymous)"
        full = f"{scope}::{name}" if scope else name
        if body is None:
            return
        start, closing = line_start(self.data, node.start_byte), body.end_byte - 1
        self.namespaces += (Namespace(full, scope, start, body.start_byte + 1, closing, line_end(self.data, closing)),)
        yield from self._walk(body, full)

    def _definition(self, node: Node, outer: Node, scope: str) -> Iterator[Definition]:
        if node.type == "template_declaration":
            for child in node.named_children:
                if child.type not in ("template_parameter_list", "requires_clause"):
                    yield from self._definition(child, outer, scope)
        elif node.type == "function_definition":
            name = self._function_name(node)
            if name:
                yield self._make("kernel" if self._is_kernel(outer) else "function", name, scope, outer)
        elif node.type in _TYPES:
            name_node = node.child_by_field_name("name") or node.child_by_field_name("declarator")
            body = node.child_by_field_name("body")
            if name_node and (body or _TYPES[node.type] == "alias"):
                name = without_arguments(self._slice(name_node))
                yield self._make(_TYPES[node.type], name, scope, outer, body)
                if body:
                    yield from self._walk(body, f"{scope}::{name}" if scope else name)
        elif node.type in ("declaration", "field_declaration"):
            name = self._function_name(node) if node.type == "declaration" else ""
            if name:
                self.prototypes += (self._make("function", name, scope, outer),)
            for child in node.named_children:
                if child.type in _TYPES:
                    yield from self._definition(child, outer, scope)
                elif child.type == "init_declarator":  # without a value it may be a declaration of what is elsewhere
                    name = self._variable_name(child)
                    if name:
                        yield self._make("variable", name, scope, outer)

    def _make(self, kind: str, name: str, scope: str, node: Node, body: Node | None = None) -> Definition:
        end = node.end_byte
        after = _SEMICOLON.match(self._text, end)
        end = after.end() if after else end
        kernels = [at for at in self._kernels if line_start(self.data, node.start_byte) <= at < node.start_byte]
        start = line_start(self.data, min([node.start_byte, *kernels]))
        above = self._lines_above(start, _ATTRIBUTES)
        start = above if b"[[" in self.uncommented[above:start] else start
        has_members = body is not None and kind in ("struct", "class", "union")
        return Definition(
            kind,
            name,
            scope,
            start,
            line_end(self.data, end - 1),
            body.start_byte + 1 if body is not None and has_members else -1,
            body.end_byte - 1 if body is not None and has_members else -1,
        )

    def _is_kernel(self, node: Node) -> bool:
        body = node.end_byte
        first = self._text.find(b"{", node.start_byte, body)
        begin = self._lines_above(line_start(self.data, node.start_byte), _ATTRIBUTES)
        return any(begin <= at < (first if first >= 0 else body) for at in self._kernels)

    def _function_name(self, node: Node) -> str:
        declarator = node.child_by_field_name("declarator")
        while declarator is not None and declarator.type != "function_declarator":
            inner = declarator.child_by_field_name("declarator")
            if inner is None:
                candidates = [c for c in declarator.named_children if "declarator" in c.type]
                inner = candidates[0] if candidates else None
            declarator = inner
        if declarator is None:
            return ""
        name = declarator.child_by_field_name("declarator")
        return without_arguments(self._slice(name)) if name else ""

    def _variable_name(self, node: Node) -> str:
        named = node.child_by_field_name("declarator")
        while named is not None and named.type not in ("identifier", "qualified_identifier"):
            inner = [
                child for child in named.named_children if "declarator" in child.type or "identifier" in child.type
            ]
            named = inner[0] if inner else None
        return without_arguments(self._slice(named)) if named else ""

    def _slice(self, node: Node) -> str:
        return self._text[node.start_byte : node.end_byte].decode(errors="replace")


def _pair(text: bytes) -> bool:
    depth = 0
    for match in _BRACE.finditer(text):
        depth += 1 if match.group() == b"{" else -1
        if depth < 0:
            return False
    return depth == 0


@lru_cache(maxsize=32)
def parse_cxx(data: bytes) -> CxxFile:
    """Parse a file; the next edit of the same file starts from the content this one left."""
    return CxxFile(data)


def without_arguments(name: str) -> str:
    """A name as written, without blanks and template arguments: ``Foo<T, 2>::bar<int>`` is ``Foo::bar``."""
    if name.isidentifier() and not name.startswith("operator"):  # as most are
        return name
    head, keyword, symbol = name.partition("operator")
    if keyword and (head[-1:].isalnum() or head[-1:] == "_" or symbol[:1].isalnum() or symbol[:1] == "_"):
        head, keyword, symbol = name, "", ""
    depth, kept = 0, []
    for letter in head:
        depth += (letter == "<") - (letter == ">")
        if not depth and letter != ">" and not letter.isspace():
            kept.append(letter)
    return "".join(kept) + keyword + "".join(symbol.split())
