"""Which names a stretch of C++, Metal or Objective-C++ code declares, and which it uses, each with its place.

A definition is read once, whatever file or commit it stands in: commits of a stack share most of theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from patchstack.closure.declared import declared
from patchstack.closure.known import KEYWORDS, NOT_TYPES
from patchstack.closure.tokens import Tokens, split_at_commas, texts_of

_ATTRIBUTES = frozenset({"maybe_unused", "nodiscard", "likely", "unlikely", "fallthrough", "noreturn", "deprecated"})
UNBOUNDED = 1 << 30
"""More arguments than anything is called with."""


@dataclass(frozen=True)
class Use:
    """A name that is used.

    Attributes:
        names: the name with its qualification, outermost first: ``mps::run`` is ``("mps", "run")``.
        at: offset of the first of them.
        counts: numbers of arguments that it may be called with, as its commas are read; empty where it is no call.
        is_rooted: whether ``::`` stands before it.
        argument_of: what it is a whole argument of, and which one, from 0.
    """

    names: tuple[str, ...]
    at: int
    counts: tuple[int, ...] = ()
    is_rooted: bool = False
    argument_of: tuple[str, int] | None = None

    @property
    def name(self) -> str:
        return "::".join(self.names)


@dataclass(frozen=True, eq=False)
class Code:
    """One definition, or what stands between definitions; offsets are those in the text it was read from.

    Attributes:
        declared: names that are declared in it, with the offset of the first declaration.
        enumerators: names that its enumerations bring.
        uses: names that are used in it and not declared.
        opens: namespaces that ``using namespace`` opens, with offsets.
        imports: names that ``using`` takes from a namespace, with offsets.
        pasted: parts of the names that it declares by ``##``.
        text: what it was read from.
    """

    declared: dict[str, int] = field(default_factory=dict)
    enumerators: frozenset[str] = frozenset()
    uses: tuple[Use, ...] = ()
    opens: tuple[tuple[str, int], ...] = ()
    imports: tuple[tuple[str, int], ...] = ()
    pasted: frozenset[str] = frozenset()
    text: str = ""

    @cached_property
    def plain(self) -> frozenset[str]:
        """Identifiers that are not beside ``#`` or ``##``, nor a whole argument.

        In a macro, these are the parameters that stand for more than a word.
        """
        return frozenset(_plain(Tokens(self.text)))


@lru_cache(maxsize=4096)
def read_code(text: str, *, is_metal: bool) -> Code:
    """Read a stretch of code whose comments and preprocessor lines are blanked."""
    tokens = Tokens(text)
    texts, starts = tokens.texts, tokens.starts
    skipped = set(_attributes(tokens, is_metal=is_metal))
    skipped.update(() if is_metal else _selectors(tokens))
    names: dict[str, int] = {}
    declaring = set()
    for index in declared(tokens):
        if index not in skipped:
            declaring.add(index)
            names.setdefault(texts[index], starts[index])
    enumerators = frozenset(texts[index] for index in _enumerators(tokens))
    pasted = frozenset(_pasted(tokens)) if "##" in text else frozenset[str]()
    uses = [
        use
        for index, is_name in enumerate(tokens.names)
        if is_name and index not in skipped and index not in declaring
        for use in _use(tokens, index)
        if use.names[0] not in names and use.names[0] not in enumerators
    ]
    return Code(names, enumerators, tuple(uses), *_usings(tokens), pasted, text)


def _pasted(tokens: Tokens) -> Iterator[str]:
    """The parts of names that are put together where something is declared: ``struct a##b``, ``int a##b``."""
    index = 0
    while index < len(tokens):
        end = index
        while tokens.is_name(end) and tokens.at(end + 1) == "##" and tokens.is_name(end + 2):
            end += 2
        if end > index and tokens.is_name(index - 1) and tokens.at(index - 1) not in NOT_TYPES:
            yield from tokens.texts[index : end + 1 : 2]
        index = end + 1


def _plain(tokens: Tokens) -> Iterator[str]:
    for index, is_name in enumerate(tokens.names):
        beside = (tokens.at(index - 1), tokens.at(index + 1))
        if is_name and not {"#", "##"}.intersection(beside) and not (beside[0] in "(," and beside[1] in "),"):
            yield tokens.texts[index]


def _use(tokens: Tokens, index: int) -> Iterator[Use]:
    """The use that begins with a token, if one does."""
    texts = tokens.texts
    before = tokens.at(index - 1)
    before = tokens.at(index - 2) if before == "template" else before
    if (
        texts[index] in KEYWORDS
        or before in (".", "->", "@", "#", "##", "~", "goto", "namespace")
        or tokens.at(index + 1) == "##"
    ):
        return
    is_rooted = before == "::"
    root = index - 3 if tokens.at(index - 1) == "template" else index - 2
    if is_rooted and (
        (tokens.is_name(root) and texts[root] not in KEYWORDS)
        or (tokens.at(root) == ">" and root in tokens.opening)
        or tokens.at(root) == ")"  # decltype(x)::y
    ):
        return  # a later part of a qualified name
    if tokens.at(index + 1) == ":" and before in (";", "{", "}") and tokens.at(index + 2) != ":":
        return  # a label
    names = [texts[index]]
    at = tokens.behind_arguments(index + 1)
    while tokens.at(at) == "::":
        step = at + 2 if tokens.at(at + 1) == "template" else at + 1
        if not tokens.is_name(step) or tokens.at(step) == "operator":
            break
        names.append(texts[step])
        at = tokens.behind_arguments(step + 1)
    if tokens.at(at) == "##":
        return
    counts: tuple[int, ...] = ()
    if tokens.at(at) == "(" and at in tokens.closing:
        end = tokens.closing[at]
        read = {len(split_at_commas(tokens, at, end, angles=angles)) for angles in (True, False)}
        counts = tuple(sorted(read)) if "..." not in texts[at:end] else (UNBOUNDED,)
    argument = _argument(tokens, index) if at == index + 1 and before in ("(", ",") else None
    yield Use(tuple(names), tokens.starts[index], counts, is_rooted, argument)


def _argument(tokens: Tokens, index: int) -> tuple[str, int] | None:
    """What an identifier is a whole argument of, and which one."""
    opening = tokens.around[index]
    if tokens.at(index + 1) not in (")", ",") or tokens.at(opening) != "(" or not tokens.is_name(opening - 1):
        return None
    parts = split_at_commas(tokens, opening, tokens.closing.get(opening, opening), angles=False)
    number = next((n for n, (start, _) in enumerate(parts) if start == index), -1)
    return (tokens.texts[opening - 1], number) if number >= 0 else None


def _enumerators(tokens: Tokens) -> Iterator[int]:
    for index, text in enumerate(tokens.texts):
        if text != "enum":
            continue
        at = index + 1
        while at < len(tokens) and tokens.at(at) not in ("{", ";", ")", "("):
            at += 1
        if tokens.at(at) == "{" and at in tokens.closing:
            for first, end in split_at_commas(tokens, at, tokens.closing[at], angles=True):
                if first < end and tokens.is_name(first):
                    yield first


def _attributes(tokens: Tokens, *, is_metal: bool) -> Iterator[int]:
    """Tokens of attributes; in Objective-C++, ``[[`` mostly begins a message to the answer of a message."""
    for index, text in enumerate(tokens.texts):
        if text == "__attribute__" and index + 1 in tokens.closing:
            yield from range(index, tokens.closing[index + 1])
        if text == "[" and tokens.at(index + 1) == "[" and index in tokens.closing:
            is_attribute = is_metal and not (tokens.at(index - 1) == ")" and tokens.at(index + 2) == "&")
            if is_attribute or tokens.at(index + 2) in _ATTRIBUTES:
                yield from range(index, tokens.closing[index])


def _selectors(tokens: Tokens) -> Iterator[int]:
    """The words of Objective-C messages that are no names: ``[encoder setBuffer:b offset:0]``."""
    for index, text in enumerate(tokens.texts):
        if text != "[" or index not in tokens.closing:
            continue
        before, end = tokens.at(index - 1), tokens.closing[index]
        is_subscript = (tokens.is_name(index - 1) and before not in KEYWORDS) or before in (")", "]", "@", "auto", "&")
        if is_subscript or before == "this" or tokens.at(end + 1) in ("{", "(", "mutable") or end - index < 3:
            continue
        for at in range(index + 2, end):
            if tokens.names[at] and tokens.around[at] == index and (tokens.at(at + 1) == ":" or at + 1 == end):
                yield at


def _usings(tokens: Tokens) -> tuple[tuple[tuple[str, int], ...], tuple[tuple[str, int], ...]]:
    opens: list[tuple[str, int]] = []
    imports: list[tuple[str, int]] = []
    for index, text in enumerate(tokens.texts):
        if text != "using":
            continue
        end = index
        while end < len(tokens) and tokens.at(end) not in (";", "="):
            end += 1
        words = texts_of(tokens, (index + 1, end))
        if tokens.at(end) == ";" and words:
            found = opens if words[0] == "namespace" else imports
            found.append(("".join(words[1:] if words[0] == "namespace" else words).lstrip(":"), tokens.starts[index]))
    return tuple(opens), tuple(imports)
