"""C-shim headers as data: which functions a header declares, and how two versions of it differ.

Models compiled ahead of time call the functions of ``c_shim_<device>.h`` by name and by argument list, so a declaration
that is in the header must never change. Both halves of the project need to say how a header changed: the applier when
it regenerates one, the proof when it judges a commit range. The module is pure: bytes in, data out.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from patchstack.errors import TreeError

HEADER_FOLDER = "torch/csrc/inductor/aoti_torch/generated"
"""Folder of the tree that holds the checked-in headers, one ``c_shim_<device>.h`` per device."""

_EXPORT = "AOTI_TORCH_EXPORT"
_MERGE_MARKER = re.compile(r"^(<{7}|={7}|>{7})( |$)")
_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|\w+|[<>=!]=|&&|\|\||\S')
_COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"', re.DOTALL)


@dataclass(frozen=True)
class Declaration:
    """One exported function of a C-shim header.

    Attributes:
        name: ``aoti_torch_mps_grid_sampler_2d_backward``.
        text: the declaration without the export macro, white space normalised, without the semicolon.
        line: 1-based line the declaration starts on.
        parameters: each parameter as written (``int64_t size_len_``), white space normalised.
        guard: conditions of the preprocessor blocks around it, outermost first; ``__cplusplus`` blocks are left out.
    """

    name: str
    text: str
    line: int
    parameters: tuple[str, ...] = ()
    guard: tuple[str, ...] = ()

    @property
    def binary_signature(self) -> tuple[str, ...]:
        """What the linker and the caller see: return type and parameter types, without parameter names."""
        types = tuple(_without_name(parameter) for parameter in self.parameters)
        return (self.text.split(self.name, 1)[0].strip(), *types)


@dataclass(frozen=True)
class ChangedDeclaration:
    """A function that both headers declare, differently."""

    before: Declaration
    after: Declaration

    @property
    def names_only(self) -> bool:
        """Whether only parameter names differ: compiled callers still work, the header rule is broken all the same."""
        return self.before.binary_signature == self.after.binary_signature


@dataclass(frozen=True)
class ShimDelta:
    """How one version of a header became another; each part in the order of the header it points into.

    Attributes:
        added: declared after, not before.
        removed: declared before, not after.
        changed: declared in both with another text.
        reordered: same text in both, but moved against its neighbours; harmless to compiled callers.
        regated: same text in both, but under another preprocessor guard.
        unchanged: how many declarations are the same in text and guard (reordered ones included).
    """

    added: tuple[Declaration, ...] = ()
    removed: tuple[Declaration, ...] = ()
    changed: tuple[ChangedDeclaration, ...] = ()
    reordered: tuple[Declaration, ...] = ()
    regated: tuple[ChangedDeclaration, ...] = ()
    unchanged: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether both headers declare the same functions, in the same order and under the same guards."""
        return not (self.added or self.removed or self.changed or self.reordered or self.regated)


def header_path(device: str) -> str:
    """Path in the tree of one device's header (``cpu``, ``cuda``, ``mps``, ``xpu``, ``aten``)."""
    return f"{HEADER_FOLDER}/c_shim_{device}.h"


@lru_cache(maxsize=16)
def parse_declarations(text: bytes, *, path: str = "c_shim header") -> tuple[Declaration, ...]:
    """The exported declarations of a header, in order.

    Args:
        text: content of the header.
        path: name of the file, for error messages.

    Raises:
        TreeError: merge markers, unbalanced ``#if``, a declaration that does not end or cannot be read, a function that
            is declared twice under the same guard.
    """
    source = _without_comments(text.decode("utf-8", errors="replace"))
    found: list[Declaration] = []
    seen: dict[tuple[str, tuple[str, ...]], int] = {}
    for tokens, line, guard in _statements(source, path):
        if _EXPORT not in tokens:
            continue
        declaration = _declaration(tokens, line, guard, path)
        first = seen.setdefault((declaration.name, guard), line)
        if first != line:
            problem = f"{declaration.name} is declared twice"
            raise TreeError(problem, where=f"{path}:{line}", found=f"the first on line {first}")
        found.append(declaration)
    return tuple(found)


def classify(before: Sequence[Declaration], after: Sequence[Declaration]) -> ShimDelta:
    """Compare two versions of one header, function by function."""
    old = {declaration.name: declaration for declaration in before}
    new = {declaration.name: declaration for declaration in after}
    pairs = [ChangedDeclaration(old[name], new[name]) for name in new if name in old]
    same = [pair for pair in pairs if pair.before.text == pair.after.text]
    moved = _moved([name for name in old if name in new], [name for name in new if name in old])
    return ShimDelta(
        added=tuple(declaration for name, declaration in new.items() if name not in old),
        removed=tuple(declaration for name, declaration in old.items() if name not in new),
        changed=tuple(pair for pair in pairs if pair.before.text != pair.after.text),
        reordered=tuple(pair.after for pair in same if pair.after.name in moved),
        regated=tuple(pair for pair in same if pair.before.guard != pair.after.guard),
        unchanged=sum(pair.before.guard == pair.after.guard for pair in same),
    )


def _without_comments(source: str) -> str:
    """The source with comments blanked out, line numbers kept; string literals are left as they are."""

    def blank(match: re.Match[str]) -> str:
        return match[0] if match[0].startswith('"') else re.sub(r"[^\n]", " ", match[0])

    return _COMMENT.sub(blank, source)


def _statements(source: str, path: str) -> Iterator[tuple[list[str], int, tuple[str, ...]]]:
    """Token lists between ``;``, ``{`` and ``}``, each with its first line and the guards around it."""
    guards: list[tuple[str, int]] = []
    tokens: list[str] = []
    start = 0
    for number, line in enumerate(source.splitlines(), 1):
        if _MERGE_MARKER.match(line):
            raise TreeError("unresolved merge conflict", where=f"{path}:{number}", found=line[:20].strip())
        if line.lstrip().startswith("#"):
            if _EXPORT in tokens:
                raise TreeError("a preprocessor line cuts a declaration", where=f"{path}:{number}", found=line.strip())
            _follow_guard(line.strip(), number, guards, path)
            continue
        for token in _TOKEN.findall(line):
            if token in ";{}":
                yield tokens, start, tuple(condition for condition, _ in guards if condition)
                tokens = []
            else:
                start = start if tokens else number
                tokens.append(token)
    if _EXPORT in tokens:
        raise TreeError("the declaration does not end", where=f"{path}:{start}", expected="a semicolon")
    if guards:
        raise TreeError("the #if is never closed", where=f"{path}:{guards[-1][1]}", expected="#endif")


def _follow_guard(line: str, number: int, guards: list[tuple[str, int]], path: str) -> None:
    directive, _, rest = line[1:].strip().partition(" ")
    condition = " ".join(_TOKEN.findall(rest))
    if directive in ("if", "ifdef", "ifndef"):
        prefix = "" if directive == "if" else f"{directive} "
        guards.append(("" if condition == "__cplusplus" else prefix + condition, number))
    elif directive in ("elif", "else", "endif"):
        if not guards:
            raise TreeError(f"#{directive} without #if", where=f"{path}:{number}")
        before, opened = guards.pop()
        if directive != "endif":
            guards.append((f"not ({before}) {condition}".strip() if before else "", opened))


def _declaration(tokens: list[str], line: int, guard: tuple[str, ...], path: str) -> Declaration:
    if tokens.count(_EXPORT) > 1 or tokens[0] != _EXPORT:
        raise TreeError("the declaration does not end", where=f"{path}:{line}", expected="a semicolon")
    body = tokens[1:]
    if "(" not in body or body[-1] != ")" or body.index("(") < 2:
        raise TreeError(
            "not a function declaration", where=f"{path}:{line}", expected="TYPE NAME(...)", found=" ".join(body)[:80]
        )
    opening = body.index("(")
    result, name = _spaced(body[: opening - 1]), body[opening - 1]
    parameters = tuple(_spaced(part) for part in _split_at_commas(body[opening + 1 : -1]))
    return Declaration(name, f"{result} {name}({', '.join(parameters)})", line, parameters, guard)


def _split_at_commas(tokens: list[str]) -> Iterator[list[str]]:
    depth, part = 0, list[str]()
    for token in tokens:
        depth += (token in "([<") - (token in ")]>")
        if token == "," and depth == 0:
            yield part
            part = []
        else:
            part.append(token)
    if part:
        yield part


def _spaced(tokens: list[str]) -> str:
    """Tokens as torchgen spaces them: a star binds to the left, words are one space apart."""
    return re.sub(r" (?=[*&,)\]])|(?<=[(\[]) ", "", " ".join(tokens))


def _without_name(parameter: str) -> str:
    return re.sub(r"(?<=[\w*&]) ?\b\w+$", "", parameter) if re.search(r"[\s*&]\w+$", parameter) else parameter


def _moved(old: list[str], new: list[str]) -> set[str]:
    """The fewest names that must move to turn one order into the other: all outside a longest increasing run."""
    rank = {name: position for position, name in enumerate(old)}
    tails: list[int] = []
    ends: list[str] = []
    previous: dict[str, str | None] = {}
    for name in new:
        at = bisect_left(tails, rank[name])
        previous[name] = ends[at - 1] if at else None
        tails[at : at + 1] = [rank[name]]
        ends[at : at + 1] = [name]
    keep: set[str] = set()
    name_or_end = ends[-1] if ends else None
    while name_or_end is not None:
        keep.add(name_or_end)
        name_or_end = previous[name_or_end]
    return set(new) - keep
