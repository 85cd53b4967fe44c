"""Telling existing code from code that the stack itself adds.

The window protects programs that existing Python code writes: a function that nobody could call before cannot have
written any. So a use inside a new module-level function or class is harmless, unless existing code was changed to
mention it. Any such mention is in a changed file, which keeps the search small. A new method of an existing class is
not new code in this sense: unchanged code may call it through a base class.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from patchstack.tree.git import Tree
from stackproof.gates.common.python_source import parse_python
from stackproof.gates.fc_window.uses import Use

MOST_FILES = 500
"""A range with more changed frontend files is a release, not a stack; every use in it counts."""


@dataclass(frozen=True)
class _Definition:
    """A new module-level function, class or assigned name, and every name that its code mentions."""

    name: str
    mentions: frozenset[str]


@dataclass(frozen=True)
class _File:
    """One changed file: its new module-level definitions, and the names that its other code mentions."""

    new: tuple[_Definition, ...]
    mentioned: frozenset[str]


class NewCode:
    """The new definitions of a range, and whether existing code leads to them.

    Args:
        before: the base tree.
        after: the head tree.
        changed: frontend files of the head tree that the range changed.
    """

    def __init__(self, before: Tree, after: Tree, changed: Iterable[str]) -> None:
        self._before = before
        self._after = after
        self._changed = tuple(changed)
        self._files: dict[str, _File] = {}
        self._reached: dict[str, bool] = {}

    def holds(self, use: Use) -> bool:
        """Whether a use is in new code that existing code does not lead to; never in a range too large to tell."""
        if len(self._changed) > MOST_FILES:
            return False
        outermost = use.scope[0] if use.scope else use.binds
        new = {definition.name for definition in self._file(use.path).new}
        return outermost in new and not self._is_reached(outermost)

    def _is_reached(self, name: str) -> bool:
        """Whether existing code mentions ``name``, itself or through other new definitions."""
        if name not in self._reached:
            self._reached[name] = self._search(name)
        return self._reached[name]

    def _search(self, name: str) -> bool:
        wanted, seen = [name], {name}
        while wanted:
            target = wanted.pop()
            for path in self._mentioning(target):
                file = self._file(path)
                if target in file.mentioned:
                    return True
                callers = {d.name for d in file.new if target in d.mentions and d.name != target}
                wanted += callers - seen
                seen |= callers
        return False

    def _mentioning(self, name: str) -> Iterator[str]:
        """Changed files that hold the word at all; only these are parsed."""
        text = name.encode()
        word = re.compile(rb"\b" + re.escape(text) + rb"\b")
        return (path for path, content in self._contents.items() if text in content and word.search(content))

    @functools.cached_property
    def _contents(self) -> dict[str, bytes]:
        return {path: self._after.read(path) or b"" for path in self._changed}

    def _file(self, path: str) -> _File:
        if path not in self._files:
            self._files[path] = _summary(_module(self._before, path), _module(self._after, path))
        return self._files[path]


def _module(tree: Tree, path: str) -> ast.Module | None:
    content = tree.read(path)
    try:
        return None if content is None else parse_python(content)
    except SyntaxError:
        return None


def _summary(before: ast.Module | None, after: ast.Module | None) -> _File:
    if after is None:
        return _File((), frozenset())
    known = {name for name, _ in _statements(before)} if before is not None else set()
    new: list[_Definition] = []
    existing: set[str] = set()
    for name, node in _statements(after):
        if name and name not in known:
            new.append(_Definition(name, frozenset(_names_below(node))))
        elif before is not None:
            existing.update(_names_below(node))
    return _File(tuple(new), frozenset(existing))


def _statements(module: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    """Module-level statements with the name that each defines; definitions under ``if`` and ``try`` included."""
    waiting = list(module.body)
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, (ast.If, ast.Try, ast.With)):
            inner = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
            handlers = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.ExceptHandler)]
            waiting += [*inner, *(statement for handler in handlers for statement in handler.body)]
        else:
            yield _defined(node), node


def _defined(node: ast.stmt) -> str:
    """The name of a function or a class, or the one name that an assignment gives; empty for anything else."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return node.name
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return ""


def _names_below(node: ast.AST) -> Iterator[str]:
    return (name for part in ast.walk(node) for name in _names(part))


def _names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, (ast.Import, ast.ImportFrom)):  # an import under another name: follow it by the old one
        yield from (alias.name for alias in node.names if alias.asname)
