"""What nothing but a test could reach is not kept, and no build leaves its output in the repository."""

from __future__ import annotations

import ast
import re
import subprocess
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# What unittest and ast call by name.
_CALLED_FROM_OUTSIDE = re.compile(
    r"add(Success|Failure|Error|Skip|ExpectedFailure|UnexpectedSuccess|SubTest)|visit_\w+|format_options"
)
# What the tests' own tables are compared with, and what they make sources of.
_FOR_TESTS = {"SERIES_RULE_NAMES", "of_text"}
_FOR_PICKLE = {"find_class", "reducer_override"}  # what pickle calls


def test_every_definition_is_named_somewhere_in_the_product() -> None:
    defined: Counter[str] = Counter()
    named: Counter[str] = Counter()
    for folder in ("tooling", "validate", "bench"):
        for file in (ROOT / folder).rglob("*.py"):
            if "standins" in file.parts:
                continue
            text = file.read_text(encoding="utf-8")
            named.update(re.findall(r"\w+", text))
            defined.update(_definitions(ast.parse(text)))
    unreached = {name for name, count in defined.items() if named[name] <= count and not name.startswith("__")}
    assert {name for name in unreached if not _CALLED_FROM_OUTSIDE.fullmatch(name)} == _FOR_TESTS | _FOR_PICKLE


def _definitions(module: ast.Module) -> list[str]:
    """Functions, methods and classes at any depth; constants of the module."""
    found = [node.name for node in ast.walk(module) if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    for node in module.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        for target in targets:
            parts = target.elts if isinstance(target, ast.Tuple) else [target]
            found += [part.id for part in parts if isinstance(part, ast.Name)]
    return found


def test_no_output_of_a_build_is_tracked() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    built = [name for name in listed.split("\0") if re.search(r"(^|/)a\.out$|\.(o|so|pyc|whl|pch|dylib)$", name)]
    assert built == []
