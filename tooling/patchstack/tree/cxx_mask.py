"""A same-length copy of a C++, Metal or Objective-C++ file in which only the skeleton is left.

tree-sitter's C++ grammar does not know Metal's address spaces, Objective-C's message sends or blocks, and PyTorch's
macros; its error recovery then loses whole functions. The anchors need none of that: they name namespaces, types and
functions. So everything that is not the skeleton is overwritten with blanks before parsing: comments, literals,
preprocessor lines, attributes, Metal's qualifiers, macro calls at namespace scope, and the inside of every function.
Offsets and lines stay those of the file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from patchstack.tree.cxx_conditionals import (
    Branch,
    Conditional,
    Directive,
    find_conditionals,
    find_directives,
    further_versions,
    never_compiled,
)
from patchstack.tree.text import text_start

# The patterns that every letter of a file is tried on begin with the letters that they can begin with: that is three
# times as fast.
_TOKEN = re.compile(
    rb"""
    (?=[/uULR@"'0-9])(?:
      //(?:[^\n\\]|\\\r?\n|\\.)*                                  # line comment, with continuation
    | /\*.*?(?:\*/|\Z)                                            # block comment
    | (?<!\w)(?:u8|[uUL])?R"(?P<delim>[^\s()\\]{0,16})\(.*?\)(?P=delim)"  # raw string
    | @?"(?:[^"\\\n]|\\\r?\n|\\.)*"                              # string, with continuation
    | \b\d(?:'?[\w.])*                                            # number, with digit separators
    | '(?:[^'\\\n]|\\.)*'                                        # character
    )
    """,
    re.VERBOSE | re.DOTALL,
)
_ATTRIBUTE = re.compile(rb"\[\[.*?\]\]", re.DOTALL)
_KERNEL_ATTRIBUTE = re.compile(rb"\[\[\s*kernel\b")
_METAL_QUALIFIER = re.compile(
    rb"""
    (?=[dctkvf])(?:
      (?<!::)\b(?:device|constant|threadgroup|thread|kernel|vertex|fragment)\b(?=\s*[\w:*&(])
    | (?:(?<=\)\ )|(?<=const\ ))(?:device|constant|threadgroup|thread)\b(?=\s*[{;])          # of a method
    )
    """,
    re.VERBOSE,
)
OBJC_BLOCK = re.compile(rb"@(?:interface|implementation|protocol)\b.*?@end\b", re.DOTALL)
_OBJC_LINE = re.compile(rb"@(?:class|import)\b[^;]*;")
_OBJC_BLOCK_TYPE = re.compile(rb"\(\s*\^")  # void (^name)() declares a block as void (*name)() does a pointer
_KEEPS_BODY = re.compile(rb"\bnamespace\b|^\s*extern\b\s*(?:\"\s*\")?\s*$")
_TYPE_HEAD = re.compile(rb"(?:^|>|\btypedef|\bstatic|\bconst)\s*(?:struct|class|union)\b")
_EXPORT = re.compile(
    rb"\b(?:struct|class|union)\s+([A-Z][A-Z0-9]*_[A-Z0-9_]+)(?=\s+[A-Za-z_]\w*\s*(?:<[^;{}]*>\s*)?(?:final\b\s*)?[:{;])"
)
_ENUM = re.compile(rb"\benum\b")
_FUNCTION_TAIL = re.compile(rb"\)\s*(?:(?:const|noexcept|override|final)\b\s*|->[^;{}]*)*\Z")
_BRACES = re.compile(rb"[{}]")
_PARAMETERS = re.compile(rb"\s*\(")
_MACRO_CALL = re.compile(rb"[A-Z][A-Z0-9_]{2,}\s*\(")


@dataclass(frozen=True)
class MacroCall:
    """A macro call that stands at namespace scope, such as a kernel's registration.

    Attributes:
        name: name of the macro.
        start: offset of the name.
        end: offset behind the closing parenthesis and a semicolon that follows.
    """

    name: str
    start: int
    end: int


@dataclass
class Skeleton:
    """What :func:`skeleton` found.

    Attributes:
        text: the blanked copy, of the same length as the file.
        uncommented: the file with its comments blanked and nothing else.
        comments: (start, end) of every comment in order.
        conditionals_pair: whether every ``#if`` has its ``#endif``.
        conditionals: every ``#if`` to its ``#endif``, inner ones before those around them.
        directives: preprocessor lines in order, those in branches that are never compiled left out.
        macro_calls: macro calls at namespace scope in order.
        kernels: offsets at which the word ``kernel`` stood in a declaration, as a qualifier or an attribute.
    """

    text: bytes
    uncommented: bytes = b""
    comments: list[tuple[int, int]] = field(default_factory=list)
    conditionals_pair: bool = True
    conditionals: list[Conditional] = field(default_factory=list)
    directives: list[Directive] = field(default_factory=list)
    macro_calls: list[MacroCall] = field(default_factory=list)
    kernels: list[int] = field(default_factory=list)


def skeleton(data: bytes) -> Skeleton:
    """Blank everything but the skeleton of ``data``."""
    text = bytearray(data)
    text[: text_start(data)] = b" " * text_start(data)
    result = Skeleton(b"")
    _blank_literals(text, result)
    _blank_directives(text, result)
    _blank_matches(text, OBJC_BLOCK)
    _blank_matches(text, _OBJC_LINE)
    for match in list(_OBJC_BLOCK_TYPE.finditer(text)):
        text[match.end() - 1] = ord("*")
    _blank_bodies(text)
    result.kernels += [match.start() for match in _KERNEL_ATTRIBUTE.finditer(text)]
    for match in list(_EXPORT.finditer(text)):  # class TORCH_API Foo { would be a function to the grammar
        _blank(text, *match.span(1))
    _blank_matches(text, _ATTRIBUTE)  # after the bodies, whose message sends begin with two brackets too
    for match in list(_METAL_QUALIFIER.finditer(text)):
        if match.group() == b"kernel":
            result.kernels.append(match.start())
        _blank(text, match.start(), match.end())
    _blank_macro_calls(text, result)
    result.text = bytes(text)
    return result


def code_only(data: bytes) -> bytes:
    """A copy of the same length with comments, the inside of literals, and preprocessor lines blanked."""
    text = bytearray(data)
    result = Skeleton(b"")
    _blank_literals(text, result)
    directives = find_directives(bytes(text))
    for directive in directives:
        _blank(text, directive.start, directive.end)
    for conditional in find_conditionals(directives)[0]:
        for branch in never_compiled(conditional):
            _blank(text, branch.start, branch.end)
    return bytes(text)


_BLANKED = bytes(byte if byte in b"\r\n" else ord(" ") for byte in range(256))


def _blank(text: bytearray, start: int, end: int) -> None:
    text[start:end] = text[start:end].translate(_BLANKED)


def _blank_matches(text: bytearray, pattern: re.Pattern[bytes]) -> None:
    for match in list(pattern.finditer(text)):
        _blank(text, match.start(), match.end())


def _blank_literals(text: bytearray, result: Skeleton) -> None:
    uncommented = bytearray(text)
    for match in list(_TOKEN.finditer(bytes(text))):
        literal, start, end = match.group(), match.start(), match.end()
        if literal.startswith((b"//", b"/*")):
            _blank(text, start, end)
            _blank(uncommented, start, end)
            result.comments.append((start, end))
        elif match.group("delim") is not None:
            _blank(text, start, end)
            text[start] = ord("0")
        elif literal.endswith((b'"', b"'")):
            if literal.startswith(b"@"):
                text[start] = ord(" ")
                start += 1
            _blank(text, start + 1, end - 1)
    result.uncommented = bytes(uncommented)


def _blank_directives(text: bytearray, result: Skeleton) -> None:
    """Blank preprocessor lines, branches that are never compiled, and alternatives that only make sense alone."""
    directives = find_directives(bytes(text))
    for directive in directives:
        _blank(text, directive.start, directive.end)
    result.conditionals, result.conditionals_pair = find_conditionals(directives)
    dead: list[Branch] = []
    for conditional in result.conditionals:
        never = never_compiled(conditional)
        dead += never
        for branch in [*never, *further_versions(bytes(text), conditional, never)]:
            _blank(text, branch.start, branch.end)
    result.directives = [d for d in directives if not any(b.start <= d.start < b.end for b in dead)]


def _blank_bodies(text: bytearray) -> None:
    """Blank the inside of every pair of braces that is not a namespace, a linkage block or a type."""
    stack: list[tuple[int, bool]] = []  # (offset of the brace, whether its inside stays)
    statement = 0  # where the current declaration starts
    for match in re.finditer(rb"[{};]", bytes(text)):
        at, sign = match.start(), match.group()
        hidden = bool(stack) and not stack[-1][1]
        if sign == b"{":
            head = bytes(text[statement:at])
            stack.append((at, not hidden and _opens_scope(head)))
            statement = at + 1
        elif sign == b"}" and stack:
            begin, keeps = stack.pop()
            if not keeps and not (stack and not stack[-1][1]):
                _blank(text, begin + 1, at)
            statement = at + 1
        elif sign == b";" and not hidden:
            statement = at + 1


def _opens_scope(head: bytes) -> bool:
    if _KEEPS_BODY.search(head):
        return True
    return bool(_TYPE_HEAD.search(head)) and not head.rstrip().endswith((b")", b"=")) and not _ENUM.search(head)


def opens_type(head: bytes) -> bool:
    """Whether a type's body stands behind a text, which ends with a semicolon then."""
    is_type = _TYPE_HEAD.search(head) or _ENUM.search(head)
    return bool(is_type) and not _FUNCTION_TAIL.search(head)


def closing_brace(text: bytes, opening: int, high: int) -> int | None:
    """Offset of the brace that closes the one at an offset; ``None`` where none does before ``high``."""
    depth = 0
    for match in _BRACES.finditer(text, opening, high):
        depth += 1 if match.group() == b"{" else -1
        if not depth:
            return match.start()
    return None


def _blank_macro_calls(text: bytearray, result: Skeleton) -> None:
    """Blank calls of upper-case macros that begin a declaration; the grammar takes them for broken functions."""
    at = 0
    while match := _MACRO_CALL.search(text, at):
        before = bytes(text[: match.start()]).rstrip()
        end = _closing_parenthesis(text, match.end() - 1)
        if end < 0:
            return
        at = match.end()
        if before and not before.endswith((b";", b"{", b"}")):
            continue
        if _PARAMETERS.match(text, end):  # TORCH_IMPL_FUNC(name)(parameters) { ... } defines a function
            function = bytes(text[match.end() : end - 1]).strip()
            text[match.start() : end] = (b"void " + function).ljust(end - match.start())
            continue
        rest = re.compile(rb"\s*;").match(text, end)
        stop = rest.end() if rest else end
        name = match.group().split(b"(")[0].strip().decode()
        result.macro_calls.append(MacroCall(name, match.start(), stop))
        _blank(text, match.start(), stop)


def _closing_parenthesis(text: bytearray, opening: int) -> int:
    depth = 0
    for match in re.compile(rb"[()]").finditer(text, opening):
        depth += 1 if match.group() == b"(" else -1
        if depth == 0:
            return match.end()
    return -1
