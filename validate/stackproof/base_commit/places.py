"""Where something is, in words that an edit elsewhere in the file does not change: a definition and a statement of it.

A line number says where something is in one commit. To ask whether another commit has the same, the place has to be
named by what stands there.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from patchstack.tree.cxx import CxxFile, Definition, parse_cxx
from patchstack.tree.git import Tree

CXX_SUFFIXES = (".metal", ".mm", ".m", ".h", ".hpp", ".cpp", ".cc", ".c", ".cu", ".cuh")
_TOKEN = re.compile(r"\w+|[^\w\s\\]")
_ENDS = b";{}"


@dataclass(frozen=True)
class Place:
    """A place in a file.

    Attributes:
        path: of the file in its tree.
        definition: the definitions around it, outermost first; empty where there is none.
        statement: its tokens, with one blank between them; empty for the file as a whole.
    """

    path: str
    definition: str = ""
    statement: str = ""


def place_of(tree: Tree, path: str, line: int) -> Place:
    """The place of a 1-based line; the file as a whole for line 0, or where the tree has no such file or line."""
    content = tree.read(path) if path and line else None
    if content is None or line > content.count(b"\n") + 1:
        return Place(path)
    if path.endswith(CXX_SUFFIXES):
        return _in_cxx(path, parse_cxx(content), line)
    lines = content.decode(errors="replace").splitlines()
    if line > len(lines):
        return Place(path)
    if path.endswith(".py"):
        return _in_python(path, content, lines, line)
    heads = [text for text in lines[:line] if text.startswith("- ")] if path.endswith((".yaml", ".yml")) else []
    return Place(path, tokens_of(heads[-1]) if heads else "", tokens_of(lines[line - 1]))


def uses(tree: Tree, path: str, words: Collection[str]) -> Counter[Place]:
    """The places of a C++ file where any of some words stand, one for each line; none where there is no such file."""
    content = tree.read(path)
    lines = parse_cxx(content).uncommented.decode(errors="replace").splitlines() if content is not None else []
    found = [number for number, text in enumerate(lines, 1) if not set(words).isdisjoint(_TOKEN.findall(text))]
    return Counter(place_of(tree, path, number) for number in found)


def tokens_of(text: str) -> str:
    """A text as tokens with one blank between them: how lines are broken, and where a macro goes on, is no part."""
    return " ".join(_TOKEN.findall(text))


def outermost(file: CxxFile) -> Iterator[Definition]:
    """The definitions of a file that are in no other one."""
    end = -1
    for one in file.definitions:
        if one.start >= end:
            end = one.end
            yield one


def _in_cxx(path: str, file: CxxFile, line: int) -> Place:
    starts = _line_starts(file.data)
    first, last = starts[line - 1], starts[line] if line < len(starts) else len(file.data)
    text = file.uncommented[first:last]
    if not text.strip():
        return Place(path)
    first, last = first + len(text) - len(text.lstrip()), last - len(text) + len(text.rstrip())
    around = [one for one in file.definitions if one.start <= first < one.end]
    low, high = (around[-1].start, around[-1].end) if around else (0, len(file.data))
    while first > low and file.uncommented[first - 1] not in _ENDS:
        first -= 1
    while last < high and file.uncommented[last - 1] not in _ENDS:
        last += 1
    statement = tokens_of(file.uncommented[first:last].decode(errors="replace"))
    return Place(path, " in ".join(f"{one.kind} {one.qualified}" for one in reversed(around)), statement)


@lru_cache(maxsize=32)
def _line_starts(data: bytes) -> tuple[int, ...]:
    return (0, *(match.end() for match in re.finditer(rb"\n", data)))


def _in_python(path: str, content: bytes, lines: list[str], line: int) -> Place:
    try:
        module = _parsed(content)
    except (SyntaxError, ValueError):
        return Place(path, "", tokens_of(lines[line - 1]))
    named: list[str] = []
    around: ast.stmt | None = None
    for node in ast.walk(module):  # outer nodes come before inner ones
        if isinstance(node, ast.stmt) and _first(node) <= line <= (node.end_lineno or node.lineno):
            around = node
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                named.append(node.name)
    if around is None:
        return Place(path, "", tokens_of(lines[line - 1]))
    first, last = _first(around), around.end_lineno or around.lineno
    # Of a statement with a body, the part of it that the line is in: a head, or what is between two statements.
    inner = [first - 1, *(edge for one in _bodies(around) for edge in (_first(one), one.end_lineno or 0)), last + 1]
    low, high = next((one for one in pairwise(inner) if one[0] < line < one[1]), (first - 1, last + 1))
    return Place(path, ".".join(named), tokens_of("\n".join(lines[low : high - 1])))


@lru_cache(maxsize=8)
def _parsed(content: bytes) -> ast.Module:
    return ast.parse(content)


def _first(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(one.lineno for one in decorators)])


def _bodies(node: ast.stmt) -> Iterator[ast.stmt]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
