"""A function schema as data: arguments, defaults, returns, as ``native_functions.yaml`` writes them.

Torch's own schema objects say *whether* two schemas are compatible but not *which* argument did it, and the torch at
hand cannot parse every entry of every tree. This small parser reads the ``func:`` line itself, so that each change can
be named argument by argument, with or without torch.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass

_NAME = re.compile(r"(?:(?P<namespace>\w+)::)?(?P<base>[A-Za-z_]\w*)(?:\.(?P<overload>\w+))?\Z")
_ARGUMENT_NAME = re.compile(r"[A-Za-z_]\w*\Z")
_ALIAS = re.compile(r"\(([^()]*)\)")
_TYPE = re.compile(r"[A-Za-z_][\w.]*(?:\([^()]*\))?[\[\]?\d]*\Z")
_OPENING, _CLOSING = "([{", ")]}"


@dataclass(frozen=True)
class Argument:
    """One argument, or one return.

    Attributes:
        name: empty for an unnamed return.
        type: without alias annotation: ``Tensor``, ``SymInt[2]``, ``int[]?``.
        alias: content of the alias annotation (``a``, ``a!``, ``a -> *``), empty when there is none.
        default: text of the default value, ``None`` when there is none.
        kwarg_only: whether it stands after the ``*``.
    """

    name: str
    type: str
    alias: str = ""
    default: str | None = None
    kwarg_only: bool = False

    @property
    def is_out(self) -> bool:
        """Whether the caller passes this tensor to be written: keyword-only with a writing alias."""
        return self.kwarg_only and "!" in self.alias


@dataclass(frozen=True)
class Schema:
    """One parsed ``func:`` line.

    Attributes:
        namespace: ``aten`` unless the line says otherwise.
        base: name without overload.
        overload: empty for the default overload.
        arguments: in order, out arguments last.
        returns: in order.
        text: the line as written.
    """

    namespace: str
    base: str
    overload: str
    arguments: tuple[Argument, ...]
    returns: tuple[Argument, ...]
    text: str

    @property
    def name(self) -> str:
        """``aten::add.Tensor``; the default overload has no dot."""
        return f"{self.namespace}::{self.base}" + (f".{self.overload}" if self.overload else "")

    @property
    def qualified_text(self) -> str:
        """The schema with its namespace in front, as torch prints it."""
        return self.text if "::" in self.text.split("(", 1)[0] else f"{self.namespace}::{self.text}"

    @property
    def inputs(self) -> tuple[Argument, ...]:
        """All arguments that are not out arguments."""
        return tuple(argument for argument in self.arguments if not argument.is_out)

    @property
    def outs(self) -> tuple[Argument, ...]:
        """The out arguments."""
        return tuple(argument for argument in self.arguments if argument.is_out)

    def argument(self, name: str) -> Argument | None:
        """The argument of that name."""
        return next((argument for argument in self.arguments if argument.name == name), None)


@functools.lru_cache(maxsize=1 << 15)
def parse_schema(text: str) -> Schema:
    """Read one ``func:`` value.

    Raises:
        ValueError: the text is not a schema; the message says what was expected.
    """
    head, arguments, rest = _split_call(text.strip())
    match = _NAME.match(head)
    if match is None:
        raise ValueError(f"{head!r} is not an operator name")
    arrow = rest.strip()
    if not arrow.startswith("->"):
        raise ValueError("there is no '->' with the return types after the arguments")
    parsed = tuple(_arguments(arguments))
    names = [argument.name for argument in parsed]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise ValueError(f"the argument {twice!r} stands there twice")
    returns = tuple(_returns(arrow[2:].strip()))
    return Schema(match["namespace"] or "aten", match["base"], match["overload"] or "", parsed, returns, text.strip())


def _split_call(text: str) -> tuple[str, str, str]:
    """``name``, what is between the outer parentheses, and what follows them."""
    opening = text.find("(")
    if opening < 0:
        raise ValueError("there is no argument list")
    for position, character, depth in _depths(text[opening:]):
        if depth == 0 and character == ")":
            return text[:opening].strip(), text[opening + 1 : opening + position], text[opening + position + 1 :]
    raise ValueError("the argument list is not closed")


def _depths(text: str) -> Iterator[tuple[int, str, int]]:
    """Position, character and bracket depth after it, of everything that is not inside a string literal."""
    depth, quote, escaped = 0, "", False
    for position, character in enumerate(text):
        if quote:
            quote = quote if escaped or character != quote else ""
            escaped = character == "\\" and not escaped
            continue
        if character in "'\"":
            quote = character
            continue
        depth += (character in _OPENING) - (character in _CLOSING)
        yield position, character, depth


def _split(text: str, separator: str) -> Iterator[str]:
    """Parts between the separators outside of brackets and strings; nothing for blank text."""
    start = 0
    for position, character, depth in _depths(text):
        if depth == 0 and character == separator:
            yield text[start:position].strip()
            start = position + 1
    if text.strip():
        yield text[start:].strip()


def _arguments(text: str) -> Iterator[Argument]:
    kwarg_only = False
    for part in _split(text, ","):
        if part == "*":
            if kwarg_only:
                raise ValueError("there are two '*' in the argument list")
            kwarg_only = True
            continue
        declared, default = _split_default(part)
        type_, name = _split_name(declared)
        if not _ARGUMENT_NAME.match(name):
            raise ValueError(f"{part!r} is not an argument: expected TYPE NAME or TYPE NAME=DEFAULT")
        yield Argument(name, *_type(type_), default, kwarg_only)


def _split_default(part: str) -> tuple[str, str | None]:
    for position, character, depth in _depths(part):
        if depth == 0 and character == "=":
            return part[:position].strip(), part[position + 1 :].strip()
    return part, None


def _split_name(declared: str) -> tuple[str, str]:
    blanks = (position for position, character, depth in _depths(declared) if depth == 0 and character == " ")
    cut = max(blanks, default=-1)
    return (declared[:cut].strip(), declared[cut + 1 :]) if cut >= 0 else (declared, "")


def _type(text: str) -> tuple[str, str]:
    if not _TYPE.match(text):
        raise ValueError(f"{text!r} is not a type")
    alias = _ALIAS.search(text)
    return _ALIAS.sub("", text), alias[1].strip() if alias else ""


def _returns(text: str) -> Iterator[Argument]:
    inner = text[1:-1] if text.startswith("(") and text.endswith(")") else text
    if not text or (not inner.strip() and text != "()"):
        raise ValueError("there is no return type after '->'")
    for part in _split(inner, ","):
        type_, name = _split_name(part)
        yield Argument(name, *_type(type_))
