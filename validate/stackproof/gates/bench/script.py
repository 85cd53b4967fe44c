"""Writes the benchmark as one file that needs nothing but PyTorch, for reviewers who do not have this project.

The file is made from the modules that the gate itself uses, so that both measure the same rows in the same way: their
imports of each other are left out, and their other imports stand once at the top.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import stackproof

_PACKAGES = ("stackproof.gates.bench", "stackproof.ops.grid_sampler.bench")
# Each needs those before it only. They are read and not imported: they need torch.
MODULES = (
    "ops/grid_sampler/bench/rows.py",
    "gates/bench/timing.py",
    "gates/bench/speed.py",
    "gates/bench/aten_script.py",
)


def script_text() -> str:
    """The file."""
    trees = [(Path(file).stem, _source(file)) for file in MODULES]
    docstring = ast.get_docstring(ast.parse(trees[-1][1]), clean=False)
    imports = sorted({line for _, text in trees for line in _imports(text)}, key=_order)
    bodies = [f"# {name}\n\n{_body(text)}" for name, text in trees]
    head = f'"""{docstring}"""\n\nfrom __future__ import annotations\n\n' + "\n".join(imports)
    return "\n\n\n".join([head, *bodies]) + "\n"


def _source(file: str) -> str:
    return (Path(stackproof.__file__).parent / file).read_text(encoding="utf-8")


def _order(line: str) -> tuple[bool, bool, str]:
    """The standard library before torch, plain imports before the others."""
    return "torch" in line, line.startswith("from"), line


def _is_import(node: ast.stmt) -> bool:
    return isinstance(node, (ast.Import, ast.ImportFrom))


def _imports(text: str) -> Iterator[str]:
    """Imports of others, one name a line, so that two modules' imports of one module go together."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.Import):
            yield from (f"import {alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not (node.module or "").startswith(("__future__", *_PACKAGES)):
            yield from (f"from {node.module} import {alias.name}" for alias in node.names)


def _body(text: str) -> str:
    """Everything from the first line that is neither docstring nor import, comments included."""
    nodes = ast.parse(text).body
    last = max(node.end_lineno or 0 for node in nodes if _is_import(node))
    return "".join(text.splitlines(keepends=True)[last:]).strip("\n")
