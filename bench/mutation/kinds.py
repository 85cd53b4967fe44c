"""The kinds of faults that ``mutants.py`` makes, each from the structure of a Metal or Objective-C++ file.

The grammar is C++'s. What Metal and Objective-C++ add to it is blanked first, or written as a call of the same length,
so that every node has the offsets of the file. Only bodies of functions are mutated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import tree_sitter_cpp
from tree_sitter import Language, Node, Parser

from patchstack.tree.cxx_mask import code_only

INDEX = "index off by one"
COMPARISON = "`<` for `<=`"
BARRIER = "dropped barrier"
CHECK = "dropped bounds check"
SWAPPED = "swapped operands or buffers"
DTYPE = "wrong dtype"
STRIDE = "stride for size"
NARROW = "64-bit to 32-bit offset"
CONSTANT = "wrong constant"
FILL = "missing zero fill"
GROUP = "wrong threadgroup size"
ATOMIC = "dropped atomic"
KINDS = (INDEX, COMPARISON, BARRIER, CHECK, SWAPPED, DTYPE, STRIDE, NARROW, CONSTANT, FILL, GROUP, ATOMIC)

_BLANKS = re.compile(
    rb"\[\[[^][]*\]\]|\b(?:device|constant|threadgroup|thread|kernel)\b(?=\s*[\w:(])|@autoreleasepool|\)\s*thread\b"
)
_SEND = re.compile(rb"\[\s*\w+\s+(?=\w+:(?!:))")
_SELECTOR = re.compile(rb"\w+\s*:(?!:)|[][(){}]")
_FLIPPED = {b"<": b"<=", b"<=": b"<", b">": b">=", b">=": b">"}
_ORDERED = (b"-", b"/", b"%", b"<<", b">>")
_WIDE = {b"int64_t": b"int32_t", b"uint64_t": b"uint32_t", b"long": b"int", b"ulong": b"uint", b"size_t": b"uint32_t"}
_INDEX_TYPES = (b"idx_t", b"idx_type_t", b"index_t")
_WORD = re.compile(rb"(?:size|shape|stride)s?\b|(?<=_)(?:size|shape|stride)s?", re.IGNORECASE)
_OTHERS = {b"size": b"stride", b"shape": b"strides", b"stride": b"size", b"sizes": b"strides", b"strides": b"sizes"}
_LITERAL = re.compile(rb"([0-9]+(?:\.[0-9]*)?)([fFuUlLh]*)\Z")
_ZERO = re.compile(rb"(?:\w+\s*\(\s*)?0(?:\.0*)?[fFuUlLh]*\s*\)?\Z")


@dataclass(frozen=True)
class Site:
    """One fault that can be made.

    Attributes:
        kind: one of :data:`KINDS`.
        start: offset of the text that goes.
        end: offset behind it.
        text: what takes its place.
    """

    kind: str
    start: int
    end: int
    text: bytes

    def made_in(self, data: bytes) -> bytes:
        """The file with the fault."""
        return data[: self.start] + self.text + data[self.end :]

    def line_in(self, data: bytes) -> int:
        """1-based."""
        return data.count(b"\n", 0, self.start) + 1


def sites(data: bytes) -> list[Site]:
    """Every fault of every kind, in the order of the file."""
    text = _readable(data)
    root = Parser(Language(tree_sitter_cpp.language())).parse(text).root_node
    found = {site: None for node in _in_bodies(root, inside=False) for site in _sites_of(node, data)}
    return sorted(
        (site for site in found if site.made_in(data) != data), key=lambda one: (one.start, one.kind, one.end)
    )


def _readable(data: bytes) -> bytes:
    """The code as C++ of the same length: attributes and address spaces blanked, blocks as lambdas, sends as calls."""
    text = bytearray(code_only(data))
    for match in list(_BLANKS.finditer(text)):
        start = match.start() + match.group().startswith(b")")
        text[start : match.end()] = b" " * (match.end() - start)
    text = bytearray(re.sub(rb"\^\s*\(\)", lambda one: b"[]".ljust(len(one.group())), bytes(text)))
    for match in list(_SEND.finditer(text)):
        text[match.start() : match.end()] = b" " * (match.end() - match.start())
        _call(text, match.end())
    return bytes(text)


def _call(text: bytearray, at: int) -> None:
    """Write the rest of a message send as a call: its first selector as the function, the others as commas."""
    depth, first = 0, True
    for match in list(_SELECTOR.finditer(text, at)):
        sign = match.group()
        if sign[-1:] in (b"(", b"[", b"{"):
            depth += 1
        elif sign == b"]" and depth == 0:
            text[match.start()] = ord(")")
            return
        elif sign in (b")", b"]", b"}"):
            depth -= 1
        elif depth == 0 and first:
            text[match.end() - 1], first = ord("("), False
        elif depth == 0:
            text[match.start() : match.end()] = b",".rjust(len(sign))


def _in_bodies(node: Node, *, inside: bool) -> Iterator[Node]:
    if inside:
        yield node
    for child in node.children:
        yield from _in_bodies(child, inside=inside or node.type == "compound_statement")


def _sites_of(node: Node, data: bytes) -> Iterator[Site]:
    make = _MAKERS.get(node.type)
    if make is not None:
        yield from make(node, data)


def _text(node: Node | None, data: bytes) -> bytes:
    return data[node.start_byte : node.end_byte] if node is not None else b""


def _site(kind: str, node: Node, text: bytes) -> Site:
    return Site(kind, node.start_byte, node.end_byte, text)


def _swap(first: Node, second: Node, data: bytes) -> Site:
    between = data[first.end_byte : second.start_byte]
    text = _text(second, data) + between + _text(first, data)
    return Site(SWAPPED, first.start_byte, second.end_byte, text)


def _subscript(node: Node, data: bytes) -> Iterator[Site]:
    indices = node.child_by_field_name("indices")
    if indices is not None and len(indices.named_children) == 1:
        index = indices.named_children[0]
        yield _site(INDEX, index, _text(index, data) + b" + 1")


def _binary(node: Node, data: bytes) -> Iterator[Site]:
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    operator = node.child_by_field_name("operator")
    if left is None or right is None or operator is None:
        return
    sign = _text(operator, data)
    if sign in _FLIPPED:
        yield _site(COMPARISON, operator, _FLIPPED[sign])
    elif sign in _ORDERED and b'"' not in _text(node, data):
        yield _site(SWAPPED, node, b"(%s) %s (%s)" % (_text(right, data), sign, _text(left, data)))


def _statement(node: Node, data: bytes) -> Iterator[Site]:
    text = _text(node, data)
    if re.match(rb"(?:metal::)?(?:threadgroup|simdgroup)_barrier\s*\(", text):
        yield _site(BARRIER, node, b";")
    elif re.search(rb"\.(?:zero_|fill_)\((?:0|0\.0f?)?\);\Z", text):
        yield _site(FILL, node, b";")


def _if(node: Node, data: bytes) -> Iterator[Site]:
    condition, then = node.child_by_field_name("condition"), node.child_by_field_name("consequence")
    if condition is None or not re.search(rb"[<>]|==", _text(condition, data)):
        return
    leaves = re.fullmatch(rb"\{?\s*(?:return\b[^;]*|continue|break);\s*\}?", _text(then, data))
    yield _site(CHECK, condition, b"(false)" if leaves else b"(true)")


def _conditional(node: Node, data: bytes) -> Iterator[Site]:
    condition, then = node.child_by_field_name("condition"), node.child_by_field_name("consequence")
    if condition is not None and re.search(rb"(?<!-)[<>]=?", _text(condition, data)):
        yield _site(CHECK, node, _text(then, data))


def _call_sites(node: Node, data: bytes) -> Iterator[Site]:
    function, given = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if function is None or given is None:
        return
    name, arguments = _text(function, data), given.named_children
    last = re.split(rb"::|\.|->", name)[-1]
    if re.match(rb"(?:min|max|clamp)\Z", last) and len(arguments) > 1:
        yield _site(CHECK, node, _text(arguments[0], data))
    if last == b"scalarToMetalTypeString":
        yield _site(DTYPE, node, b'std::string("float")')
    if last.startswith((b"mtl_setArgs", b"mtl_setBuffer", b"mtl_setBytes")):
        for first, second in pairwise(arguments[1:]):
            yield _swap(first, second, data)
    elif not name.isupper() and not last.startswith(b"MTLSizeMake"):
        for first, second in pairwise(arguments):
            if {first.type, second.type} <= {"identifier", "field_expression"}:
                yield _swap(first, second, data)
    if last in (b"zeros", b"zeros_like"):
        yield _site(FILL, function, name.replace(b"zeros", b"empty"))
    yield from _launch(last, arguments, data)
    yield from _atomic(last, node, arguments, data)


def _launch(name: bytes, arguments: list[Node], data: bytes) -> Iterator[Site]:
    if name == b"mtl_dispatch1DJob" and len(arguments) > 2:
        yield _site(GROUP, arguments[2], b"(%s) - 1" % _text(arguments[2], data))
    elif name == b"MTLSizeMake":
        for one in arguments:
            if _text(one, data) != b"1":
                yield _site(GROUP, one, b"(%s) - 1" % _text(one, data))
                yield _site(GROUP, one, b"(%s) * 32" % _text(one, data))


def _atomic(name: bytes, node: Node, arguments: list[Node], data: bytes) -> Iterator[Site]:
    texts = [_text(one, data) for one in arguments]
    if name == b"atomic_add" and len(texts) == 3:
        plain = b"reinterpret_cast<device float*>(%s)[%s] += (%s)" % (texts[0], texts[1], texts[2])
        yield _site(ATOMIC, node, plain)
    elif name.startswith(b"atomic_fetch_add") and len(texts) >= 2:
        yield _site(ATOMIC, node, b"*reinterpret_cast<device float*>(%s) += (%s)" % (texts[0], texts[1]))


def _declaration(node: Node, data: bytes) -> Iterator[Site]:
    of = node.child_by_field_name("type")
    name = _text(of, data)
    if of is None:
        return
    if _is_wide(name) and _holds_offset(node, data):
        yield _site(NARROW, of, _WIDE.get(name, b"int32_t"))
    if name == b"float" and b"constexpr" not in _text(node, data):
        yield _site(DTYPE, of, b"half")


def _is_wide(name: bytes) -> bool:
    return name in _WIDE or name in _INDEX_TYPES


def _holds_offset(node: Node, data: bytes) -> bool:
    """Whether a declaration is about an offset or a number of elements: what counts along one axis fits 32 bits."""
    loop = node.parent is not None and node.parent.type == "for_statement"
    return not loop and re.search(rb"offset|stride|numel|length|position|start", _text(node, data)) is not None


def _initialised(node: Node, data: bytes) -> Iterator[Site]:
    name, value = node.child_by_field_name("declarator"), node.child_by_field_name("value")
    if name is None or value is None or node.parent is None:
        return
    if b"const" not in data[node.parent.start_byte : node.start_byte] and _ZERO.match(_text(value, data)):
        yield _site(FILL, node, _text(name, data))


def _cast(node: Node, data: bytes) -> Iterator[Site]:
    text = _text(node, data)
    if text == b"static_cast<float>":
        yield _site(DTYPE, node, b"static_cast<half>")
    elif text in (b"static_cast<T>", b"static_cast<scalar_t>"):
        yield _site(DTYPE, node, b"static_cast<int>")
    elif (match := re.match(rb"static_cast<(\w+)>\Z", text)) and match.group(1) in _INDEX_TYPES:
        yield _site(NARROW, node, b"static_cast<int32_t>")


def _name(node: Node, data: bytes) -> Iterator[Site]:
    """A name that says size, where the file has the same name with stride; and the other way round."""
    name = _text(node, data)
    if node.parent is not None and node.parent.child_by_field_name("declarator") == node:
        return
    if node.type == "identifier" and name in (b"kFloat", b"kInt", b"kLong", b"kHalf"):
        yield _site(DTYPE, node, b"kHalf" if name == b"kFloat" else b"kFloat")
    for match in _WORD.finditer(name):
        word = _OTHERS.get(match.group())
        if word is None:
            continue
        other = name[: match.start()] + word + name[match.end() :]
        called = node.type == "field_identifier" and name in (b"size", b"sizes", b"stride", b"strides")
        if called or re.search(rb"\b%s\b" % re.escape(other), data):
            yield _site(STRIDE, node, other)


def _number(node: Node, data: bytes) -> Iterator[Site]:
    match = _LITERAL.match(_text(node, data))
    if match is None or node.parent is None or node.parent.type == "subscript_argument_list":
        return
    number, suffix = match.groups()
    changed = b"%g" % (float(number) + 0.5) if b"." in number else b"%d" % (int(number) + 1)
    yield _site(CONSTANT, node, changed + suffix)


_MAKERS: dict[str, Callable[[Node, bytes], Iterator[Site]]] = {
    "subscript_expression": _subscript,
    "binary_expression": _binary,
    "expression_statement": _statement,
    "if_statement": _if,
    "conditional_expression": _conditional,
    "call_expression": _call_sites,
    "declaration": _declaration,
    "init_declarator": _initialised,
    "template_function": _cast,
    "identifier": _name,
    "field_identifier": _name,
    "number_literal": _number,
}
