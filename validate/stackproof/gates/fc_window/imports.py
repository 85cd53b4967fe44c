"""What a dotted name in one Python file stands for, as far as ``torch`` is concerned.

``t.foo``, ``aten.foo.default`` and ``nn_.foo`` are uses of an operator when ``t`` is torch, ``aten`` is
``torch.ops.aten`` and ``nn_`` is ``torch._C._nn``. Imports and plain assignments of the file are followed; scopes are
not told apart, since a false trail needs one name to mean an operator namespace here and something else there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

_LONGEST_TRAIL = 8


def dotted(node: ast.expr) -> str:
    """``a.b.c`` for an attribute chain that ends in a plain name; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])


class Names:
    """The aliases of one file.

    Args:
        module: its syntax tree.
        path: its path in the tree (``torch/nn/functional.py``), which relative imports start from.
    """

    def __init__(self, module: ast.Module, path: str) -> None:
        self._aliases: dict[str, set[str]] = {}
        package = path.removesuffix(".py").removesuffix("/__init__").split("/")
        self._package = package if path.endswith("/__init__.py") else package[:-1]
        for node in ast.walk(module):
            for name, target in self._bindings(node):
                self._aliases.setdefault(name, set()).add(target)

    def resolve(self, name: str) -> str | None:
        """The full dotted name below ``torch``, or ``None`` when the name does not lead there."""
        found = self._resolve(name, _LONGEST_TRAIL)
        return found if found is None else _canonical(found)

    def _resolve(self, name: str, steps: int) -> str | None:
        head, dot, rest = name.partition(".")
        if steps:
            for target in sorted(self._aliases.get(head, ())):
                found = target if target == head else self._resolve(target, steps - 1)
                if found is not None:
                    return found + dot + rest
        return name if head == "torch" and "torch" not in self._aliases else None

    def _bindings(self, node: ast.AST) -> Iterator[tuple[str, str]]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.split(".")[0]
                yield (alias.asname, alias.name) if alias.asname else (top, top)
        elif isinstance(node, ast.ImportFrom):
            source = self._source(node)
            for alias in node.names:
                if source and alias.name != "*":
                    yield alias.asname or alias.name, f"{source}.{alias.name}"
        elif isinstance(node, ast.Assign) and isinstance(node.value, (ast.Attribute, ast.Name)):
            target = dotted(node.value)
            for name in node.targets:
                if target and isinstance(name, ast.Name):
                    yield name.id, target

    def _source(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        base = self._package[: len(self._package) - node.level + 1]
        return ".".join([*base, *([node.module] if node.module else [])])


def _canonical(name: str) -> str:
    for long, short in (("torch._ops.ops.", "torch.ops."), ("torch._VF.", "torch._C._VariableFunctions.")):
        if name.startswith(long):
            return short + name[len(long) :]
    return name
